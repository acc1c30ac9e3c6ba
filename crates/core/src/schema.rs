//! Whether a value is as a schema asks.
//!
//! The compiler lets no other words into a plan than those that are known here.

use regex::Regex;
use serde_json::{Map, Value};

use crate::expression::takes_anything;

/// What a value as a whole is called in most places.
const WHOLE: &str = "the artifact";

/// What is wrong with a value, each with the path to it; empty when nothing is. The value
/// as a whole is called `what`.
#[must_use]
pub fn faults(schema: &Value, value: &Value, what: &str) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, value, "", &mut faults);
    if what != WHOLE {
        for fault in faults.iter_mut().filter(|fault| fault.starts_with(WHOLE)) {
            fault.replace_range(..WHOLE.len(), what);
        }
    }
    faults
}

/// Whether values of a schema are of few or harmless forms: numbers, flags, fixed words and
/// texts whose whole form is written out.
#[must_use]
pub fn is_harmless(schema: &Value) -> bool {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    schema.get("enum").is_some()
        || schema.get("const").is_some()
        || pattern.is_some_and(is_anchored)
        || matches!(
            schema.get("type").and_then(Value::as_str),
            Some("integer" | "number" | "boolean")
        )
}

/// Whether a pattern is of whole texts: both ends are anchored, in each of its choices.
fn is_anchored(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
    // A choice outside of a group, or inside of the only one, would end at the anchors. With
    // `(?m)` they would be those of a line.
    let is_form = |inner: &str| {
        !inner.ends_with('\\')
            && !inner.contains('|')
            && !inner.replace("(?:", "(").contains("(?")
            && !takes_anything(inner)
    };
    inner.is_some_and(is_form)
}

/// What in a value is not of the harmless form that a schema says it has. Anything else about it
/// is left alone, and so is what is not there.
#[must_use]
pub fn forms(schema: &Value, value: &Value, what: &str) -> Vec<String> {
    let mut faults = Vec::new();
    walk_forms(schema, value, what, &mut faults);
    faults
}

fn walk_forms(schema: &Value, value: &Value, what: &str, found: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    if is_harmless(schema) {
        return found.extend(faults(schema, value, what));
    }
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (place, item) in items.iter().enumerate() {
                walk_forms(schema, item, &format!("{what}[{place}]"), found);
            }
        }
        Value::Object(members) => {
            let own = schema.get("properties").and_then(Value::as_object);
            let each = schema.get("additionalProperties");
            for (name, member) in members {
                let schema = own.and_then(|own| own.get(name)).or(each);
                let Some(schema) = schema else { continue };
                walk_forms(schema, member, &format!("{what}.{name}"), found);
            }
        }
        _ => {}
    }
}

fn check(schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
    let Value::Object(rules) = schema else { return };
    let at = if path.is_empty() { WHOLE.to_owned() } else { format!("`{path}`") };
    let wanted: Vec<&str> = match rules.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        one => one.and_then(Value::as_str).into_iter().collect(),
    };
    if !wanted.is_empty() && !wanted.iter().any(|wanted| is_a(wanted, value)) {
        let wanted: Vec<&str> = wanted.into_iter().map(article).collect();
        faults.push(format!("{at} must be {}, and is {}", wanted.join(" or "), kind(value)));
        return;
    }
    if let Some(wanted) = rules.get("const")
        && wanted != value
    {
        faults.push(format!("{at} must be {wanted}, and is {}", short(value)));
    }
    if let Some(allowed) = rules.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let words: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        faults.push(format!("{at} must be one of {}, and is {}", words.join(", "), short(value)));
    }
    bounds(rules, value, &at, faults);
    if let Value::Array(items) = value
        && let Some(schema) = rules.get("items")
    {
        for (place, item) in items.iter().enumerate() {
            check(schema, item, &format!("{path}[{place}]"), faults);
        }
    }
    if let Value::Object(members) = value {
        object(rules, members, path, faults);
    }
}

