//! Finding a structured answer in what was said, and holding it to its schema.

use cairn_core::schema;
use serde_json::Value;

use super::request::{Refusal, RefusalKind, Reply, Request};

/// How much of an answer is told when it is not as it should be.
const TOLD_MAX: usize = 300;
/// How many faults are told.
const FAULTS_MAX: usize = 5;
/// How many places of a text are tried as the beginning of JSON.
const TRIES_MAX: usize = 32;

/// The reply with a structured answer that is as the schema asks, or why there is none.
pub(super) fn hold(mut reply: Reply, request: &Request) -> Result<Reply, Refusal> {
    let Some(wanted) = &request.schema else { return Ok(reply) };
    let refused = |kind, message: String, reply: &Reply| {
        Err(Refusal::new(kind, message).after(reply.used.clone()).saying(&reply.text))
    };
    let Some(found) = reply.structured.take().or_else(|| find(&reply.text, wanted)) else {
        let message = format!(
            "the answer contains no JSON, and the step asks for a structured result: {}",
            told(&reply.text)
        );
        return refused(RefusalKind::NoResult, message, &reply);
    };
    let faults = schema::faults(wanted, &found, "the answer");
    if !faults.is_empty() {
        let shown: Vec<&str> = faults.iter().take(FAULTS_MAX).map(String::as_str).collect();
        return refused(RefusalKind::InvalidResult, shown.join("; "), &reply);
    }
    reply.structured = Some(found);
    Ok(reply)
}

/// The value in a text: all of it, or else the first that fits, or the first there is.
fn find(text: &str, wanted: &Value) -> Option<Value> {
    let text = text.trim();
    let whole = serde_json::from_str(text).ok();
    if whole.is_some() {
        return whole;
    }
    let mut first = None;
    let mut from = 0;
    for _ in 0..TRIES_MAX {
        let Some(at) = text.get(from..).and_then(|rest| rest.find(['{', '['])) else { break };
        let start = from + at;
        let rest = text.get(start..).unwrap_or_default();
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                if schema::faults(wanted, &value, "").is_empty() {
                    return Some(value);
                }
                from = start + stream.byte_offset().max(1);
                first.get_or_insert(value);
            }
            _ => from = start + 1,
        }
    }
    first
}

/// The beginning of an answer, to be told.
pub(super) fn told(text: &str) -> String {
    match text.trim() {
        "" => "it is empty".to_owned(),
        text => {
            let start: String = text.chars().take(TOLD_MAX).collect();
            let more = if start.len() < text.len() { "…" } else { "" };
            format!("`{start}{more}`")
        }
    }
}

/// The known name that is nearest to one, when one is near.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    cairn_lang::diagnostic::nearest(name, known.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use cairn_core::id::SessionId;
    use serde_json::json;

    use super::*;

    fn held(text: &str, structured: Option<Value>) -> String {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let request = Request {
            schema: Some(schema),
            ..Request::new(SessionId::from_bits(1), "p", PathBuf::new())
        };
        let reply = Reply { text: text.to_owned(), structured, ..Reply::default() };
        match hold(reply, &request) {
            Ok(reply) => reply.structured.unwrap().to_string(),
            Err(refusal) => format!("{}: {}", refusal.kind.code(), refusal.message),
        }
    }

    #[test]
    fn an_answer_is_found_wherever_it_stands() {
        assert_eq!(held("ignored", Some(json!({"n": 1}))), r#"{"n":1}"#);
        assert_eq!(held(" {\"n\": 2} ", None), r#"{"n":2}"#);
        assert_eq!(held("Here:\n```json\n{\"n\": 3}\n```\nDone {not json}", None), r#"{"n":3}"#);
        assert_eq!(held("{\"x\": 1} and {\"n\": 4}", None), r#"{"n":4}"#);
    }

    #[test]
    fn what_is_no_answer_is_told_as_such() {
        assert_eq!(
            held("I would rather not.", None),
            "AGENT_NO_RESULT: the answer contains no JSON, and the step asks for a structured result: `I would rather not.`"
        );
        assert!(held("", None).ends_with("it is empty"));
        assert!(held("{\"n\": \"x\"}", None).starts_with("AGENT_INVALID_RESULT: `n` must be"));
        assert!(held(&"{".repeat(100_000), None).starts_with("AGENT_NO_RESULT"));
    }
}
