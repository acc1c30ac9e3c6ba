use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cairn_server::Telemetry;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::client::{Server, World};
use crate::hooks::Delivery;

const CANARY: &str = "CANARY-9be1f2";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const CHILD: &str = "name: Child\ngraph: { nodes: [{ id: c, type: end, result: ok }] }\n";
const TRACED: &str = "name: Traced
env: [{ name: KEY, widget: secret }]
triggers: [{ id: pager, type: webhook, path: /pager, secret: KEY, entry_node: first }]
graph:
  nodes:
    - { id: first, type: log, message: '{{ event.payload.service }}', next: inner }
    - { id: inner, type: workflow, workflow: project.child, next: again }
    - { id: again, type: http, url: 'http://127.0.0.1:1/', retry: { max: 1, delay_sec: 0 } }
";

/// Takes spans, as a collector does.
struct Collector {
    address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let taken = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let taken = Arc::clone(&taken);
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let mut part = vec![0; 65_536];
                    while let Ok(read @ 1..) = stream.read(&mut part).await {
                        bytes.extend_from_slice(&part[..read]);
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                        let head = head.to_ascii_lowercase();
                        let length = head.split("content-length: ").nth(1).unwrap();
                        let length: usize = length.lines().next().unwrap().parse().unwrap();
                        if body.len() == length {
                            taken.lock().unwrap().push((head, serde_json::from_str(body).unwrap()));
                            bytes.clear();
                            stream
                                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                                .await
                                .unwrap();
                        }
                    }
                });
            }
        });
        Self { address, requests }
    }

    fn spans(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let spans = requests.iter().flat_map(|(_, body)| {
            body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        });
        spans.collect()
    }

    async fn until(&self, count: usize) -> Vec<Value> {
        let waited = async {
            while self.spans().len() < count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), waited).await;
        assert!(waited.is_ok(), "{:#?}", self.spans());
        self.spans()
    }
}

/// The attributes of a span, as texts.
fn attributes(span: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| {
        let value = value["stringValue"].as_str().or(value["intValue"].as_str());
        value.unwrap().to_owned()
    };
    let pairs = span["attributes"].as_array().unwrap().iter();
    pairs.map(|pair| (pair["key"].as_str().unwrap().to_owned(), text(&pair["value"]))).collect()
}

#[tokio::test]
async fn a_run_is_a_trace_with_a_span_for_each_try_at_a_step() {
    let world = World::new(&[("traced", TRACED), ("child", CHILD)]);
    world.set_secret("KEY", crate::hooks::SECRET).await;
    let collector = Collector::start().await;
    let telemetry = Telemetry::at(&collector.address).unwrap().named("tests");
    let server = world.serve_traced(Some(telemetry.with_header("x-key", CANARY))).await;
    crate::hooks::ready(&server).await;
    let body = json!({"service": CANARY}).to_string();
    let delivery = Delivery { body: &body, ..Delivery::default() };
    let answer = delivery.send_with(&server, &[("traceparent", PARENT)]).await;
    let run = answer.json()["runId"].as_str().unwrap().to_owned();
    server.until_status(&run, "failed").await;
    // The run, its child, and five tries: first, c, inner, and twice again.
    let spans = collector.until(7).await;
    let named =
        |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let root = named("project.traced")[0];
    assert_eq!(root["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(root["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(root["status"]["code"], 2);
    let told = attributes(root);
    assert_eq!(told["cairn.run.id"], run);
    assert_eq!(
        (told["cairn.run.status"].as_str(), told["cairn.trigger.id"].as_str()),
        ("failed", "pager")
    );
    assert!(told.contains_key("error.type"), "{told:?}");
    for span in &spans {
        assert_eq!(span["traceId"], root["traceId"], "{span}");
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    let first = named("first")[0];
    assert_eq!(first["parentSpanId"], root["spanId"]);
    let told = attributes(first);
    assert_eq!(
        (told["cairn.step.type"].as_str(), told["cairn.step.status"].as_str()),
        ("log", "succeeded")
    );
    assert_eq!(
        (told["cairn.workflow.id"].as_str(), told["cairn.step.attempt"].as_str()),
        ("project.traced", "0")
    );
    let tries: Vec<_> = named("again").iter().map(|span| attributes(span)).collect();
    let attempts: Vec<_> = tries.iter().map(|told| told["cairn.step.attempt"].as_str()).collect();
    assert_eq!(attempts, ["0", "1"]);
    assert!(
        tries
            .iter()
            .all(|told| told["cairn.step.status"] == "failed" && told.contains_key("error.type"))
    );
    // The child belongs to the step that waits for it.
    let child = named("project.child")[0];
    assert_eq!(child["parentSpanId"], named("inner")[0]["spanId"]);
    assert_eq!(named("c")[0]["parentSpanId"], child["spanId"]);
    let mut ids: Vec<_> = spans.iter().map(|span| span["spanId"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 7, "no two spans have one id");

    let requests = collector.requests.lock().unwrap();
    for (head, body) in requests.iter() {
        assert!(
            head.starts_with("post /v1/traces ") && head.contains("content-type: application/json"),
            "{head}"
        );
        assert!(head.contains(&format!("x-key: {}", CANARY.to_ascii_lowercase())), "{head}");
        assert!(!body.to_string().contains(CANARY), "what a run was given is not in its spans");
        let service = &body["resourceSpans"][0]["resource"]["attributes"][0];
        assert_eq!(service["value"]["stringValue"], "tests");
    }
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_up_no_run_and_its_spans_are_counted() {
    let world = World::new(&[("child", CHILD)]);
    let nobody = {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        taken.local_addr().unwrap()
    };
    let telemetry = Telemetry::at(&format!("http://{nobody}/")).unwrap();
    let server = world.serve_traced(Some(telemetry)).await;
    let run = server.begin("child", json!({})).await;
    server.until_status(&run, "succeeded").await;
    let figure = |text: &str| text.contains("cairn_spans_total{fate=\"dropped\"} 2\n");
    until_metrics(&server, figure).await;
    server.stop().await;
}

pub(crate) async fn until_metrics(server: &Server, holds: impl Fn(&str) -> bool) -> String {
    let looked = async {
        loop {
            let text = server.get("/metrics").await.body;
            if holds(&text) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(30), looked).await {
        Ok(text) => text,
        Err(_) => panic!("{}", server.get("/metrics").await.body),
    }
}
