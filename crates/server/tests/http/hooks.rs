use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use crate::client::{Answer, Server, World};

pub(crate) const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const OTHER: &str = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

pub(crate) fn workflow(more: &str, nodes: &str) -> String {
    format!(
        "name: Pager\n{more}env: [{{ name: KEY, widget: secret }}]\ntriggers: [{{ id: pager, type: webhook, path: /pager, secret: KEY, RESPOND }}]\ngraph:\n  nodes:\n    - {nodes}\n"
    )
}

fn answering(respond: &str, nodes: &str) -> String {
    workflow("", nodes).replace("RESPOND", &format!("respond: {respond}"))
}

pub(crate) const END: &str =
    "{ id: a, type: end, result: { service: '{{ event.payload.service }}' } }";

pub(crate) async fn world(text: &str) -> World {
    let world = World::new(&[("pager", text)]);
    world.set_secret("KEY", SECRET).await;
    world
}

pub(crate) fn now_sec() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn signature(secret: &str, id: &str, sec: u64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(secret).unwrap()).unwrap();
    mac.update(format!("{id}.{sec}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

pub(crate) struct Delivery<'a> {
    pub(crate) id: &'a str,
    pub(crate) sec: u64,
    pub(crate) secret: &'a str,
    pub(crate) path: &'a str,
    pub(crate) method: &'a str,
    pub(crate) body: &'a str,
}

pub(crate) const BODY: &str = r#"{"service":"api"}"#;

impl Default for Delivery<'_> {
    fn default() -> Self {
        let (path, method) = ("/hooks/pager", "POST");
        Self { id: "msg_1", sec: now_sec(), secret: SECRET, path, method, body: BODY }
    }
}

impl Delivery<'_> {
    pub(crate) async fn send(&self, server: &Server) -> Answer {
        self.send_with(server, &[]).await
    }

    pub(crate) async fn send_with(&self, server: &Server, more: &[(&str, &str)]) -> Answer {
        let signature = signature(self.secret, self.id, self.sec, self.body);
        let sec = self.sec.to_string();
        let headers = [
            ("Content-Type", "application/json"),
            ("webhook-id", self.id),
            ("webhook-timestamp", &sec),
            ("webhook-signature", &signature),
        ];
        let headers = [&headers, more].concat();
        server.send_body(self.method, self.path, &headers, self.body).await
    }
}

/// Waits until the server knows its triggers.
pub(crate) async fn ready(server: &Server) {
    server.until("/api/v1/triggers", |page| page["items"][0].is_object()).await;
}

// case: webhook.replay
#[tokio::test]
async fn a_delivery_starts_one_run_however_often_it_comes() {
    let world = world(&answering("immediately", END)).await;
    let server = world.serve().await;
    ready(&server).await;
    let first = Delivery::default().send(&server).await;
    assert_eq!(first.status, 202, "{}", first.body);
    let run = first.json()["runId"].as_str().unwrap().to_owned();
    let shown = server.until_status(&run, "succeeded").await;
    assert_eq!(shown["result"], json!({"service": "api"}));
    assert_eq!(shown["triggerId"], "pager");
    let again = Delivery::default().send(&server).await;
    assert_eq!((again.status, &again.json()["runId"]), (200, &json!(run)));
    server.stop().await;

    let server = world.serve().await;
    ready(&server).await;
    let later = Delivery::default().send(&server).await;
    assert_eq!((later.status, &later.json()["runId"]), (200, &json!(run)), "after a restart, too");
    let other = Delivery { id: "msg_2", ..Delivery::default() }.send(&server).await;
    assert_eq!(other.status, 202);
    assert_ne!(other.json()["runId"], json!(run));
}

