//! Values as text.

use std::borrow::Cow;

use serde_json::Value;

/// A value as it stands in a text: text as it is, anything else as JSON.
#[must_use]
pub fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed("null"),
        Value::Bool(true) => Cow::Borrowed("true"),
        Value::Bool(false) => Cow::Borrowed("false"),
        other => Cow::Owned(other.to_string()),
    }
}

/// What people call the type of a value.
pub(super) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The beginning of a value, for a message.
pub(super) fn shown(value: &Value) -> String {
    const SHOWN_MAX: usize = 40;
    // A long list is not written out to be cut again.
    match value {
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
        value => {
            let text = value.to_string();
            match text.char_indices().nth(SHOWN_MAX) {
                Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
                None => format!("`{text}`"),
            }
        }
    }
}
