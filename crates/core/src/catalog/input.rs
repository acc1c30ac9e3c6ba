//! What a trigger asks for: the fields of `event.payload`, each with its rules.
//!
//! The compiler relies on these rules, and the engine begins no run with a payload that breaks
//! them. Objects may have fields of their own, to any depth: what is said of the payload as a
//! whole holds for each of them too.

use regex::Regex;
use serde_json::{Map, Value, json};

use super::SettingFault;
use crate::pattern;

/// What a field may say of itself.
const KEYWORDS: [&str; 11] = [
    "default",
    "description",
    "enum",
    "items",
    "maximum",
    "minimum",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
/// How long a pattern may be.
const PATTERN_MAX: usize = 1_000;
/// How many names the place of a rule may have: a field inside another adds two.
const DEPTH_MAX: usize = 33;

type Rules = Map<String, Value>;

/// What is wrong with the rules of an input.
#[must_use]
pub fn faults(rules: &Rules) -> Vec<SettingFault> {
    let mut faults = Vec::new();
    for (name, rule) in rules {
        field_faults(name, rule, &format!("input.{name}"), &mut faults);
    }
    faults
}

fn field_faults(name: &str, rule: &Value, place: &str, faults: &mut Vec<SettingFault>) {
    let known = faults.len();
    let mut fault = |inner: &str, message: String, hint: &str| {
        faults.push(SettingFault::new(format!("{place}{inner}"), message, hint));
    };
    let Some(rule) = rule.as_object() else {
        let message = format!("`{name}` does not say what it is");
        return fault("", message, "write a map, such as `{type: string}`");
    };
    if place.split('.').count() > DEPTH_MAX {
        let message = format!("`{name}` stands inside too many other fields");
        return fault("", message, "take the inner ones out, or declare them as `type: object`");
    }
    for keyword in rule.keys().filter(|keyword| !KEYWORDS.contains(&keyword.as_str())) {
        let message = format!("a field of the input has no `{keyword}`");
        fault(&format!(".{keyword}"), message, "see the guide for what it has");
    }
    let kind = rule.get("type").and_then(Value::as_str);
    if !kind.is_some_and(|kind| TYPES.contains(&kind)) {
        let message = format!("`{name}` is of no type that there is");
        let hint = "say `type`: string, number, integer, boolean, array or object";
        fault(if rule.contains_key("type") { ".type" } else { "" }, message, hint);
    }
    if rule.get("pattern").is_some_and(|pattern| regex(pattern).is_none()) {
        let message = format!("the pattern of `{name}` is no regular expression");
        fault(".pattern", message, "write one such as `^[a-z]+$`");
    }
    let only = [
        ("pattern", "string", "texts"),
        ("properties", "object", "objects"),
        ("items", "array", "lists"),
    ];
    for (keyword, wanted, who) in only {
        let is_known = kind.is_some_and(|kind| TYPES.contains(&kind));
        if rule.contains_key(keyword) && is_known && kind != Some(wanted) {
            let message = format!("`{name}` has `{keyword}`, and only {who} have that");
            fault(
                &format!(".{keyword}"),
                message,
                &format!("say `type: {wanted}`, or leave it out"),
            );
        }
    }
    required_faults(name, rule, &mut fault);
    if let Some(items) = rule.get("items") {
        field_faults(&format!("{name}[]"), items, &format!("{place}.items"), faults);
    }
    for (inner, rule) in properties(rule).into_iter().flatten() {
        let place = format!("{place}.properties.{inner}");
        field_faults(&format!("{name}.{inner}"), rule, &place, faults);
    }
    if faults.len() > known {
        return;
    }
    let mut default = rule.get("default").cloned();
    let misfits = default.as_mut().map(|default| held(rule, default, name)).unwrap_or_default();
    if let Some(misfit) = misfits.first() {
        let message = format!("the default of {}", misfit.message);
        let hint = "write a value that its own rules allow";
        faults.push(SettingFault::new(format!("{place}.default"), message, hint));
    }
}

/// `required` says whether the field must be there, or lists those of an object that must.
fn required_faults(name: &str, rule: &Rules, fault: &mut dyn FnMut(&str, String, &str)) {
    let listed = match rule.get("required") {
        None | Some(Value::Bool(_)) => return,
        Some(Value::Array(listed)) => listed,
        Some(_) => {
            let message = format!("`required` of `{name}` is neither true nor false");
            return fault(".required", message, "write `true`, or list fields of the object");
        }
    };
    let known = properties(rule);
    let is_known = |listed: &Value| {
        let name = listed.as_str();
        name.zip(known).is_some_and(|(name, known)| known.contains_key(name))
    };
    if let Some(unknown) = listed.iter().find(|listed| !is_known(listed)) {
        let message = format!("`required` of `{name}` lists {unknown}, which it does not have");
        fault(".required", message, "list fields that stand in its `properties`");
    }
}

fn properties(rule: &Rules) -> Option<&Rules> {
    rule.get("properties").and_then(Value::as_object)
}

/// Whether a field of these rules must be given.
fn is_required(name: &str, rule: &Rules, listed: &[Value]) -> bool {
    rule.get("required") == Some(&Value::Bool(true))
        || listed.iter().any(|listed| listed.as_str() == Some(name))
}

/// The JSON schema of a payload that fits: with no rules, any object.
#[must_use]
pub fn schema(rules: &Rules) -> Value {
    fields_schema(rules, &[])
}

fn fields_schema(rules: &Rules, listed: &[Value]) -> Value {
    let empty = Map::new();
    let rule = |value: &'_ Value| value.as_object().cloned().unwrap_or_default();
    let required: Vec<&String> = rules
        .iter()
        .filter(|(name, value)| is_required(name, value.as_object().unwrap_or(&empty), listed))
        .map(|(name, _)| name)
        .collect();
    let properties: Rules =
        rules.iter().map(|(name, value)| (name.clone(), field_schema(&rule(value)))).collect();
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": properties.is_empty(),
    })
}