// case: webhook.compressed
#[tokio::test]
async fn what_is_not_genuine_has_no_effect() {
    let world = world(&answering("immediately", END)).await;
    let server = world.serve().await;
    ready(&server).await;
    let plain = [("Content-Type", "application/json")];
    let unsigned = server.send_body("POST", "/hooks/pager", &plain, BODY).await;
    let bad = Delivery { secret: OTHER, ..Delivery::default() }.send(&server).await;
    let old = Delivery { sec: now_sec() - 301, ..Delivery::default() }.send(&server).await;
    let early = Delivery { sec: now_sec() + 330, ..Delivery::default() }.send(&server).await;
    for (answer, status, code) in [
        (&unsigned, 401, "WEBHOOK_SIGNATURE_MISSING"),
        (&bad, 401, "WEBHOOK_SIGNATURE_BAD"),
        (&old, 401, "WEBHOOK_STALE"),
        (&early, 401, "WEBHOOK_STALE"),
    ] {
        assert_eq!((answer.status, answer.code().as_str()), (status, code));
    }
    let another = Delivery { secret: OTHER, body: "{}", ..Delivery::default() }.send(&server).await;
    assert_eq!(another.body, bad.body, "a refusal says nothing of what was sent");
    let zipped = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    let zipped = server.send_body("POST", "/hooks/pager", &zipped, BODY).await;
    assert_eq!((zipped.status, zipped.code().as_str()), (415, "WEBHOOK_BODY_ENCODED"));
    assert_eq!(server.get("/api/v1/runs").await.json()["items"], json!([]));
}

// case: webhook.body-limit
#[tokio::test]
async fn a_body_that_goes_on_for_too_long_is_refused_before_it_is_kept() {
    let world = world(&answering("immediately, body_max: 1000", END)).await;
    let server = world.serve().await;
    ready(&server).await;
    let long = json!({"service": "x".repeat(1000)}).to_string();
    let answer = Delivery { body: &long, ..Delivery::default() }.send(&server).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "WEBHOOK_BODY_TOO_LARGE"));
    let chunk = format!("400\r\n{}\r\n", "x".repeat(1024));
    let head = "POST /hooks/pager HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = server.send(&format!("{head}{}", chunk.repeat(3))).await;
    assert_eq!(answer.status, 413, "though it says no length and does not end");
    let lie = "POST /hooks/pager HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n";
    assert_eq!(server.send(lie).await.code(), "REQUEST_TOO_LARGE");
}

// case: webhook.hidden
#[tokio::test]
async fn paths_that_are_not_there_and_paths_that_are_off_look_the_same() {
    let text = workflow("enabled: false\n", END).replace(", RESPOND", "");
    let world = world(&text).await;
    let server = world.serve().await;
    ready(&server).await;
    let off = Delivery::default().send(&server).await;
    let none = Delivery { path: "/hooks/nobody", ..Delivery::default() }.send(&server).await;
    let deep = Delivery { path: "/hooks/pager/..", ..Delivery::default() }.send(&server).await;
    assert_eq!((off.status, &off.body), (404, &none.body));
    assert_eq!(deep.body, off.body);
    assert_eq!(server.get("/api/v1/runs").await.json()["items"], json!([]));
}

#[tokio::test]
async fn the_sender_can_wait_for_the_result() {
    let world = world(&answering("last_step", END)).await;
    let server = world.serve().await;
    ready(&server).await;
    let answer = Delivery::default().send(&server).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"service": "api"})));
    assert_eq!(answer.headers["content-type"], "application/json");
}

#[tokio::test]
async fn a_run_that_fails_tells_its_sender_no_more_than_that() {
    let world =
        world(&answering("last_step", "{ id: a, type: fail, message: the inner workings }")).await;
    let server = world.serve().await;
    ready(&server).await;
    let answer = Delivery::default().send(&server).await;
    assert_eq!((answer.status, &answer.json()["status"]), (500, &json!("failed")));
    assert!(!answer.body.contains("workings"), "{}", answer.body);
}

