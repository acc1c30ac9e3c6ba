//! `openai`: any endpoint that speaks the chat completions API.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::anthropic::{conversation, keep, need_key, need_model};
use super::cli::{number, text};
use super::endpoint::Post;
use super::request::{Refusal, RefusalKind, Reply, Request, Used};
use super::state::State;
use super::{Capabilities, Means, Provider};

/// The endpoint of the vendor.
const BASE_URL: &str = "https://api.openai.com/v1";

pub(super) struct Openai;

#[async_trait]
impl Provider for Openai {
    fn kind(&self) -> &'static str {
        "openai"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { schema: true, sessions: true, tools: false, program: false }
    }

    fn key_name(&self) -> Option<&'static str> {
        Some("OPENAI_API_KEY")
    }

    async fn ask(&self, request: &Request, means: &Means<'_>) -> Result<Reply, Refusal> {
        let model = need_model(request)?;
        let state = State::open(request).await?;
        let messages = conversation(&state, &request.prompt);
        let system = request.system.as_ref().map(|text| json!({"role": "system", "content": text}));
        let all: Vec<Value> = system.into_iter().chain(messages.iter().cloned()).collect();
        let mut body = Map::from_iter([
            ("model".to_owned(), json!(model)),
            ("messages".to_owned(), json!(all)),
        ]);
        if let Some(schema) = &request.schema {
            let schema = json!({"name": "answer", "schema": schema, "strict": false});
            body.insert(
                "response_format".to_owned(),
                json!({"type": "json_schema", "json_schema": schema}),
            );
        }
        if let Some(tokens) = request.tokens_max {
            body.insert("max_tokens".to_owned(), json!(tokens));
        }
        let base = means.settings.base_url.as_deref();
        // Endpoints of one's own often want no key.
        let key = match (means.key, base) {
            (None, Some(_)) => None,
            _ => Some(need_key(means, "OPENAI_API_KEY")?),
        };
        let base = base.unwrap_or(BASE_URL).trim_end_matches('/');
        let post = Post {
            url: format!("{base}/chat/completions"),
            headers: key
                .map(|key| ("authorization", format!("Bearer {key}")))
                .into_iter()
                .collect(),
            body: &Value::Object(body),
            timeout: request.timeout.min(request.stall),
        };
        let answer = means.endpoint.post(post, means.hidden).await?;
        let reply = read(&answer, model)?;
        keep(&state, messages, &reply.text);
        Ok(reply)
    }

    async fn check(&self, means: &Means<'_>) -> Result<String, Refusal> {
        if let Some(base) = &means.settings.base_url {
            return Ok(base.clone());
        }
        need_key(means, "OPENAI_API_KEY")?;
        Ok(BASE_URL.to_owned())
    }
}

/// What was answered.
fn read(answer: &Value, model: &str) -> Result<Reply, Refusal> {
    let used = Used {
        input_tokens: number(answer, "/usage/prompt_tokens"),
        output_tokens: number(answer, "/usage/completion_tokens"),
        model: Some(text(answer, "/model").unwrap_or(model).to_owned()),
        ..Used::launch()
    };
    let Some(message) = answer.pointer("/choices/0/message") else {
        let message = "the endpoint's answer is not a message";
        return Err(Refusal::new(RefusalKind::Server, message).after(used));
    };
    let declined = text(message, "/refusal").filter(|text| !text.is_empty());
    let filtered = text(answer, "/choices/0/finish_reason") == Some("content_filter");
    if declined.is_some() || filtered {
        let said = declined.unwrap_or_default();
        let message = "the model declined to answer";
        return Err(Refusal::new(RefusalKind::Refused, message).after(used).saying(said));
    }
    let text = text(message, "/content").unwrap_or_default().to_owned();
    Ok(Reply { text, used, ..Reply::default() })
}
