//! Asking model endpoints over HTTP. Where they are, the operator says, not a workflow.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cairn_engine::redact::Redactor;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, redirect};
use serde_json::Value;

use super::cli::kind_of_status;
use super::request::{Refusal, RefusalKind, Used};
use super::structured::told;
use crate::http::{after_ms, in_words, tls};

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How large an answer may be.
const BODY_MAX: usize = 16 << 20;

/// The one client for all endpoints, made when it is first needed.
#[derive(Default)]
pub(crate) struct Endpoint {
    client: Mutex<Option<Client>>,
}

/// A request to an endpoint.
pub(super) struct Post<'a> {
    pub(super) url: String,
    /// Headers, the key among them.
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: &'a Value,
    /// How long the whole of it may take.
    pub(super) timeout: Duration,
}

impl Endpoint {
    /// Sends a request; gives the JSON that was answered.
    pub(super) async fn post(&self, post: Post<'_>, hidden: &Redactor) -> Result<Value, Refusal> {
        let client = self.client()?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        for (name, value) in post.headers {
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                let message = "the key of the provider has signs in it that no header can have";
                Refusal::new(RefusalKind::NotLoggedIn, message)
            })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let sent = client
            .post(&post.url)
            .headers(headers)
            .timeout(post.timeout)
            .body(post.body.to_string())
            .send();
        let mut answer = sent.await.map_err(|error| unreached(&error))?;
        let status = answer.status().as_u16();
        let wait = answer.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
        let wait = wait.and_then(|wait| after_ms(wait, jiff::Timestamp::now()));
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| unreached(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > BODY_MAX {
                let message = format!("the endpoint answered with more than {BODY_MAX} bytes");
                return Err(Refusal::new(RefusalKind::TooMuch, message).after(Used::launch()));
            }
        }
        if status >= 400 {
            let body = serde_json::from_slice(&bytes).map(|body| hidden.value(body));
            return Err(refused(status, body.ok().as_ref(), wait));
        }
        let answer = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("the endpoint did not answer with JSON: {error}");
            Refusal::new(RefusalKind::Server, message).after(Used::launch())
        })?;
        Ok(hidden.value(answer))
    }

    fn client(&self) -> Result<Client, Refusal> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let unmade = |message: String| Refusal::new(RefusalKind::Failed, message);
        let made = Client::builder()
            .tls_backend_preconfigured(tls().map_err(|failed| unmade(failed.message))?)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_MAX)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unmade(in_words(&error)))?;
        Ok(client.insert(made).clone())
    }
}

fn unreached(error: &reqwest::Error) -> Refusal {
    if error.is_timeout() {
        let message = "the endpoint did not answer in time";
        return Refusal::new(RefusalKind::Stalled, message).after(Used::launch());
    }
    let message = format!("the endpoint was not reached: {}", in_words(error));
    Refusal::new(RefusalKind::Unreachable, message).after(Used::launch())
}

/// What an endpoint says that does not answer.
fn refused(status: u16, body: Option<&Value>, after_ms: Option<u64>) -> Refusal {
    let said = body.and_then(|body| body.pointer("/error/message")?.as_str());
    let said = said.map(|said| format!(": {}", told(said))).unwrap_or_default();
    let kind = kind_of_status(u64::from(status));
    let next = match kind {
        RefusalKind::NotLoggedIn => "; check the key with `cairn secret list`",
        RefusalKind::RateLimited => "; it is tried again later when the step has a `retry`",
        _ => "",
    };
    let message = format!("the endpoint answered with status {status}{said}{next}");
    let after_ms = after_ms.filter(|_| matches!(status, 429 | 503 | 529));
    Refusal { after_ms, ..Refusal::new(kind, message).after(Used::launch()) }
}
