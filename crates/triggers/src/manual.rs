//! `manual`: fires when a person or a program starts a run, with the input that they give.

use std::sync::Arc;

use cairn_core::catalog::{SettingFault, TriggerType, input};
use cairn_engine::trigger::{Call, Trigger, Watch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::settings::{self, closed, text};

/// What a token can be allowed to do, which is what a role is.
const ROLES: [&str; 6] = ["admin", "approve", "edit", "read", "run", "secrets:write"];

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
    rules: Map<String, Value>,
    schema: Value,
    role: Option<String>,
}

impl Trigger for Manual {
    fn kind(&self) -> TriggerType {
        let properties = json!({
            "input": {"type": "object", "description": "What is asked for: each field by its name, with `type`, `description`, `default`, `required`, `enum`, `pattern`, `minimum`, `maximum`, `items`, and `properties` for an object's own fields."},
            "require_role": text("The role that whoever starts a run needs."),
        });
        let example =
            json!({"type": "manual", "input": {"days": {"type": "integer", "default": 7}}});
        TriggerType {
            name: "manual".to_owned(),
            input: closed(properties, &[], "Fires when somebody starts a run.", example),
            payload: None,
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
        let mut faults = input::faults(&input);
        if let Some(role) = require_role.as_deref().filter(|role| !ROLES.contains(role)) {
            let message = format!("there is no role `{role}`");
            faults.push(SettingFault::new("require_role", message, nearest_role(role)));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let schema = input::schema(&input);
        Ok(Self { rules: input, schema, role: require_role })
    }
}

fn nearest_role(given: &str) -> String {
    let near = |role: &&&str| strsim::damerau_levenshtein(given, role);
    let near = ROLES.iter().min_by_key(near).filter(|role| near(role) <= 2);
    match near {
        Some(role) => format!("did you mean `{role}`?"),
        None => format!("known are `{}`", ROLES.join("`, `")),
    }
}

impl Call for Form {
    fn input(&self) -> &Value {
        &self.schema
    }

    fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    fn fill(&self, input: Value) -> Result<Value, Vec<SettingFault>> {
        input::fill(&self.rules, input)
    }
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
                "slug": {"type": "string", "pattern": "^[a-z]+$"},
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
        tags.1: `tags.1` is not of the type `string`
        ");
        let wrong = json!({"days": 7.5, "service": "db", "slug": "a\n"});
        insta::assert_snapshot!(told(&form().fill(wrong).unwrap_err()).join("\n"), @r#"
        days: `days` is not of the type `integer`
        service: `service` is not one of "api", "web"
        slug: `slug` does not fit its pattern
        "#);
        insta::assert_snapshot!(told(&form().fill(json!([])).unwrap_err()).join("\n"), @": the input is not an object");
    }

    #[test]
    fn a_role_that_no_token_can_be_given_is_refused() {
        for (role, hint) in [
            ("admn", "did you mean `admin`?"),
            ("operator", "known are `admin`, `approve`, `edit`, `read`, `run`, `secrets:write`"),
        ] {
            let faults = Form::new(&json!({"require_role": role})).unwrap_err();
            assert_eq!(faults[0].hint, hint, "{role}");
        }
    }

    #[test]
    fn a_form_that_contradicts_itself_is_refused() {
        let faults = Form::new(&json!({
            "require_role": "a b",
            "input": {
                "a": {"type": "date"}, "b": "text", "c": {"type": "integer", "default": "x"},
                "d": {"type": "string", "format": "x"}, "e": {},
                "f": {"type": "string", "pattern": "("}, "g": {"type": "integer", "pattern": "x"},
            },
        }));
        insta::assert_snapshot!(told(&faults.unwrap_err()).join("\n"), @r"
        input.a.type: `a` is of no type that there is
        input.b: `b` does not say what it is
        input.c.default: the default of `c` is not of the type `integer`
        input.d.format: a field of the input has no `format`
        input.e: `e` is of no type that there is
        input.f.pattern: the pattern of `f` is no regular expression
        input.g.pattern: `g` has `pattern`, and only texts have that
        require_role: there is no role `a b`
        ");
    }
}
