//! Whether what a client sends is a message at all. What is none is answered here: the
//! protocol's library passes over it in silence, and a client would wait for ever.

use serde_json::{Value, json};

/// The codes of JSON-RPC 2.0.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// The answer to what is no message; none when it is one.
pub(crate) fn fault(bytes: &[u8]) -> Option<Value> {
    let message: Value = match serde_json::from_slice(bytes) {
        Ok(message) => message,
        Err(error) => return Some(answer(PARSE_ERROR, format!("not JSON: {error}"), Value::Null)),
    };
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let is_message = message.get("jsonrpc") == Some(&json!("2.0"))
        && (message.get("method").is_some_and(Value::is_string)
            || message.get("result").is_some()
            || message.get("error").is_some());
    let told = match &message {
        _ if is_message => return None,
        Value::Array(_) => "a batch is not taken: send one message at a time",
        Value::Object(_) => "not a message: it needs `\"jsonrpc\": \"2.0\"` and a `method`",
        _ => "not a message: a JSON object is needed",
    };
    Some(answer(INVALID_REQUEST, told.to_owned(), id.unwrap_or_default()))
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
            ("7", INVALID_REQUEST, Value::Null),
            ("[]", INVALID_REQUEST, Value::Null),
            (r#"{"id":7,"method":"ping"}"#, INVALID_REQUEST, json!(7)),
            (r#"{"jsonrpc":"2.0","id":{},"method":1}"#, INVALID_REQUEST, Value::Null),
        ] {
            let told = fault(text.as_bytes()).unwrap();
            assert_eq!((&told["error"]["code"], &told["id"]), (&json!(code), &id), "{text}");
        }
    }
}
