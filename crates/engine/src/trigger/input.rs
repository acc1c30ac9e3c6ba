//! What a trigger asks for: the fields of `event.payload`, each with its rules.
//!
//! The compiler lets values that have rules go where others may not, so no run begins with a
//! payload that breaks them, whichever way it came.

use cairn_core::catalog::SettingFault;
use cairn_core::plan::{Plan, Trigger};
use cairn_core::text::Slug;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// What a field may say of itself.
const KEYWORDS: [&str; 10] = [
    "default",
    "description",
    "enum",
    "items",
    "maximum",
    "minimum",
    "pattern",
    "required",
    "title",
    "type",
];
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
/// How long a pattern may be.
const PATTERN_MAX: usize = 1_000;

/// What is wrong with the rules of an input.
#[must_use]
pub fn faults(rules: &Map<String, Value>) -> Vec<SettingFault> {
    rules.iter().flat_map(|(name, rule)| field_faults(name, rule)).collect()
}

fn field_faults(name: &str, rule: &Value) -> Vec<SettingFault> {
    let place = format!("input.{name}");
    let fault = |inner: &str, message: String, hint: &str| {
        SettingFault::new(format!("{place}{inner}"), message, hint)
    };
    let Some(rule) = rule.as_object() else {
        let message = format!("`{name}` does not say what it is");
        return vec![fault("", message, "write a map, such as `{type: string}`")];
    };
    let mut faults = Vec::new();
    for keyword in rule.keys().filter(|keyword| !KEYWORDS.contains(&keyword.as_str())) {
        let message = format!("a field of the input has no `{keyword}`");
        faults.push(fault(&format!(".{keyword}"), message, "see the guide for what it has"));
    }
    let kind = rule.get("type").and_then(Value::as_str);
    if !kind.is_some_and(|kind| TYPES.contains(&kind)) {
        let message = format!("`{name}` is of no type that there is");
        let hint = "say `type`: string, number, integer, boolean, array or object";
        faults.push(fault(if rule.contains_key("type") { ".type" } else { "" }, message, hint));
    }
    if rule.get("pattern").is_some_and(|pattern| regex(pattern).is_none()) {
        let message = format!("the pattern of `{name}` is no regular expression");
        faults.push(fault(".pattern", message, "write one such as `^[a-z]+$`"));
    } else if rule.contains_key("pattern") && kind != Some("string") {
        let message = format!("`{name}` has a pattern, and only texts have one");
        faults.push(fault(".pattern", message, "say `type: string`, or leave the pattern out"));
    }
    let default = rule.get("default").and_then(|default| misfit(default, rule));
    if let Some(why) = default.filter(|_| faults.is_empty()) {
        let message = format!("the default of `{name}` {why}");
        faults.push(fault(".default", message, "write a value that its own rules allow"));
    }
    faults
}

/// A payload with its defaults, or what is wrong with it. Without rules anything is taken.
pub fn fill(rules: &Map<String, Value>, given: Value) -> Result<Value, Vec<SettingFault>> {
    let mut given = match given {
        Value::Null => Map::new(),
        Value::Object(given) => given,
        _ => {
            let hint = "send the fields by name, such as `{\"days\": 7}`";
            return Err(vec![SettingFault::new("", "the input is not an object", hint)]);
        }
    };
    if rules.is_empty() {
        return Ok(Value::Object(given));
    }
    let mut faults = Vec::new();
    let known: Vec<&str> = rules.keys().map(String::as_str).collect();
    for name in given.keys().filter(|name| !rules.contains_key(*name)) {
        let hint = format!("known are {}", known.join(", "));
        let message = format!("the input has no field `{name}`");
        faults.push(SettingFault::new(name.clone(), message, hint));
    }
    let empty = Map::new();
    for (name, rule) in rules {
        let rule = rule.as_object().unwrap_or(&empty);
        match (given.get(name), rule.get("default")) {
            (Some(value), _) => {
                if let Some(why) = misfit(value, rule) {
                    let message = format!("`{name}` {why}");
                    faults.push(SettingFault::new(name.clone(), message, "correct the value"));
                }
            }
            (None, Some(default)) => drop(given.insert(name.clone(), default.clone())),
            (None, None) if rule.get("required") == Some(&json!(true)) => {
                let message = format!("`{name}` is missing");
                faults.push(SettingFault::new(name.clone(), message, "give it a value"));
            }
            (None, None) => {}
        }
    }
    if faults.is_empty() { Ok(Value::Object(given)) } else { Err(faults) }
}

/// Why a value is not what its rules ask for.
fn misfit(value: &Value, rule: &Map<String, Value>) -> Option<String> {
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
    if let Some((max, _)) = bound("maximum").filter(|(max, value)| value > max) {
        return Some(format!("is more than {max}"));
    }
    let items = rule.get("items").and_then(Value::as_object);
    let mut values = items.and(value.as_array()).into_iter().flatten();
    values.find_map(|item| misfit(item, items?)).map(|why| format!("has an item that {why}"))
}

fn regex(pattern: &Value) -> Option<Regex> {
    let pattern = pattern.as_str().filter(|pattern| pattern.len() <= PATTERN_MAX)?;
    Regex::new(pattern).ok()
}

/// The payload that a run begins with: what was given, held to the rules of the trigger that
/// it comes from.
///
/// A run that no trigger of the plan starts is held to the rules of one as well, when all of
/// them have some: only then does the compiler rely on them.
pub fn of_run(plan: &Plan, trigger: Option<&Slug>, payload: Value) -> Result<Value> {
    match rules(plan, trigger) {
        Some(rules) => fill(rules, payload).map_err(|faults| invalid(&faults)),
        None => Ok(payload),
    }
}

/// The rules that a run is held to, if there are any.
pub(crate) fn rules<'p>(plan: &'p Plan, trigger: Option<&Slug>) -> Option<&'p Map<String, Value>> {
    let own = trigger.and_then(|id| plan.triggers.iter().find(|trigger| trigger.id == *id));
    let rules = |trigger: &'p Trigger| trigger.config.0.get("input").and_then(Value::as_object);
    let rules = match own {
        Some(own) => rules(own),
        None => {
            let all: Option<Vec<_>> = plan.triggers.iter().map(rules).collect();
            let manual = plan.triggers.iter().position(|one| one.r#type.as_str() == "manual");
            all.and_then(|all| all.into_iter().nth(manual.unwrap_or_default()))
        }
    };
    rules.filter(|rules| !rules.is_empty())
}

/// An input that breaks the rules, as an error.
#[must_use]
pub fn invalid(faults: &[SettingFault]) -> Error {
    let shown = |fault: &SettingFault| json!({"field": fault.field, "message": fault.message, "suggestion": fault.hint});
    let first = faults.first();
    Error::Invalid {
        message: first.map(|fault| fault.message.clone()).unwrap_or_default(),
        fix: first.map(|fault| fault.hint.clone()).unwrap_or_default(),
        details: json!({"faults": faults.iter().map(shown).collect::<Vec<_>>()}),
    }
}
