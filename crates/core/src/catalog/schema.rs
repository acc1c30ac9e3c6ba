//! JSON schemas of the few forms that settings and outputs have.

use serde_json::{Value, json};

/// An object of these fields and no others.
#[must_use]
pub fn closed(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

/// The same, with what it is for.
#[must_use]
pub fn told(mut schema: Value, what: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), json!(what));
    }
    schema
}

/// The same, with how it may look.
#[must_use]
pub fn shown(mut schema: Value, example: &Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("examples".to_owned(), json!([example]));
    }
    schema
}

/// Anything.
#[must_use]
pub fn any() -> Value {
    json!({})
}

/// Text.
#[must_use]
pub fn text() -> Value {
    json!({"type": "string"})
}

/// A list of texts.
#[must_use]
pub fn texts() -> Value {
    json!({"type": "array", "items": text()})
}

/// Texts by name.
#[must_use]
pub fn texts_by_name() -> Value {
    json!({"type": "object", "additionalProperties": text()})
}

/// A whole number.
#[must_use]
pub fn whole() -> Value {
    json!({"type": "integer"})
}

/// A whole number that is not less than this.
#[must_use]
pub fn at_least(min: u64) -> Value {
    json!({"type": "integer", "minimum": min})
}

/// Yes or no.
#[must_use]
pub fn flag() -> Value {
    json!({"type": "boolean"})
}

/// One of some words.
#[must_use]
pub fn one_of(words: &[&str]) -> Value {
    json!({"enum": words})
}
