//! Spans as OTLP has them, in its JSON form.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, redirect};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Telemetry;
use super::span::{Attribute, Span};

/// How long a collector may take for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long is waited before a collector that was busy is asked again.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// Who takes spans.
pub(super) struct Collector {
    client: Client,
    telemetry: Telemetry,
}

impl Collector {
    /// None when there is no way to speak to it.
    pub(super) fn new(telemetry: Telemetry) -> Option<Self> {
        let mut headers = HeaderMap::new();
        for (name, value) in &telemetry.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(value)) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(ANSWER_MAX)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .build();
        Some(Self { client: client.ok()?, telemetry })
    }

    /// Sends spans, and says whether they were taken.
    pub(super) async fn send(&self, spans: &[Span]) -> bool {
        let body = document(spans, &self.telemetry.service).to_string();
        for wait in WAITS.into_iter().map(Some).chain([None]) {
            let request = self.client.post(self.telemetry.endpoint.clone()).body(body.clone());
            match request.send().await.map(|answer| answer.status()) {
                Ok(status) if status.is_success() => return true,
                Ok(status) if !is_passing(status) => return false,
                _ => {}
            }
            let Some(wait) = wait else { return false };
            sleep(wait).await;
        }
        false
    }
}

/// Whether a refusal may be over soon.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

/// What is sent.
fn document(spans: &[Span], service: &str) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let spans: Vec<Value> = spans.iter().map(one).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            text("service.name", service),
            text("service.version", version),
        ]},
        "scopeSpans": [{"scope": {"name": "cairn", "version": version}, "spans": spans}],
    }]})
}

fn one(span: &Span) -> Value {
    let nanos = |ms: u64| format!("{ms}000000");
    let attributes: Vec<Value> = span.attributes.iter().map(attribute).collect();
    // 1 is well, 2 is not.
    let status = if span.failed { json!({"code": 2}) } else { json!({"code": 1}) };
    let mut shown = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.start_ms),
        "endTimeUnixNano": nanos(span.end_ms.max(span.start_ms)),
        "attributes": attributes,
        "status": status,
    });
    if let (Some(parent), Value::Object(members)) = (&span.parent, &mut shown) {
        members.insert("parentSpanId".to_owned(), json!(hex(parent)));
    }
    shown
}

fn attribute((key, value): &(&'static str, Attribute)) -> Value {
    let value = match value {
        Attribute::Text(text) => json!({"stringValue": text}),
        // Whole numbers of 64 bits are texts in this form.
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": key, "value": value})
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
