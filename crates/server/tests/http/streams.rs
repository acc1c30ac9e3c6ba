use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use cairn_api::token::Scope;
use cairn_core::flow::{Answer, Verdict};
use cairn_engine::flow::{Automations, Roles, RunRequest};

use cairn_server::tokens::Wanted;

use crate::client::{Server, TOKEN, World};
use crate::traces::until_metrics;

const APPROVE: &str = "name: Approve
graph:
  nodes:
    - { id: a, type: log, message: first, next: ask }
    - { id: ask, type: human, prompt: May it?, cases: { default: out } }
    - { id: out, type: end, result: done }
";

/// A stream of events that is read line by line.
struct Stream(BufReader<TcpStream>);

/// One event.
#[derive(Debug)]
struct Told {
    id: u64,
    kind: String,
    data: Value,
}

impl Stream {
    async fn open(server: &Server, path: &str, last: Option<u64>) -> Self {
        Self::open_with(server, TOKEN, path, last).await
    }

    async fn open_with(server: &Server, token: &str, path: &str, last: Option<u64>) -> Self {
        let mut stream = server.connect().await;
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{last}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut stream = Self(BufReader::new(stream));
        let status = stream.line().await.unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        while stream.line().await.is_some_and(|line| !line.is_empty()) {}
        stream
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(Duration::from_secs(20), self.0.read_line(&mut line)).await;
        (read.unwrap().unwrap() > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event; none when the stream is over.
    async fn next(&mut self) -> Option<Told> {
        let mut told = Told { id: 0, kind: String::new(), data: Value::Null };
        loop {
            let line = self.line().await?;
            if let Some(id) = line.strip_prefix("id: ") {
                told.id = id.rsplit(':').next().unwrap().parse().unwrap();
            } else if let Some(kind) = line.strip_prefix("event: ") {
                told.kind = kind.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                told.data = serde_json::from_str(data).unwrap();
            } else if line == "0" {
                return None;
            } else if line.is_empty() && !told.kind.is_empty() {
                return Some(told);
            }
        }
    }

    async fn until(&mut self, kind: &str) -> Told {
        loop {
            let told = self.next().await.unwrap();
            if told.kind == kind {
                return told;
            }
        }
    }
}

async fn approve(server: &Server, run: &str) {
    let shown = server.until_status(run, "waiting").await;
    let task = shown["tasks"][0]["taskId"].as_str().unwrap();
    let path = format!("/api/v1/runs/{run}/tasks/{task}/answer");
    let answer = server.call("POST", &path, Some(&json!({"verdict": "approved"}))).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[tokio::test]
async fn a_run_is_told_as_it_goes_and_again_from_where_somebody_left() {
    let world = World::new(&[("approve", APPROVE)]);
    let server = world.serve().await;
    let run = server.begin("approve", json!({})).await;
    let path = format!("/api/v1/runs/{run}/events/stream");
    let mut stream = Stream::open(&server, &path, None).await;
    let first = stream.next().await.unwrap();
    assert_eq!((first.kind.as_str(), &first.data["runId"]), ("run_queued", &json!(run)));
    let opened = stream.until("step_waiting").await;
    approve(&server, &run).await;
    let mut kinds = Vec::new();
    while let Some(told) = stream.next().await {
        assert!(told.id > opened.id, "{told:?}");
        kinds.push(told.kind);
    }
    assert_eq!(kinds.first().map(String::as_str), Some("task_answered"));
    assert_eq!(kinds.last().map(String::as_str), Some("run_completed"), "it ends with the run");

    let mut again = Stream::open(&server, &path, Some(opened.id)).await;
    let mut replayed = Vec::new();
    while let Some(told) = again.next().await {
        replayed.push(told.kind);
    }
    assert_eq!(replayed, kinds, "nothing is missed, and nothing comes twice");
    let authorization = format!("Bearer {TOKEN}");
    let headers = [("Authorization", authorization.as_str()), ("Last-Event-ID", "999999")];
    let over = server.ask("GET", &path, &headers).await;
    assert_eq!(over.status, 204, "there is nothing to come back for");
}

#[tokio::test]
async fn everything_is_told_to_who_follows_all_runs() {
    let world = World::new(&[("approve", APPROVE)]);
    let server = world.serve().await;
    let mut stream = Stream::open(&server, "/api/v1/events", None).await;
    let runs = [server.begin("approve", json!({})).await, server.begin("approve", json!({})).await];
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.push(stream.until("run_queued").await.data["runId"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, runs);
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams() {
    let world = World::new(&[("approve", APPROVE)]);
    let server = world.serve().await;
    let run = server.begin("approve", json!({})).await;
    let path = format!("/api/v1/runs/{run}/events/stream");
    let mut stream = Stream::open(&server, &path, None).await;
    stream.until("task_opened").await;
    timeout(Duration::from_secs(8), server.stop()).await.unwrap();
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn runs_of_another_process_are_told_and_counted() {
    let world = World::new(&[("approve", APPROVE)]);
    let server = world.serve().await;
    // One that was over before anybody counted.
    let early = world.another_engine();
    let begin = async |engine: &Automations| {
        let event = cairn_engine::flow::TriggerEvent::default();
        let workflow = "project.approve".to_owned();
        let (trigger, key, roles) = (None, None, Roles::Any);
        let by = "tester".into();
        let request = RunRequest { workflow, trigger, key, event, depth: 0, by, roles };
        engine.submit(request).await.unwrap().run.to_string()
    };
    let run = begin(&early).await;
    let path = format!("/api/v1/runs/{run}/events/stream");
    let mut all = Stream::open(&server, "/api/v1/events", None).await;
    server.until_status(&run, "waiting").await;
    let mut one = Stream::open(&server, &path, None).await;
    one.until("task_opened").await;

    let second = begin(&early).await;
    loop {
        let told = all.until("run_queued").await;
        if told.data["runId"] == second.as_str() {
            break;
        }
    }
    let past = early.past(run.parse().unwrap()).await.unwrap();
    let task = *past.state.tasks.keys().next().unwrap();
    let answer = Answer { verdict: Verdict::Approved, values: json!({}) };
    early.answer(run.parse().unwrap(), task, "ada", answer).await.unwrap();
    let answered = one.until("task_answered").await;
    let last = one.until("run_completed").await;
    assert!(last.id > answered.id);
    assert!(one.next().await.is_none(), "it ends with the run");
    let text = until_metrics(&server, |text| {
        text.contains("cairn_runs_ended_total{status=\"succeeded\"} 1\n")
    });
    let text = text.await;
    assert!(text.contains("cairn_runs_started_total 2\n"), "{text}");

    // The session goes from one process to the other, and nothing is missed or told twice.
    early.stop(Duration::from_secs(5)).await;
    let third = server.begin("approve", json!({})).await;
    for run in [&second, &third] {
        approve(&server, run).await;
        server.until_status(run, "succeeded").await;
    }
    let text = until_metrics(&server, |text| {
        text.contains("cairn_runs_ended_total{status=\"succeeded\"} 3\n")
    });
    let text = text.await;
    assert!(text.contains("cairn_runs_started_total 3\n"), "{text}");
    assert!(text.contains("cairn_steps_total{status=\"succeeded\"} 9\n"), "{text}");
}

#[tokio::test]
async fn figures_count_every_run_however_many_there_are_at_once() {
    let text = "name: Quick\nrate_limit: { max: 5000, per_sec: 60 }\ngraph: { nodes: [{ id: a, type: log, message: x, next: b }, { id: b, type: end, result: x }] }\n";
    let world = World::new(&[("quick", text)]);
    let server = world.serve().await;
    for _ in 0..200 {
        server.begin("quick", json!({})).await;
    }
    let text = until_metrics(&server, |text| {
        text.contains("cairn_runs_ended_total{status=\"succeeded\"} 200\n")
    });
    let text = text.await;
    assert!(text.contains("cairn_runs_started_total 200\n"), "{text}");
    assert!(text.contains("cairn_steps_total{status=\"succeeded\"} 400\n"), "{text}");
}

// case: http.streams
#[tokio::test]
async fn a_token_holds_its_own_places_and_no_others() {
    let world = World::new(&[]);
    let server = world.serve().await;
    let (name, scopes, workflows) = ("ci".to_owned(), vec![Scope::Read], Vec::new());
    let wanted = Wanted { kind: Default::default(), name, scopes, workflows, expires_ms: None };
    world.token("cairn_tok_ci", wanted).await;
    let (path, own) = ("/api/v1/events", [("Authorization", "Bearer cairn_tok_ci")]);
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(Stream::open_with(&server, "cairn_tok_ci", path, None).await);
    }
    let refused = server.ask("GET", path, &own).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "STREAMS_EXHAUSTED"));
    Stream::open(&server, path, None).await;
    assert_eq!(server.ask("GET", "/api/v1/runs", &own).await.status, 200, "it may do the rest");
}
