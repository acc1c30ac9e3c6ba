//! Webhooks that are not what they should be, and what whoever runs the server learns of it.

use std::time::Duration;

use serde_json::json;

use crate::client::{Answer, Server, World};
use crate::hooks::{BODY, Delivery, END, OTHER, SECRET, github, now_sec, ready, workflow, world};

async fn runs(server: &Server) -> usize {
    server.get("/api/v1/runs").await.json()["items"].as_array().unwrap().len()
}

// case: webhook.hidden
#[tokio::test]
async fn a_path_does_not_tell_which_methods_it_takes() {
    let world =
        world(&workflow("", END).replace("RESPOND", "methods: [PUT], allow: [10.0.0.0/8]")).await;
    let server = world.serve().await;
    ready(&server).await;
    for method in ["GET", "POST", "PATCH", "DELETE", "OPTIONS", "BREW"] {
        let there = Delivery { method, ..Delivery::default() }.send(&server).await;
        let nowhere = Delivery { method, path: "/hooks/nobody", ..Delivery::default() };
        let nowhere = nowhere.send(&server).await;
        assert_eq!(
            (there.status, there.code().as_str()),
            (404, "REQUEST_PATH_UNKNOWN"),
            "{method}"
        );
        assert_eq!(there.body, nowhere.body, "{method}");
        let names = |answer: &Answer| answer.headers.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&there), names(&nowhere), "{method}");
    }
    assert_eq!(runs(&server).await, 0);
}

// case: webhook.signature-of-another
#[tokio::test]
async fn the_secret_of_another_workflow_signs_nothing() {
    let one = workflow("", END).replace(", RESPOND", "");
    let two =
        one.replace("Pager", "Billing").replace("/pager", "/billing").replace("KEY", "OTHER_KEY");
    let world = World::new(&[("pager", &one), ("billing", &two)]);
    world.set_secret("KEY", SECRET).await;
    world.set_secret("OTHER_KEY", OTHER).await;
    let server = world.serve().await;
    server.until("/api/v1/triggers", |page| page["items"][1].is_object()).await;
    for (path, secret) in [("/hooks/pager", OTHER), ("/hooks/billing", SECRET)] {
        let answer = Delivery { path, secret, ..Delivery::default() }.send(&server).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (401, "WEBHOOK_SIGNATURE_BAD"),
            "{path}"
        );
    }
    assert_eq!(runs(&server).await, 0);
    let fine = Delivery { path: "/hooks/billing", secret: OTHER, ..Delivery::default() };
    assert_eq!(fine.send(&server).await.status, 202);
}

// case: webhook.replay
#[tokio::test]
async fn a_replay_is_the_same_run_until_it_is_stale() {
    let world = world(&workflow("", END).replace("RESPOND", "tolerance_sec: 2")).await;
    let server = world.serve().await;
    ready(&server).await;
    let sent = Delivery { sec: now_sec(), ..Delivery::default() };
    let first = sent.send(&server).await;
    assert_eq!(first.status, 202, "{}", first.body);
    let stale = async {
        loop {
            let again = sent.send(&server).await;
            if again.status == 401 {
                return again;
            }
            assert_eq!((again.status, &again.json()["runId"]), (200, &first.json()["runId"]));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let stale = tokio::time::timeout(Duration::from_secs(20), stale).await.unwrap();
    assert_eq!(stale.code(), "WEBHOOK_STALE");
    // The id is known for good, so that a fresh time makes it no other request.
    let resigned = Delivery { sec: now_sec(), ..Delivery::default() }.send(&server).await;
    assert_eq!((resigned.status, &resigned.json()["runId"]), (200, &first.json()["runId"]));
    assert_eq!(runs(&server).await, 1);
}

#[tokio::test]
async fn a_secret_without_a_value_is_named_to_the_operator_and_to_nobody_else() {
    let world = World::new(&[("pager", &workflow("", END).replace(", RESPOND", ""))]);
    let server = world.serve().await;
    ready(&server).await;
    let answer = Delivery::default().send(&server).await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "WEBHOOK_SIGNATURE_BAD"));
    let listed = server.get("/api/v1/triggers").await.json();
    let error = listed["items"][0]["lastError"].as_str().unwrap();
    assert!(error.contains("`KEY` has no value"), "{error}");
    assert!(error.contains("cairn secret set KEY"), "{error}");
    assert_eq!(runs(&server).await, 0);

    world.set_secret("KEY", OTHER).await;
    let wrong = Delivery::default().send(&server).await;
    assert_eq!(wrong.body, answer.body, "it looks like any wrong signature");
    world.set_secret("KEY", SECRET).await;
    assert_eq!(Delivery::default().send(&server).await.status, 202, "no restart is needed");
    let listed = server.get("/api/v1/triggers").await.json();
    assert_eq!(listed["items"][0]["lastError"], json!(null));
}

#[tokio::test]
async fn the_same_words_start_another_run_when_their_time_has_passed() {
    let hmac = "signature: hmac, header: X-Sig, prefix: 'sha256=', dedupe_sec: 1";
    let world = world(&workflow("", END).replace("RESPOND", hmac)).await;
    let server = world.serve().await;
    ready(&server).await;
    let signature = github(SECRET, BODY);
    let headers = [("Content-Type", "application/json"), ("X-Sig", signature.as_str())];
    let send = || server.send_body("POST", "/hooks/pager", &headers, BODY);
    let first = send().await;
    assert_eq!(first.status, 202, "{}", first.body);
    let begun = std::time::Instant::now();
    let later = async {
        loop {
            let again = send().await;
            if again.status == 202 {
                return again;
            }
            assert_eq!((again.status, &again.json()["runId"]), (200, &first.json()["runId"]));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let later = tokio::time::timeout(Duration::from_secs(20), later).await.unwrap();
    assert_ne!(later.json()["runId"], first.json()["runId"]);
    assert!(begun.elapsed() >= Duration::from_millis(900), "not before: {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(4), "and not much later: {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_body_may_be_text_or_a_form() {
    let shown = "{ id: a, type: end, result: '{{ event.payload | tojson }}' }";
    let world = world(&workflow("", shown).replace(
        "RESPOND",
        "respond: last_step, signature: hmac, header: X-Sig, prefix: 'sha256='",
    ))
    .await;
    let server = world.serve().await;
    ready(&server).await;
    for (kind, body, seen) in [
        ("text/plain", "a b", r#""a b""#),
        ("application/x-www-form-urlencoded", "a=b+c&d=%2F", r#"{"a":"b c","d":"/"}"#),
        ("application/vnd.x+json", "[1]", "[1]"),
    ] {
        let signature = github(SECRET, body);
        let headers = [("Content-Type", kind), ("X-Sig", signature.as_str())];
        let answer = server.send_body("POST", "/hooks/pager", &headers, body).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, seen), "{kind}");
    }
}
