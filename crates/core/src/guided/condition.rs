//! Conditions over a run's context.

use std::borrow::Cow;

use serde_json::Value;

use super::scene::Scene;

/// What a dotted path leads to. The `length` of a list or text is a number.
#[must_use]
pub fn lookup<'s>(scene: &'s Scene<'_>, path: &str) -> Option<Cow<'s, Value>> {
    // A whole name wins over its parts, since a key may hold a dot.
    if let Some(value) = scene.get(path) {
        return Some(Cow::Borrowed(value));
    }
    let (first, rest) = path.split_once('.')?;
    rest.split('.').try_fold(Cow::Borrowed(scene.get(first)?), member)
}

fn member<'s>(value: Cow<'s, Value>, name: &str) -> Option<Cow<'s, Value>> {
    // Only lengths are made here, and a number has no members.
    let Cow::Borrowed(value) = value else { return None };
    match value {
        Value::Object(members) => members.get(name).map(Cow::Borrowed),
        Value::Array(items) if name == "length" => Some(Cow::Owned(items.len().into())),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?).map(Cow::Borrowed),
        Value::String(text) if name == "length" => Some(Cow::Owned(text.chars().count().into())),
        _ => None,
    }
}

/// Whether a condition holds. One that makes no sense does not.
#[must_use]
pub fn holds(condition: &Value, scene: &Scene<'_>) -> bool {
    let Value::Object(parts) = condition else { return false };
    let inner = |name: &str| parts.get(name).and_then(Value::as_array);
    if let Some(all) = inner("and") {
        return all.iter().all(|part| holds(part, scene));
    }
    if let Some(any) = inner("or") {
        return any.iter().any(|part| holds(part, scene));
    }
    if let Some(not) = parts.get("not") {
        return !holds(not, scene);
    }
    let Some(path) = parts.get("var").and_then(Value::as_str) else { return false };
    let found = lookup(scene, path);
    let comparison = parts.iter().find(|(name, _)| *name != "var");
    match comparison {
        None => found.as_deref().is_some_and(truthy),
        Some((operator, wanted)) => compare(operator, found.as_deref(), wanted),
    }
}

fn compare(operator: &str, found: Option<&Value>, wanted: &Value) -> bool {
    let numbers = || Some((found?.as_f64()?, wanted.as_f64()?));
    let ordered = |test: fn(&f64, &f64) -> bool| numbers().is_some_and(|(a, b)| test(&a, &b));
    match operator {
        // What is not there equals null and nothing else.
        "equals" => same(found.unwrap_or(&Value::Null), wanted),
        "not_equals" => !same(found.unwrap_or(&Value::Null), wanted),
        "gt" => ordered(f64::gt),
        "gte" => ordered(f64::ge),
        "lt" => ordered(f64::lt),
        "lte" => ordered(f64::le),
        "in" => {
            wanted.as_array().zip(found).is_some_and(|(list, v)| list.iter().any(|w| same(v, w)))
        }
        "contains" => found.is_some_and(|value| contains(value, wanted)),
        _ => false,
    }
}

/// Equality of values; 1 and 1.0 are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Array(items), _) => items.iter().any(|item| same(item, wanted)),
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        _ => false,
    }
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64().is_some_and(|n| n != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(condition: &Value) -> bool {
        let context = json!({
            "risk": "High", "count": 3, "done": false, "tags": ["a", "b"],
            "file": {"path": "src/main.rs", "lines": [1, 2]}, "zero": 0, "empty": "",
        });
        let Value::Object(context) = context else { return false };
        holds(condition, &Scene::from(&context))
    }

    #[test]
    fn every_operator_compares_as_it_says() {
        for (condition, expected) in [
            (json!({"var": "risk", "equals": "High"}), true),
            (json!({"var": "risk", "equals": "high"}), false),
            (json!({"var": "count", "equals": 3.0}), true),
            (json!({"var": "missing", "equals": null}), true),
            (json!({"var": "missing", "not_equals": "x"}), true),
            (json!({"var": "risk", "not_equals": "High"}), false),
            (json!({"var": "count", "gt": 2}), true),
            (json!({"var": "count", "gt": 3}), false),
            (json!({"var": "count", "gte": 3}), true),
            (json!({"var": "count", "lt": 3}), false),
            (json!({"var": "count", "lte": 3}), true),
            (json!({"var": "missing", "lte": 10}), false),
            (json!({"var": "risk", "gt": 1}), false),
            (json!({"var": "risk", "in": ["Low", "High"]}), true),
            (json!({"var": "missing", "in": [null]}), false),
            (json!({"var": "tags", "contains": "b"}), true),
            (json!({"var": "file.path", "contains": "main"}), true),
            (json!({"var": "file.lines.length", "equals": 2}), true),
            (json!({"var": "file.lines.1", "equals": 2}), true),
            (json!({"var": "done"}), false),
            (json!({"var": "zero"}), false),
            (json!({"var": "empty"}), false),
            (json!({"var": "tags"}), true),
            (json!({"and": [{"var": "tags"}, {"var": "done"}]}), false),
            (json!({"or": [{"var": "tags"}, {"var": "done"}]}), true),
            (json!({"not": {"var": "done"}}), true),
            (json!({"var": "count", "resembles": 3}), false),
            (json!("nonsense"), false),
        ] {
            assert_eq!(check(&condition), expected, "{condition}");
        }
    }
}
