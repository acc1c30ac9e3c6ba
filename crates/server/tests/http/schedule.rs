use serde_json::{Value, json};

use crate::client::World;

fn every_second(more: &str) -> String {
    format!(
        "name: Tick\n{more}triggers: [{{ id: tick, type: cron, cron: '* * * * * *' }}]\ngraph: {{ nodes: [{{ id: a, type: end, result: '{{{{ event.key }}}}' }}] }}\n"
    )
}

fn runs(page: &Value) -> usize {
    page["items"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn the_clock_fires_each_instant_once() {
    let world = World::new(&[("tick", &every_second(""))]);
    let server = world.serve().await;
    let page = server.until("/api/v1/runs?status=succeeded", |page| runs(page) >= 2).await;
    let mut keys = Vec::new();
    for run in page["items"].as_array().unwrap() {
        assert_eq!(run["triggerId"], "tick");
        let shown = server.get(&format!("/api/v1/runs/{}", run["runId"].as_str().unwrap())).await;
        keys.push(shown.json()["input"]["key"].as_str().unwrap().to_owned());
    }
    let before = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), before, "{keys:?}");
    let listed = server.get("/api/v1/triggers").await.json();
    let trigger = &listed["items"][0];
    assert_eq!((&trigger["type"], &trigger["lastError"]), (&json!("cron"), &json!(null)));
    assert!(trigger["nextAt"].is_string() && trigger["seenUntil"].is_string(), "{trigger}");
}

#[tokio::test]
async fn a_workflow_that_is_switched_off_fires_nothing_until_it_is_on() {
    let world = World::new(&[("tick", &every_second("enabled: false\n"))]);
    let server = world.serve().await;
    let off = server.until("/api/v1/triggers", |page| page["items"][0].is_object()).await;
    assert_eq!(
        (&off["items"][0]["enabled"], &off["items"][0]["nextAt"]),
        (&json!(false), &json!(null))
    );
    world.write("tick", &every_second(""));
    server.until("/api/v1/triggers", |page| page["items"][0]["enabled"] == true).await;
    server.until("/api/v1/runs", |page| runs(page) >= 1).await;
    // Nothing was made up for of the time while it was off.
    assert!(runs(&server.get("/api/v1/runs").await.json()) <= 3);
}

#[tokio::test]
async fn what_passed_while_nobody_was_there_is_made_up_for() {
    let text = "name: Hourly\ntriggers: [{ id: hour, type: cron, cron: '0 * * * *' }]\ngraph: { nodes: [{ id: a, type: end, result: x }] }\n";
    let world = World::new(&[("hourly", text)]);
    let server = world.serve().await;
    server.until("/api/v1/triggers", |page| page["items"][0]["seenUntil"].is_string()).await;
    assert_eq!(runs(&server.get("/api/v1/runs").await.json()), 0);
    server.stop().await;

    // As if the server had been away for half a day.
    let path = world.home().join("schedules.json");
    let mut marks: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for mark in marks.as_object_mut().unwrap().values_mut() {
        *mark = json!(mark.as_u64().unwrap() - 12 * 3_600_000);
    }
    std::fs::write(&path, marks.to_string()).unwrap();
    let server = world.serve().await;
    server.until("/api/v1/runs?status=succeeded", |page| runs(page) == 1).await;
    server.stop().await;
    let again = world.serve().await;
    again.until("/api/v1/triggers", |page| page["items"][0]["seenUntil"].is_string()).await;
    assert_eq!(runs(&again.get("/api/v1/runs").await.json()), 1, "the last of them, once");
}
