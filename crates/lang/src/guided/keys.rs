//! Keys of the context that the answer to a step must set.

use cairn_core::canonical::StrictValue;
use cairn_core::plan::ContextKey;
use serde_json::{Value, json};

use crate::diagnostic::Code;
use crate::read::{Fields, Spot};

/// What a key may be where any value of a type is fine.
const TYPES: [(&str, Option<&str>); 7] = [
    ("any", None),
    ("boolean", Some("boolean")),
    ("integer", Some("integer")),
    ("list", Some("array")),
    ("map", Some("object")),
    ("number", Some("number")),
    ("text", Some("string")),
];

/// The keys that a step declares.
pub(super) fn keys(fields: &Fields<'_>) -> Vec<ContextKey> {
    let Some(spot) = fields.get("contextKeys") else { return Vec::new() };
    let members = spot.members();
    if spot.is_map() && members.is_empty() {
        spot.error_hint(Code::InvalidValue, "there are no keys", "leave it out");
    }
    members.into_iter().filter_map(|(name, spot)| key(name, &spot)).collect()
}

fn key(name: &str, spot: &Spot<'_>) -> Option<ContextKey> {
    if !is_name(name) {
        let hint = "use letters, digits, `_` and `-`";
        spot.error_hint(Code::InvalidId, format!("`{name}` cannot be a key"), hint);
        return None;
    }
    let schema = match spot.is_list() {
        true => {
            let items = spot.items();
            if items.is_empty() {
                spot.error(Code::InvalidValue, "the list of values is empty");
            }
            let values: Vec<Value> = items.iter().filter_map(word).collect();
            json!({"enum": values})
        }
        false => match spot.choice(&TYPES)? {
            Some(kind) => json!({"type": kind}),
            None => json!({}),
        },
    };
    Some(ContextKey { name: name.to_owned(), required: true, schema: StrictValue::new(schema) })
}

/// One of the values that a key may have.
fn word(spot: &Spot<'_>) -> Option<Value> {
    let value = spot.node.to_json();
    match value {
        Value::String(_) | Value::Bool(_) | Value::Number(_) => Some(value),
        _ => {
            spot.wrong_type("text, a number, true or false");
            None
        }
    }
}

fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(plain)
}
