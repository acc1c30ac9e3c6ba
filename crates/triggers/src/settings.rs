//! Reading what a trigger is told, and describing it.

use cairn_core::catalog::SettingFault;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The settings of a trigger, as their type.
pub(crate) fn read<T: DeserializeOwned>(config: &Value) -> Result<T, Vec<SettingFault>> {
    serde_json::from_value(config.clone()).map_err(|error| {
        let hint = "write the fields as the guide lists them";
        vec![SettingFault::new("", format!("these settings cannot be read: {error}"), hint)]
    })
}

/// What is wrong with settings that fit their schema. What does not fit is told elsewhere.
pub(crate) fn faults<T: DeserializeOwned, W>(
    config: &Value,
    watch: impl FnOnce(T) -> Result<W, Vec<SettingFault>>,
) -> Vec<SettingFault> {
    let Ok(settings) = serde_json::from_value(config.clone()) else { return Vec::new() };
    watch(settings).err().unwrap_or_default()
}

/// The schema of an object of these fields and no others.
pub(crate) fn closed(properties: Value, required: &[&str], what: &str, example: Value) -> Value {
    json!({
        "type": "object", "description": what, "properties": properties, "required": required,
        "additionalProperties": false, "examples": [example],
    })
}

/// The schema of text.
pub(crate) fn text(what: &str) -> Value {
    json!({"type": "string", "description": what})
}

/// The schema of a list of texts.
pub(crate) fn texts(what: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": what})
}

/// The schema of one of several words.
pub(crate) fn one_of(words: &[&str], what: &str) -> Value {
    json!({"enum": words, "description": what})
}

/// The schema of a whole number in a range.
pub(crate) fn whole(min: u64, max: u64, what: &str) -> Value {
    json!({"type": "integer", "minimum": min, "maximum": max, "description": what})
}

/// The schema of a yes or no.
pub(crate) fn flag(what: &str) -> Value {
    json!({"type": "boolean", "description": what})
}