fn field_schema(rule: &Rules) -> Value {
    let mut schema = rule.clone();
    let required = schema.remove("required");
    if let Some(inner) = properties(rule) {
        let listed = required.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        if let Value::Object(inner) = fields_schema(inner, &listed) {
            schema.extend(inner);
        }
    }
    if let Some(items) = rule.get("items").and_then(Value::as_object) {
        schema.insert("items".to_owned(), field_schema(items));
    }
    Value::Object(schema)
}

/// A payload with its defaults, or what is wrong with it. Without rules anything is taken.
pub fn fill(rules: &Rules, given: Value) -> Result<Value, Vec<SettingFault>> {
    let mut given = match given {
        Value::Null => Map::new(),
        Value::Object(given) => given,
        _ => {
            let hint = "send the fields by name, such as `{\"days\": 7}`";
            return Err(vec![SettingFault::new("", "the input is not an object", hint)]);
        }
    };
    let mut faults = Vec::new();
    if !rules.is_empty() {
        fill_fields(rules, &[], &mut given, "", &mut faults);
    }
    if faults.is_empty() { Ok(Value::Object(given)) } else { Err(faults) }
}

/// Holds the fields of an object to their rules, and gives those that are left out their
/// defaults.
fn fill_fields(
    rules: &Rules,
    listed: &[Value],
    given: &mut Map<String, Value>,
    path: &str,
    faults: &mut Vec<SettingFault>,
) {
    let place = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    let known: Vec<&str> = rules.keys().map(String::as_str).collect();
    for name in given.keys().filter(|name| !rules.contains_key(*name)) {
        let hint = format!("known are {}", known.join(", "));
        let whole = if path.is_empty() { "the input".to_owned() } else { format!("`{path}`") };
        let message = format!("{whole} has no field `{name}`");
        faults.push(SettingFault::new(place(name), message, hint));
    }
    let empty = Map::new();
    for (name, rule) in rules {
        let rule = rule.as_object().unwrap_or(&empty);
        match (given.get_mut(name), rule.get("default")) {
            (Some(value), _) => faults.extend(held(rule, value, &place(name))),
            (None, Some(default)) => {
                let mut default = default.clone();
                faults.extend(held(rule, &mut default, &place(name)));
                given.insert(name.clone(), default);
            }
            (None, None) if is_required(name, rule, listed) => {
                let message = format!("`{}` is missing", place(name));
                faults.push(SettingFault::new(place(name), message, "give it a value"));
            }
            (None, None) => {}
        }
    }
}

/// Holds a value to its rules; gives what is wrong with it.
fn held(rule: &Rules, value: &mut Value, path: &str) -> Vec<SettingFault> {
    if let Some(why) = misfit(value, rule) {
        return vec![SettingFault::new(path, format!("`{path}` {why}"), "correct the value")];
    }
    let mut faults = Vec::new();
    match value {
        Value::Array(values) => {
            if let Some(items) = rule.get("items").and_then(Value::as_object) {
                for (place, value) in values.iter_mut().enumerate() {
                    faults.extend(held(items, value, &format!("{path}.{place}")));
                }
            }
        }
        Value::Object(members) => {
            let listed = rule.get("required").and_then(Value::as_array);
            if let Some(rules) = properties(rule) {
                let listed = listed.map(Vec::as_slice).unwrap_or_default();
                fill_fields(rules, listed, members, path, &mut faults);
            }
        }
        _ => {}
    }
    faults
}

/// Why a value by itself is not what its rules ask for.
fn misfit(value: &Value, rule: &Rules) -> Option<String> {
    let kind = rule.get("type").and_then(Value::as_str).unwrap_or_default();
    let fits = match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    if !fits {
        return Some(format!("is not of the type `{kind}`"));
    }
    if let Some(choices) = rule.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return Some(format!("is not one of {}", choices.join(", ")));
    }
    if let (Some(pattern), Some(text)) = (rule.get("pattern"), value.as_str())
        && !regex(pattern).is_some_and(|pattern| pattern.is_match(text))
    {
        return Some("does not fit its pattern".to_owned());
    }
    let bound = |name: &str| rule.get(name).and_then(Value::as_f64).zip(value.as_f64());
    if let Some((min, _)) = bound("minimum").filter(|(min, value)| value < min) {
        return Some(format!("is less than {min}"));
    }
    let (max, _) = bound("maximum").filter(|(max, value)| value > max)?;
    Some(format!("is more than {max}"))
}