fn bounds(rules: &Map<String, Value>, value: &Value, at: &str, faults: &mut Vec<String>) {
    let limit = |name: &str| rules.get(name).and_then(Value::as_f64);
    let mut within = |found: f64, min: &str, max: &str, what: &str| {
        if let Some(min) = limit(min).filter(|min| found < *min) {
            faults.push(format!("{at} must be at least {min}{what}, and is {found}"));
        }
        if let Some(max) = limit(max).filter(|max| found > *max) {
            faults.push(format!("{at} must be at most {max}{what}, and is {found}"));
        }
    };
    let count = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    match value {
        Value::Number(number) => {
            within(number.as_f64().unwrap_or_default(), "minimum", "maximum", "");
        }
        Value::Array(items) => within(count(items.len()), "minItems", "maxItems", " items"),
        Value::String(text) => {
            // Blanks alone say nothing.
            let length = if text.trim().is_empty() { 0 } else { text.chars().count() };
            within(count(length), "minLength", "maxLength", " characters");
            let pattern = rules.get("pattern").and_then(Value::as_str);
            let matches = |pattern: &str| {
                crate::pattern::is_small(pattern)
                    && Regex::new(pattern).is_ok_and(|r| r.is_match(text))
            };
            if let Some(pattern) = pattern.filter(|pattern| !matches(pattern)) {
                faults.push(format!("{at} must match `{pattern}`"));
            }
        }
        _ => {}
    }
}

fn object(
    rules: &Map<String, Value>,
    members: &Map<String, Value>,
    path: &str,
    faults: &mut Vec<String>,
) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    for name in rules.get("required").and_then(Value::as_array).into_iter().flatten() {
        if let Some(name) = name.as_str().filter(|name| !members.contains_key(*name)) {
            faults.push(format!("`{}` is missing", below(name)));
        }
    }
    let properties = rules.get("properties").and_then(Value::as_object);
    if rules.get("additionalProperties") == Some(&Value::Bool(false)) {
        let known = |name: &str| properties.is_some_and(|known| known.contains_key(name));
        let unknown = members.keys().filter(|name| !known(name));
        faults.extend(unknown.map(|name| format!("`{}` is not known", below(name))));
    }
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(value) = members.get(name) {
            check(schema, value, &below(name), faults);
        }
    }
}

fn is_a(wanted: &str, value: &Value) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

fn article(wanted: &str) -> &str {
    match wanted {
        "object" => "a map",
        "array" => "a list",
        "string" => "text",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        other => other,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_word_of_a_schema_is_looked_at() {
        let told = [
            (json!({"type": "object"}), json!([])),
            (json!({"type": ["string", "null"]}), json!(3)),
            (json!({"minimum": 1}), json!(0)),
            (json!({"maximum": 1}), json!(2)),
            (json!({"minLength": 1}), json!(" ")),
            (json!({"maxLength": 1}), json!("ab")),
            (json!({"minItems": 1}), json!([])),
            (json!({"maxItems": 0}), json!([1])),
            (json!({"pattern": "^a"}), json!("b")),
            (json!({"enum": [1, 2]}), json!(3)),
            (json!({"const": 1}), json!(3)),
            (json!({"required": ["a"]}), json!({})),
            (json!({"properties": {"a": {}}, "additionalProperties": false}), json!({"b": 1})),
            (json!({"items": {"properties": {"a": {"type": "integer"}}}}), json!([{"a": 1.5}])),
        ]
        .map(|(schema, value)| faults(&schema, &value, WHOLE).join("; "));
        assert_snapshot!(told.join("\n"), @r"
        the artifact must be a map, and is a list
        the artifact must be text or null, and is a number
        the artifact must be at least 1, and is 0
        the artifact must be at most 1, and is 2
        the artifact must be at least 1 characters, and is 0
        the artifact must be at most 1 characters, and is 2
        the artifact must be at least 1 items, and is 0
        the artifact must be at most 0 items, and is 1
        the artifact must match `^a`
        the artifact must be one of 1, 2, and is 3
        the artifact must be 1, and is 3
        `a` is missing
        `b` is not known
        `[0].a` must be a whole number, and is a number
        ");
        let several = json!({"type": ["string", "null"]});
        assert!(faults(&several, &json!("a"), WHOLE).is_empty());
        assert!(faults(&several, &json!(null), WHOLE).is_empty());
    }
}