// case: browser.answer
#[tokio::test]
async fn what_a_workflow_answers_is_nothing_that_a_browser_would_run() {
    let nodes = "{ id: a, type: webhook_respond, status: 203, body: '<script>alert(1)</script>', headers: { Content-Type: text/html, X-Own: kept, X-Frame-Options: ALLOWALL, Set-Cookie: a=b, Access-Control-Allow-Origin: '*', Content-Security-Policy: none }, next: b }
    - { id: b, type: end, result: x }";
    let world = world(&answering("respond_step", nodes)).await;
    let server = world.serve().await;
    ready(&server).await;
    let answer = Delivery::default().send(&server).await;
    assert_eq!((answer.status, answer.body.as_str()), (203, "<script>alert(1)</script>"));
    let header = |name: &str| answer.headers.get(name).map(String::as_str);
    assert_eq!(header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(header("x-content-type-options"), Some("nosniff"));
    assert!(header("content-security-policy").unwrap().contains("sandbox"));
    assert_eq!((header("x-own"), header("x-frame-options")), (Some("kept"), Some("DENY")));
    assert_eq!((header("set-cookie"), header("access-control-allow-origin")), (None, None));
}

// case: limit.rate
#[tokio::test]
async fn more_than_may_begin_are_told_when_to_come_back() {
    let text = answering("immediately", END)
        .replace("env:", "rate_limit: { max: 2, per_sec: 3600 }\nenv:");
    let world = world(&text).await;
    let server = world.serve().await;
    ready(&server).await;
    for id in ["m1", "m1", "m2"] {
        let answer = Delivery { id, ..Delivery::default() }.send(&server).await;
        assert!(answer.status < 300, "{}", answer.body);
    }
    let answer = Delivery { id: "m3", ..Delivery::default() }.send(&server).await;
    assert_eq!((answer.status, answer.code().as_str()), (429, "RUN_RATE_LIMITED"));
    let after: u64 = answer.headers["retry-after"].parse().unwrap();
    assert!((3_500..=3_600).contains(&after), "{after}");
    assert_eq!(server.get("/api/v1/runs").await.json()["items"].as_array().unwrap().len(), 2);
    let start = json!({"workflow": "pager"});
    let direct = server.call("POST", "/api/v1/runs", Some(&start)).await;
    assert_eq!((direct.status, direct.code().as_str()), (429, "RUN_RATE_LIMITED"));
}

// case: limit.loop
#[tokio::test]
async fn runs_that_start_one_another_come_to_an_end() {
    let world = world(&answering("immediately", END)).await;
    let server = world.serve().await;
    ready(&server).await;
    for (id, place, status) in [("last", "7", 202), ("next", "8", 409), ("odd", "many", 409)] {
        let delivery = Delivery { id, ..Delivery::default() };
        let answer = delivery.send_with(&server, &[("cairn-chain", place)]).await;
        assert_eq!(answer.status, status, "{place}: {}", answer.body);
        assert!(status != 409 || answer.code() == "TRIGGER_LOOP", "{}", answer.body);
    }
}

#[tokio::test]
async fn what_comes_again_is_answered_as_before_though_no_more_may_begin() {
    let text = answering("immediately", END)
        .replace("env:", "rate_limit: { max: 2, per_sec: 3600 }\nenv:");
    let world = world(&text).await;
    let server = world.serve().await;
    ready(&server).await;
    let mut runs = Vec::new();
    for id in ["m1", "m2"] {
        let answer = Delivery { id, ..Delivery::default() }.send(&server).await;
        runs.push(answer.json()["runId"].clone());
    }
    let again = async |server: &Server, when: &str| {
        for (id, run) in ["m1", "m2"].iter().zip(&runs) {
            let answer = Delivery { id, ..Delivery::default() }.send(server).await;
            assert_eq!((answer.status, &answer.json()["runId"]), (200, run), "{id} {when}");
        }
        let refused = Delivery { id: "m3", ..Delivery::default() }.send(server).await;
        assert_eq!((refused.status, refused.code().as_str()), (429, "RUN_RATE_LIMITED"), "{when}");
    };
    again(&server, "at once").await;
    again(&server, "once more").await;
    server.stop().await;
    let server = world.serve().await;
    ready(&server).await;
    again(&server, "after a restart").await;
}

#[tokio::test]
async fn a_delivery_that_comes_again_takes_the_answer_from_nobody() {
    let nodes = "{ id: ask, type: human, prompt: May it?, cases: { default: a } }
    - { id: a, type: end, result: done }";
    let world = world(&answering("last_step", nodes)).await;
    let server = world.serve().await;
    ready(&server).await;
    let first = Delivery::default();
    let later = async {
        let runs = server.until("/api/v1/tasks", |page| page["items"][0].is_object()).await;
        let (run, task) = (&runs["items"][0]["runId"], &runs["items"][0]["taskId"]);
        let again = Delivery::default().send(&server).await;
        assert_eq!((again.status, &again.json()["runId"]), (200, run));
        let path = format!(
            "/api/v1/runs/{}/tasks/{}/answer",
            run.as_str().unwrap(),
            task.as_str().unwrap()
        );
        server.call("POST", &path, Some(&json!({"verdict": "approved"}))).await
    };
    let (waited, answered) = tokio::join!(first.send(&server), later);
    assert_eq!(answered.status, 200, "{}", answered.body);
    assert_eq!((waited.status, waited.body.as_str()), (200, "done"));
}

pub(crate) fn github(secret: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let bytes = mac.finalize().into_bytes();
    format!("sha256={}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[tokio::test]
async fn a_request_of_github_starts_one_run_under_whatever_id_it_is_sent_again() {
    let text = workflow("", END).replace("RESPOND", "signature: github");
    let world = world(&text).await;
    let server = world.serve().await;
    ready(&server).await;
    let send = async |server: &Server, delivery: &str, body: &str| {
        let signature = github(SECRET, body);
        let headers = [
            ("Content-Type", "application/json"),
            ("X-GitHub-Delivery", delivery),
            ("X-Hub-Signature-256", &signature),
        ];
        server.send_body("POST", "/hooks/pager", &headers, body).await
    };
    let first = send(&server, "one", BODY).await;
    assert_eq!(first.status, 202, "{}", first.body);
    for delivery in ["one", "two", ""] {
        let again = send(&server, delivery, BODY).await;
        assert_eq!((again.status, &again.json()["runId"]), (200, &first.json()["runId"]));
    }
    let other = send(&server, "one", r#"{"service":"web"}"#).await;
    assert_eq!(other.status, 202, "another body is another request");
    server.stop().await;
    let server = world.serve().await;
    ready(&server).await;
    let later = send(&server, "three", BODY).await;
    assert_eq!((later.status, &later.json()["runId"]), (200, &first.json()["runId"]));
    assert_eq!(server.get("/api/v1/runs").await.json()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_body_that_breaks_the_rules_of_its_trigger_starts_nothing() {
    let rules = "input: { service: { type: string, enum: [api, web], required: true }, days: { type: integer, default: 7 } }";
    let end =
        "{ id: a, type: end, result: '{{ event.payload.service }}/{{ event.payload.days }}' }";
    let world = world(&workflow("", end).replace("RESPOND", rules)).await;
    let server = world.serve().await;
    ready(&server).await;
    for (id, body) in [
        ("m1", r#"{"service":"db"}"#),
        ("m2", "{}"),
        ("m3", "[]"),
        ("m4", r#"{"service":"api","days":"x"}"#),
        ("m5", r#"{"service":"api","more":1}"#),
        ("m6", r#"{"service":["api"]}"#),
    ] {
        let answer = Delivery { id, body, ..Delivery::default() }.send(&server).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "WEBHOOK_BODY_INVALID"),
            "{body}"
        );
    }
    assert_eq!(server.get("/api/v1/runs").await.json()["items"], json!([]));
    let good = Delivery { id: "m1", ..Delivery::default() }.send(&server).await;
    let run = good.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(server.until_status(&run, "succeeded").await["result"], "api/7");
}
