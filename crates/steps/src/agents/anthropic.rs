//! `anthropic`: the messages API.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::cli::{number, text};
use super::endpoint::Post;
use super::request::{Refusal, RefusalKind, Reply, Request, Used};
use super::state::State;
use super::{Capabilities, Means, Provider};

/// The endpoint of the vendor.
const BASE_URL: &str = "https://api.anthropic.com";
/// The version of the interface.
const VERSION: &str = "2023-06-01";
/// How many tokens an answer may have, when nobody says.
const TOKENS_MAX: u64 = 4_096;
/// The tool by which a structured answer is given.
const TOOL: &str = "answer";

pub(super) struct Anthropic;

#[async_trait]
impl Provider for Anthropic {
    fn kind(&self) -> &'static str {
        "anthropic"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { schema: true, sessions: true, tools: false, program: false }
    }

    fn key_name(&self) -> Option<&'static str> {
        Some("ANTHROPIC_API_KEY")
    }

    async fn ask(&self, request: &Request, means: &Means<'_>) -> Result<Reply, Refusal> {
        let model = need_model(request)?;
        let key = need_key(means, "ANTHROPIC_API_KEY")?;
        let state = State::open(request).await?;
        let messages = conversation(&state, &request.prompt);
        let mut body = Map::from_iter([
            ("model".to_owned(), json!(model)),
            ("max_tokens".to_owned(), json!(request.tokens_max.unwrap_or(TOKENS_MAX))),
            ("messages".to_owned(), json!(messages)),
        ]);
        if let Some(system) = &request.system {
            body.insert("system".to_owned(), json!(system));
        }
        if let Some(schema) = &request.schema {
            let what = "Gives the answer.";
            body.insert(
                "tools".to_owned(),
                json!([{"name": TOOL, "description": what, "input_schema": schema}]),
            );
            body.insert("tool_choice".to_owned(), json!({"type": "tool", "name": TOOL}));
        }
        let base = means.settings.base_url.as_deref().unwrap_or(BASE_URL).trim_end_matches('/');
        let base = base.trim_end_matches("/v1");
        let post = Post {
            url: format!("{base}/v1/messages"),
            headers: vec![("x-api-key", key), ("anthropic-version", VERSION.to_owned())],
            body: &Value::Object(body),
            timeout: request.timeout.min(request.stall),
        };
        let answer = means.endpoint.post(post, means.hidden).await?;
        let reply = read(&answer, model)?;
        keep(&state, messages, &reply.text);
        Ok(reply)
    }

    async fn check(&self, means: &Means<'_>) -> Result<String, Refusal> {
        need_key(means, "ANTHROPIC_API_KEY")?;
        Ok(means.settings.base_url.clone().unwrap_or_else(|| BASE_URL.to_owned()))
    }
}

/// What was answered.
fn read(answer: &Value, model: &str) -> Result<Reply, Refusal> {
    let used = Used {
        input_tokens: number(answer, "/usage/input_tokens")
            + number(answer, "/usage/cache_creation_input_tokens")
            + number(answer, "/usage/cache_read_input_tokens"),
        output_tokens: number(answer, "/usage/output_tokens"),
        model: Some(text(answer, "/model").unwrap_or(model).to_owned()),
        ..Used::launch()
    };
    let Some(blocks) = answer.get("content").and_then(Value::as_array) else {
        let message = "the endpoint's answer is not a message";
        return Err(Refusal::new(RefusalKind::Server, message).after(used));
    };
    let said: Vec<&str> = blocks.iter().filter_map(|block| text(block, "/text")).collect();
    let said = said.join("");
    if text(answer, "/stop_reason") == Some("refusal") {
        let message = "the model declined to answer";
        return Err(Refusal::new(RefusalKind::Refused, message).after(used).saying(said));
    }
    let given = blocks.iter().find(|block| text(block, "/name") == Some(TOOL));
    let structured = given.and_then(|block| block.get("input")).cloned();
    let text = match (&structured, said.is_empty()) {
        (Some(value), true) => value.to_string(),
        _ => said,
    };
    Ok(Reply { text, structured, used, ..Reply::default() })
}

/// The model that is asked: an endpoint has none of its own.
pub(super) fn need_model(request: &Request) -> Result<&str, Refusal> {
    request.model.as_deref().ok_or_else(|| {
        let message = "no model is set; give the step a `model`, or set one for the provider in the \
                       configuration";
        Refusal::new(RefusalKind::Unconfigured, message)
    })
}

/// The key: an endpoint has no login of its own.
pub(super) fn need_key(means: &Means<'_>, usual: &str) -> Result<String, Refusal> {
    let name = means.settings.api_key.as_deref().unwrap_or(usual);
    let key = means.key.map(|key| key.expose().to_owned());
    key.ok_or_else(|| {
        let message = format!("there is no key; set it with `cairn secret set {name}`");
        Refusal::new(RefusalKind::NotLoggedIn, message)
    })
}

/// The messages so far, and the new one.
pub(super) fn conversation(state: &State, prompt: &str) -> Vec<Value> {
    let kept = state.before.as_ref().and_then(|kept| kept.get("messages")?.as_array());
    let mut messages = kept.cloned().unwrap_or_default();
    messages.push(json!({"role": "user", "content": prompt}));
    messages
}

/// Keeps the messages for the next time.
pub(super) fn keep(state: &State, mut messages: Vec<Value>, said: &str) {
    messages.push(json!({"role": "assistant", "content": said}));
    state.keep(&json!({"messages": messages}));
}
