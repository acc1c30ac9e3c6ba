//! `http`: asks a web server and keeps its answer.

mod answer;
mod client;
mod encoding;
mod request;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::catalog::schema::{
    any, closed, flag, one_of, shown, text, texts_by_name, told, whole,
};
use cairn_core::catalog::{Class, SettingFault, StepType, Takes};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::guard::Guard;
use crate::settings;
pub(crate) use answer::after_ms;
use client::Clients;
pub(crate) use client::{config as tls, in_words};

/// How large an answer may be.
const BODY_MAX: usize = 1 << 20;
/// How many redirects are followed.
const REDIRECTS_MAX: usize = 5;

pub(crate) struct Http {
    clients: Arc<Clients>,
}

impl Http {
    pub(crate) fn new(guard: Guard) -> Self {
        Self { clients: Arc::new(Clients::new(guard)) }
    }
}

#[derive(Deserialize)]
struct Input {
    url: String,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
    #[serde(default)]
    query: BTreeMap<String, Value>,
    body: Option<Value>,
    form: Option<BTreeMap<String, Value>>,
    parse_response: Option<Parse>,
    ok_status: Option<Vec<u16>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Parse {
    Json,
    Text,
}

#[async_trait]
impl Performer for Http {
    fn kind(&self) -> StepType {
        let input = closed(
            &json!({
                "body": told(any(), "What is sent: text as it is, anything else as JSON. With the header `Content-Type: application/x-www-form-urlencoded` a map is sent as a form."),
                "form": told(texts_by_name(), "What is sent as a form, in place of `body`: fields by name."),
                "headers": told(texts_by_name(), "Headers. Secrets in them go to their allowed hosts only, and over `https` only, but for private addresses that the operator allows."),
                "method": told(one_of(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]), "`GET` when it is left out. Any but `GET` and `HEAD` carries an `Idempotency-Key`, the same for every try."),
                "ok_status": told(json!({"type": "array", "items": whole()}), "The statuses that count as success; any below 400 when it is left out."),
                "parse_response": told(one_of(&["json", "text"]), "With `json` the answer must be JSON. When it is left out, one that says that it is JSON is read as such."),
                "query": told(texts_by_name(), "Parameters that are added to the address. Secrets in them must be bound to `hosts`."),
                "url": told(text(), "The address. Its host must be in the public network, or allowed by the operator (`http.allow`); `hosts` of the workflow and `http.hosts` of the configuration limit it further. Data in its path or query is percent-encoded, unless it is passed through `raw_path`; a segment `.` or `..` is a failure. Secrets behind the host must be bound to `hosts`."),
            }),
            &["url"],
        );
        let what = "Asks a web server. Redirects are followed, five at most; each is held to the same rules, headers stay behind when one leads to another host, and none leads to what only `http.allow` permits. An answer of more than 1 MiB is a failure.";
        let example = json!({
            "method": "POST", "url": "https://api.example.com/orders",
            "headers": {"Authorization": "Bearer {{ secret.SHOP }}"},
            "body": {"sku": "{{ event.payload.sku }}"}, "parse_response": "json",
        });
        let output = closed(
            &json!({
                "body": told(text(), "What was answered."),
                "headers": told(json!({"type": "object"}), "The headers of the answer, their names in lower case."),
                "json": told(any(), "What was answered, read as JSON."),
                "status": told(whole(), "The status of the answer."),
                "truncated": told(flag(), "Whether the answer was longer than is kept."),
                "url": told(text(), "Where the answer is from, after redirects."),
            }),
            &[],
        );
        StepType::new("http", Class::Effectful, shown(told(input, what), &example), output)
            .taking(&[
                ("url", Takes::Address),
                ("query.*", Takes::BoundSecrets),
                ("headers.*", Takes::Secrets),
                ("body.**", Takes::Secrets),
                ("form.*", Takes::Secrets),
            ])
            .checked(|given| {
                let has = |name: &str| given.config.get(name).is_some();
                let both =
                    SettingFault::new("form", "the step has both `body` and `form`", "keep one");
                (has("body") && has("form")).then_some(both).into_iter().collect()
            })
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        let mut request = request::Request::new(&input, ctx, &self.clients.guard.policy)?;
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.clients.send(&request).await?;
            match request.redirected(&answer, &self.clients.guard)? {
                Some(next) => request = next,
                None => return answer::outcome(answer, &input).await,
            }
        }
        let message = format!("more than {REDIRECTS_MAX} redirects; ask the last address directly");
        Err(Failed::new("HTTP_REDIRECTS", message))
    }
}

/// A failure that has to do with where a request goes.
fn denied(denied: &crate::guard::Denied) -> Failed {
    let is_unreadable = matches!(denied, crate::guard::Denied::Unreadable(..));
    let code = if is_unreadable { "HTTP_ADDRESS" } else { "HTTP_DENIED" };
    Failed::new(code, denied.to_string())
}
