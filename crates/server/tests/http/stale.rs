//! Workflows whose files do not compile while a server runs.

use cairn_store::port::documents::Name;
use serde_json::json;

use crate::client::Server;
use crate::hooks::{Delivery, ready, workflow, world};

fn answering(result: &str) -> String {
    let nodes = format!("{{ id: a, type: end, result: {result} }}");
    workflow("", &nodes).replace("RESPOND", "respond: immediately")
}

async fn stale(server: &Server, is_stale: bool) {
    let stands = |page: &serde_json::Value| {
        page["items"].as_array().is_some_and(|items| items.len() == 1)
            && page["items"][0]["stale"].as_bool().unwrap_or_default() == is_stale
    };
    server.until("/api/v1/triggers", stands).await;
}

/// What the run that a delivery starts comes to.
async fn delivered(server: &Server, id: &str) -> serde_json::Value {
    let answer = Delivery { id, ..Delivery::default() }.send(server).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    server.until_status(&run, "succeeded").await["result"].clone()
}

#[tokio::test]
async fn a_save_that_does_not_compile_takes_no_webhook_down() {
    let good = answering("one");
    let world = world(&good).await;
    let server = world.serve().await;
    ready(&server).await;
    assert_eq!(delivered(&server, "msg_1").await, json!("one"));
    let broken = [good.replace("type: end", "type: ned"), "name: [".to_owned(), String::new()];
    for (place, text) in broken.iter().enumerate() {
        world.write("pager", text);
        stale(&server, true).await;
        assert_eq!(delivered(&server, &format!("msg_2{place}")).await, json!("one"), "{text}");
        let start = json!({"workflow": "pager"});
        let by_hand = server.call("POST", "/api/v1/runs", Some(&start)).await;
        assert_eq!(by_hand.code(), "WORKFLOW_INVALID", "{}", by_hand.body);
        world.write("pager", &good);
        stale(&server, false).await;
    }
    world.write("pager", &answering("two"));
    for place in 0.. {
        // The server looks at files from time to time.
        if delivered(&server, &format!("msg_3{place}")).await == json!("two") {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_starts_with_a_broken_file_serves_what_compiled_last() {
    let good = answering("one");
    let world = world(&good).await;
    let server = world.serve().await;
    ready(&server).await;
    assert_eq!(delivered(&server, "msg_1").await, json!("one"));
    let documents = world.store().documents;
    while documents.list(&Name::fixed("plans")).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    server.stop().await;
    for (place, text) in
        ["name: [".to_owned(), good.replace("type: end", "type: ned")].iter().enumerate()
    {
        world.write("pager", text);
        let server = world.serve().await;
        stale(&server, true).await;
        assert_eq!(delivered(&server, &format!("msg_2{place}")).await, json!("one"), "{text}");
        server.stop().await;
    }
    world.write("pager", &answering("two"));
    let server = world.serve().await;
    stale(&server, false).await;
    assert_eq!(delivered(&server, "msg_3").await, json!("two"));
    server.stop().await;
}
