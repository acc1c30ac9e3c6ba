//! Whether what a client sends is a message at all. What is none is answered here: the
//! protocol's library passes over it in silence, and a client would wait for ever.

use cairn_api::Error;
use cairn_api::arguments::Problem;
use cairn_core::canonical;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::handler;

/// The codes of JSON-RPC 2.0.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
/// What the parameters of a message begin with.
const PARAMS: &[u8] = b"\"params\"";

/// The answer to what is no message; none when it is one.
pub(crate) fn fault(bytes: &[u8]) -> Option<Value> {
    let message: Value = match serde_json::from_slice(bytes) {
        Ok(message) => message,
        Err(error) => return Some(unreadable(bytes, &error)),
    };
    let id = message.get("id").filter(|id| is_id(id)).cloned();
    let is_message = message.get("jsonrpc") == Some(&json!("2.0"))
        && (message.get("method").is_some_and(Value::is_string)
            || message.get("result").is_some()
            || message.get("error").is_some());
    let told = match &message {
        _ if is_message => return ambiguous(bytes, &message),
        Value::Array(_) => "a batch is not taken: send one message at a time",
        Value::Object(_) => "not a message: it needs `\"jsonrpc\": \"2.0\"` and a `method`",
        _ => "not a message: a JSON object is needed",
    };
    Some(answer(INVALID_REQUEST, told.to_owned(), id.unwrap_or_default()))
}

/// The answer to a call that two readers could understand differently: a key that stands twice
/// in one object, or an integer that would be rounded without a word.
fn ambiguous(bytes: &[u8], message: &Value) -> Option<Value> {
    message.get("method").filter(|method| *method == "tools/call")?;
    use canonical::Error::{DuplicateKey, IntegerTooLarge};
    match canonical::parse::<Value>(bytes) {
        Err(error @ (DuplicateKey(_) | IntegerTooLarge(_))) => {
            let fix = "send each key once, and integers beyond 2^53 as strings";
            let id = message.get("id").filter(|id| is_id(id)).cloned().unwrap_or_default();
            Some(refused(&id, error.to_string(), fix))
        }
        _ => None,
    }
}

/// The result of a call that no tool gets to see.
fn refused(id: &Value, problem: String, fix: &str) -> Value {
    let error = Error::from(Problem::new("arguments", problem, fix));
    json!({"jsonrpc": "2.0", "id": id, "result": handler::refused(&error)})
}

/// The answer to a message of which only the beginning was read. Its id stands in front of its
/// parameters, where every client writes it.
pub(crate) fn too_long(bytes: &[u8], max: usize) -> Value {
    let head = bytes.windows(PARAMS.len()).position(|part| part == PARAMS);
    let head = head.and_then(|end| bytes.get(..end)).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let head = format!("{}}}", head.trim_end().trim_end_matches(','));
    let id = serde_json::from_str::<Value>(&head).ok().and_then(|head| head.get("id").cloned());
    let id = id.filter(is_id).unwrap_or_default();
    let told = format!(
        "the message is longer than {max} bytes and was not read: put long texts into files and \
         send their paths"
    );
    answer(INVALID_REQUEST, told, id)
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}

/// What shows of a message whose values cannot all be read. The rest of it is passed over,
/// whatever it holds.
#[derive(Deserialize)]
struct Outline {
    id: Value,
    method: String,
}

/// The answer to what cannot be read. Whoever waits for it waits under its id, so that is
/// looked for once more.
fn unreadable(bytes: &[u8], error: &serde_json::Error) -> Value {
    let problem = format!("not JSON that can be read: {error}");
    match serde_json::from_slice::<Outline>(bytes) {
        Ok(Outline { id, method }) if is_id(&id) && method == "tools/call" => {
            let fix = "send whole characters (no half of a surrogate pair), numbers that a 64-bit float can hold, and at most 120 levels of nesting";
            refused(&id, problem, fix)
        }
        Ok(Outline { id, .. }) if is_id(&id) => answer(PARSE_ERROR, problem, id),
        _ => answer(PARSE_ERROR, problem, Value::Null),
    }
}

fn answer(code: i32, message: String, id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_pass() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":"a","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        ] {
            assert_eq!(fault(message.as_bytes()), None, "{message}");
        }
        for (text, code, id) in [
            ("{", PARSE_ERROR, Value::Null),
            ("hello", PARSE_ERROR, Value::Null),
            ("\u{0}", PARSE_ERROR, Value::Null),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list""#, PARSE_ERROR, Value::Null),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1e400}}"#,
                PARSE_ERROR,
                json!(7),
            ),
            (r#"{"method":"ping","params":"\ud83c","id":"a"}"#, PARSE_ERROR, json!("a")),
            (r#"{"id":"\ud83c","method":"ping"}"#, PARSE_ERROR, Value::Null),
            ("7", INVALID_REQUEST, Value::Null),
            ("[]", INVALID_REQUEST, Value::Null),
            (r#"{"id":7,"method":"ping"}"#, INVALID_REQUEST, json!(7)),
            (r#"{"jsonrpc":"2.0","id":{},"method":1}"#, INVALID_REQUEST, Value::Null),
        ] {
            let told = fault(text.as_bytes()).unwrap();
            assert_eq!((&told["error"]["code"], &told["id"]), (&json!(code), &id), "{text}");
        }
    }

    #[test]
    fn a_call_that_cannot_be_read_is_refused_under_its_id() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let large = "9".repeat(30);
        for value in [
            r#""Fixed \ud83c""#,
            &deep,
            "1e400",
            "{\"\\udc00\":1}",
            "{\"b\":1,\"b\":2}",
            "9007199254740993",
            &large,
        ] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"continue_workflow","arguments":{{"context":{{"a":{value}}}}}}}}}"#
            );
            let told = fault(text.as_bytes()).unwrap();
            assert_eq!(told["id"], 7, "{value}");
            assert_eq!(told["result"]["isError"], true, "{value}");
            assert_eq!(told["result"]["structuredContent"]["code"], "VALIDATION_ERROR", "{value}");
        }
    }
}
