//! Holds settings to the JSON schema of what takes them, and outputs to what is read of them.

use serde_json::Value;

use crate::diagnostic::Code;
use crate::read::{Spot, quoted};
use crate::source;

/// Says what is wrong with a value. Text with an expression in it may become anything.
pub(super) fn check(spot: &Spot<'_>, schema: &Value) {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<(&str, ())> =
            words.iter().filter_map(Value::as_str).map(|w| (w, ())).collect();
        spot.choice(&words);
        return;
    }
    if spot.node.as_text().is_some_and(|text| text.contains("{{") || text.contains("{%")) {
        return;
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        one => one.and_then(Value::as_str).into_iter().collect(),
    };
    if !types.is_empty() && !types.iter().any(|name| is_a(&spot.node.value, name)) {
        let words: Vec<&str> = types.iter().map(|name| word(name)).collect();
        spot.wrong_type(&words.join(" or "));
        return;
    }
    match &spot.node.value {
        source::Value::Number(number) => bounds(spot, schema, number.as_f64().unwrap_or_default()),
        source::Value::List(_) => {
            if let Some(items) = schema.get("items") {
                spot.items().iter().for_each(|item| check(item, items));
            }
        }
        source::Value::Map(_) => object(spot, schema),
        _ => {}
    }
}

/// Says what is wrong with the members of a map.
pub(super) fn object(spot: &Spot<'_>, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        if let Some(each) = schema.get("additionalProperties").filter(|each| each.is_object()) {
            spot.members().iter().for_each(|(_, member)| check(member, each));
        }
        return;
    };
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    let Some(fields) = spot.fields(&known) else { return };
    for (name, schema) in properties {
        fields.get(name).iter().for_each(|spot| check(spot, schema));
    }
    for name in required(schema) {
        fields.need(name);
    }
}

/// The fields that must be there.
pub(super) fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn bounds(spot: &Spot<'_>, schema: &Value, found: f64) {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    if let Some(min) = bound("minimum").filter(|min| found < *min) {
        spot.error(Code::InvalidValue, format!("this must be at least {min}"));
    }
    if let Some(max) = bound("maximum").filter(|max| found > *max) {
        spot.error(Code::InvalidValue, format!("this must be at most {max}"));
    }
}

fn is_a(value: &source::Value, name: &str) -> bool {
    match (name, value) {
        ("string", source::Value::Text(_)) | ("array", source::Value::List(_)) => true,
        ("object", source::Value::Map(_)) | ("boolean", source::Value::Flag(_)) => true,
        ("number", source::Value::Number(_)) => true,
        ("integer", source::Value::Number(number)) => number.is_i64() || number.is_u64(),
        _ => false,
    }
}

fn word(name: &str) -> &'static str {
    match name {
        "string" => "text",
        "array" => "a list",
        "object" => "a map",
        "boolean" => "true or false",
        _ => "a number",
    }
}

/// What is at a path of an output, as far as its schema says.
pub(super) enum Output<'s> {
    /// Something of this schema.
    Known(&'s Value),
    /// Anything.
    Open,
    /// There is no such field. These are there.
    Missing { place: usize, known: Vec<&'s str> },
}

/// Follows a path into an output.
pub(super) fn follow<'s>(mut schema: &'s Value, path: &[Option<&str>]) -> Output<'s> {
    for (place, name) in path.iter().enumerate() {
        let next = match name {
            None => schema.get("items"),
            Some(name) => match schema.get("properties").and_then(Value::as_object) {
                None => None,
                Some(properties) => match properties.get(*name) {
                    Some(next) => Some(next),
                    None => match schema.get("additionalProperties") {
                        Some(Value::Bool(true)) => None,
                        Some(each @ Value::Object(_)) => Some(each),
                        _ => {
                            let known = properties.keys().map(String::as_str).collect();
                            return Output::Missing { place, known };
                        }
                    },
                },
            },
        };
        match next {
            Some(next) => schema = next,
            None => return Output::Open,
        }
    }
    Output::Known(schema)
}

/// The place of the first name in a path that a value of this schema need not have: it is neither
/// required nor filled in.
pub(super) fn optional(mut schema: &Value, path: &[Option<&str>]) -> Option<usize> {
    for (place, name) in path.iter().enumerate() {
        let next = match name {
            None => schema.get("items"),
            Some(name) => {
                let next = schema.get("properties").and_then(|fields| fields.get(*name));
                let is_there = required(schema).any(|required| required == *name)
                    || next.is_some_and(|next| next.get("default").is_some());
                if next.is_some() && !is_there {
                    return Some(place);
                }
                next
            }
        };
        schema = next?;
    }
    None
}

/// `known are …`, for a hint.
pub(super) fn known_are(names: &[&str]) -> Option<String> {
    (!names.is_empty()).then(|| format!("known are {}", quoted(names)))
}