fn regex(pattern: &Value) -> Option<Regex> {
    let pattern = pattern.as_str().filter(|pattern| pattern.len() <= PATTERN_MAX)?;
    // What is too large is not even built.
    pattern::is_small(pattern).then(|| Regex::new(pattern).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rules: &Value) -> Rules {
        rules.as_object().cloned().unwrap()
    }

    fn told(faults: &[SettingFault]) -> String {
        let lines = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn order() -> Rules {
        rules(&json!({
            "order": {"type": "object", "required": true, "properties": {
                "id": {"type": "integer", "required": true},
                "place": {"type": "object", "required": ["city"], "properties": {
                    "city": {"type": "string"}, "zip": {"type": "string"},
                }},
                "way": {"type": "string", "default": "post"},
            }},
            "lines": {"type": "array", "items": {"type": "object", "properties": {
                "sku": {"type": "string", "required": true}, "count": {"type": "integer", "default": 1},
            }}},
        }))
    }

    #[test]
    fn fields_inside_of_fields_are_held_to_their_rules() {
        let fits = json!({"order": {"id": 1, "place": {"city": "Ulm"}}, "lines": [{"sku": "a"}]});
        assert_eq!(
            fill(&order(), fits).unwrap(),
            json!({"order": {"id": 1, "place": {"city": "Ulm"}, "way": "post"},
                   "lines": [{"sku": "a", "count": 1}]})
        );
        for (given, wanted) in [
            (json!({}), "order: `order` is missing"),
            (json!({"order": {}}), "order.id: `order.id` is missing"),
            (json!({"order": {"id": "1"}}), "order.id: `order.id` is not of the type `integer`"),
            (
                json!({"order": {"id": 1, "colour": "red"}}),
                "order.colour: `order` has no field `colour`",
            ),
            (
                json!({"order": {"id": 1, "place": {}}}),
                "order.place.city: `order.place.city` is missing",
            ),
            (
                json!({"order": {"id": 1, "place": {"city": "Ulm", "land": 1}}}),
                "order.place.land: `order.place` has no field `land`",
            ),
            (
                json!({"order": {"id": 1}, "lines": [{"sku": "a"}, {"count": 2}]}),
                "lines.1.sku: `lines.1.sku` is missing",
            ),
            (
                json!({"order": {"id": 1}, "lines": [{"sku": "a", "n": 1}]}),
                "lines.0.n: `lines.0` has no field `n`",
            ),
        ] {
            assert_eq!(told(&fill(&order(), given).unwrap_err()), wanted);
        }
    }

    #[test]
    fn a_schema_says_what_fill_holds_a_payload_to() {
        let schema = schema(&order());
        assert_eq!(schema["required"], json!(["order"]));
        assert_eq!(schema["properties"]["order"]["required"], json!(["id"]));
        assert_eq!(schema["properties"]["order"]["additionalProperties"], json!(false));
        assert_eq!(
            schema["properties"]["order"]["properties"]["place"]["required"],
            json!(["city"])
        );
        assert_eq!(schema["properties"]["lines"]["items"]["required"], json!(["sku"]));
        for given in [
            json!({"order": {"id": 1}}),
            json!({"order": {}}),
            json!({"order": {"id": 1, "x": 1}}),
            json!({"order": {"id": 1, "place": {"zip": "1"}}}),
            json!({"order": {"id": 1}, "lines": [{}]}),
            json!({"order": {"id": 1}, "lines": [{"sku": "a"}]}),
            json!({"x": 1}),
        ] {
            let by_schema = crate::schema::faults(&schema, &given, "it").is_empty();
            assert_eq!(fill(&order(), given.clone()).is_ok(), by_schema, "{given}");
        }
    }

    #[test]
    fn rules_that_contradict_themselves_are_told_where_they_stand() {
        let wrong = rules(&json!({
            "a": {"type": "object", "properties": {"b": {"type": "date"}}},
            "c": {"type": "object", "required": ["d"], "properties": {"e": {"type": "string"}}},
            "f": {"type": "string", "properties": {}},
            "g": {"type": "string", "required": "yes"},
            "h": {"type": "array", "items": {"type": "strin"}},
            "i": {"type": "object", "default": {"k": 1}, "properties": {"j": {"type": "string"}}},
        }));
        insta::assert_snapshot!(told(&faults(&wrong)), @r#"
        input.a.properties.b.type: `a.b` is of no type that there is
        input.c.required: `required` of `c` lists "d", which it does not have
        input.f.properties: `f` has `properties`, and only objects have that
        input.g.required: `required` of `g` is neither true nor false
        input.h.items.type: `h[]` is of no type that there is
        input.i.default: the default of `i` has no field `k`
        "#);
    }
}
