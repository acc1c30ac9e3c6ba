//! `manual`: fires when a person or a program starts a run, with the input that they give.

use std::sync::Arc;

use cairn_core::catalog::{SettingFault, TriggerType};
use cairn_engine::trigger::{Call, Trigger, Watch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::settings::{self, closed, text};

/// What a field of the input may say of itself.
const KEYWORDS: [&str; 9] =
    ["default", "description", "enum", "items", "maximum", "minimum", "required", "title", "type"];
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];

/// The type.
pub struct Manual;

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    input: Map<String, Value>,
    require_role: Option<String>,
}

/// The input of one trigger.
#[derive(Debug)]
pub struct Form {
    schema: Value,
    role: Option<String>,
}

impl Trigger for Manual {
    fn kind(&self) -> TriggerType {
        let properties = json!({
            "input": {"type": "object", "description": "What is asked for: each field by its name, with `type`, `description`, `default`, `required`, `enum`, `minimum` and `maximum`."},
            "require_role": text("The role that whoever starts a run needs."),
        });
        let example =
            json!({"type": "manual", "input": {"days": {"type": "integer", "default": 7}}});
        TriggerType {
            name: "manual".to_owned(),
            input: closed(properties, &[], "Fires when somebody starts a run.", example),
            check: |config| settings::faults(config, Form::read),
        }
    }

    fn watch(&self, config: &Value) -> Result<Watch, Vec<SettingFault>> {
        Ok(Watch::Call(Arc::new(Form::new(config)?)))
    }
}

impl Form {
    /// The input that the settings of a trigger ask for.
    pub fn new(config: &Value) -> Result<Self, Vec<SettingFault>> {
        Self::read(settings::read(config)?)
    }

    fn read(Input { input, require_role }: Input) -> Result<Self, Vec<SettingFault>> {
        let mut faults: Vec<SettingFault> = input.iter().flat_map(field_faults).collect();
        if let Some(role) = require_role.as_deref().filter(|role| !is_role(role)) {
            let message = format!("`{role}` cannot name a role");
            faults.push(SettingFault::new("require_role", message, "such as `admin`"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let required: Vec<&String> = input
            .iter()
            .filter(|(_, rule)| rule.get("required") == Some(&json!(true)))
            .map(|(name, _)| name)
            .collect();
        let properties: Map<String, Value> = input
            .iter()
            .map(|(name, rule)| {
                let mut rule = rule.as_object().cloned().unwrap_or_default();
                rule.remove("required");
                (name.clone(), Value::Object(rule))
            })
            .collect();
        let open = properties.is_empty();
        let schema = json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": open,
        });
        Ok(Self { schema, role: require_role })
    }
}

fn is_role(role: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == ':';
    !role.is_empty() && role.len() <= 64 && role.chars().all(fits)
}

fn field_faults((name, rule): (&String, &Value)) -> Vec<SettingFault> {
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
    let default = rule.get("default").and_then(|default| misfit(default, rule));
    if let Some(why) = default.filter(|_| faults.is_empty()) {
        let message = format!("the default of `{name}` {why}");
        faults.push(fault(".default", message, "write a value that its own rules allow"));
    }
    faults
}

impl Call for Form {
    fn input(&self) -> &Value {
        &self.schema
    }

    fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    fn fill(&self, input: Value) -> Result<Value, Vec<SettingFault>> {
        let mut given = match input {
            Value::Null => Map::new(),
            Value::Object(given) => given,
            _ => {
                let hint = "send the fields by name, such as `{\"days\": 7}`";
                return Err(vec![SettingFault::new("", "the input is not an object", hint)]);
            }
        };
        let empty = Map::new();
        let rules = self.schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let mut faults = Vec::new();
        if !rules.is_empty() {
            let known: Vec<&str> = rules.keys().map(String::as_str).collect();
            for name in given.keys().filter(|name| !rules.contains_key(*name)) {
                let hint = format!("known are {}", known.join(", "));
                let message = format!("the input has no field `{name}`");
                faults.push(SettingFault::new(name.clone(), message, hint));
            }
        }
        let required = self.schema.get("required").and_then(Value::as_array);
        for (name, rule) in rules {
            let rule = rule.as_object().unwrap_or(&empty);
            let needed = required.is_some_and(|names| names.iter().any(|needed| needed == name));
            match (given.get(name), rule.get("default")) {
                (Some(value), _) => {
                    if let Some(why) = misfit(value, rule) {
                        let message = format!("`{name}` {why}");
                        faults.push(SettingFault::new(name.clone(), message, "correct the value"));
                    }
                }
                (None, Some(default)) => drop(given.insert(name.clone(), default.clone())),
                (None, None) if needed => {
                    let message = format!("`{name}` is missing");
                    faults.push(SettingFault::new(name.clone(), message, "give it a value"));
                }
                (None, None) => {}
            }
        }
        if faults.is_empty() { Ok(Value::Object(given)) } else { Err(faults) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Form {
        Form::new(&json!({
            "require_role": "admin",
            "input": {
                "days": {"type": "integer", "default": 7, "minimum": 1, "maximum": 30},
                "service": {"type": "string", "required": true, "enum": ["api", "web"]},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        }))
        .unwrap()
    }

    fn told(faults: &[SettingFault]) -> Vec<String> {
        faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect()
    }

    #[test]
    fn an_input_gets_its_defaults() {
        let filled = form().fill(json!({"service": "api"})).unwrap();
        assert_eq!(filled, json!({"service": "api", "days": 7}));
        assert_eq!(form().role(), Some("admin"));
        assert_eq!(form().input()["required"], json!(["service"]));
        let open = Form::new(&json!({})).unwrap();
        assert_eq!(open.fill(json!({"x": 1})).unwrap(), json!({"x": 1}));
        assert_eq!(open.fill(Value::Null).unwrap(), json!({}));
    }

    #[test]
    fn a_wrong_input_is_told_field_by_field() {
        let wrong = json!({"days": 31, "srvice": "api", "tags": ["a", 1]});
        insta::assert_snapshot!(told(&form().fill(wrong).unwrap_err()).join("\n"), @r"
        srvice: the input has no field `srvice`
        days: `days` is more than 30
        service: `service` is missing
        tags: `tags` has an item that is not of the type `string`
        ");
        let wrong = json!({"days": 7.5, "service": "db"});
        insta::assert_snapshot!(told(&form().fill(wrong).unwrap_err()).join("\n"), @r#"
        days: `days` is not of the type `integer`
        service: `service` is not one of "api", "web"
        "#);
        insta::assert_snapshot!(told(&form().fill(json!([])).unwrap_err()).join("\n"), @": the input is not an object");
    }

    #[test]
    fn a_form_that_contradicts_itself_is_refused() {
        let faults = Form::new(&json!({
            "require_role": "a b",
            "input": {
                "a": {"type": "date"}, "b": "text", "c": {"type": "integer", "default": "x"},
                "d": {"type": "string", "pattern": "x"}, "e": {},
            },
        }));
        insta::assert_snapshot!(told(&faults.unwrap_err()).join("\n"), @r"
        input.a.type: `a` is of no type that there is
        input.b: `b` does not say what it is
        input.c.default: the default of `c` is not of the type `integer`
        input.d.pattern: a field of the input has no `pattern`
        input.e: `e` is of no type that there is
        require_role: `a b` cannot name a role
        ");
    }
}
