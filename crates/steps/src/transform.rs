//! `transform`: makes a value out of values.

use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::catalog::schema::{any, closed, one_of, shown, text, told};
use cairn_core::catalog::{Class, SettingFault, StepSettings, StepType, Takes};
use cairn_engine::performer::{Ctx, Evaluator, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings;

/// How much of a value is told.
const TOLD_MAX: usize = 1000;

pub(crate) struct Transform {
    pub(crate) evaluator: Option<Arc<dyn Evaluator>>,
}

#[derive(Deserialize)]
struct Input {
    /// The value itself, as guided runs write it; its paths are filled in before it gets here.
    value: Option<Value>,
    /// The same for automations.
    template: Option<Value>,
    engine: Option<Engine>,
    expression: Option<String>,
    #[serde(default)]
    input: Value,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Engine {
    Jq,
    Jsonpath,
    #[serde(alias = "gotemplate")]
    Template,
}

#[async_trait]
impl Performer for Transform {
    fn kind(&self) -> StepType {
        let input = closed(
            &json!({
                "engine": told(one_of(&["jq", "jsonpath", "template", "gotemplate"]), "The language of `expression`. `template` and `gotemplate` are the templates of workflows, in either spelling."),
                "expression": told(text(), "What is evaluated. With jq and JSONPath it is taken as it is written and sees `input` alone; a template sees what every other one does."),
                "input": told(any(), "What jq and JSONPath see."),
                "template": told(any(), "A value with expressions in it, instead of all the others."),
            }),
            &[],
        );
        let what = "Makes a value out of others: with jq, JSONPath or a template. The value is the output.";
        let example =
            json!({"engine": "jq", "input": "{{ steps.users.rows }}", "expression": "[.[] | .id]"});
        let output = told(any(), "The value. Several results of jq or JSONPath are a list.");
        StepType::new("transform", Class::Evaluated, shown(told(input, what), &example), output)
            .taking(&[("expression", Takes::Literal)])
            .checked(check)
    }

    async fn perform(&self, config: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        let value = match (input.value.or(input.template), input.engine, input.expression) {
            (Some(value), _, None) => value,
            (None, Some(engine), Some(expression)) => {
                self.evaluate(engine, &expression, input.input).await?
            }
            _ => {
                let message = "it needs `template`, or `engine` and `expression`";
                return Err(Failed::new("TRANSFORM_SETTINGS", message));
            }
        };
        let shown = value.to_string();
        let start = shown.get(..shown.floor_char_boundary(TOLD_MAX)).unwrap_or_default();
        let cut = if start.len() < shown.len() { "…" } else { "" };
        let notes = format!("the value is `{start}{cut}`");
        Ok(Outcome::new(value, notes))
    }
}

/// Says what is half said, or said twice.
fn check(given: &StepSettings<'_>) -> Vec<SettingFault> {
    let has = |name: &str| given.config.get(name).is_some();
    let hint = "say `engine: jq` and `expression`, or `template` alone";
    let (field, message) = match (has("template"), has("expression")) {
        (false, false) => ("", "it does not say what value it makes"),
        (true, true) => ("template", "the step has both `template` and `expression`"),
        (true, false) if has("input") => ("input", "a template does not look at `input`"),
        (false, true) if !has("engine") => ("expression", "it does not say which language this is"),
        _ => return Vec::new(),
    };
    vec![SettingFault::new(field, message, hint)]
}

impl Transform {
    async fn evaluate(
        &self,
        engine: Engine,
        expression: &str,
        input: Value,
    ) -> Result<Value, Failed> {
        let evaluator = self.evaluator.as_ref().ok_or_else(|| {
            Failed::new("TRANSFORM_EVALUATOR", "nothing here evaluates expressions")
        })?;
        match engine {
            Engine::Jq => evaluator.jq(expression, input).await,
            Engine::Jsonpath => evaluator.jsonpath(expression, input).await,
            Engine::Template => evaluator.template(expression, input).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::ctx;

    /// Says what it was asked.
    struct Echo;

    #[async_trait]
    impl Evaluator for Echo {
        async fn jq(&self, expression: &str, input: Value) -> Result<Value, Failed> {
            Ok(json!(["jq", expression, input]))
        }

        async fn jsonpath(&self, expression: &str, input: Value) -> Result<Value, Failed> {
            Ok(json!(["jsonpath", expression, input]))
        }

        async fn template(&self, template: &str, input: Value) -> Result<Value, Failed> {
            Ok(json!(["template", template, input]))
        }
    }

    async fn made(config: Value) -> Result<Value, Failed> {
        let transform = Transform { evaluator: Some(Arc::new(Echo)) };
        transform.perform(config, &ctx()).await.map(|outcome| outcome.output)
    }

    #[tokio::test]
    async fn each_language_goes_to_its_evaluator_with_the_input_alone() {
        for engine in ["jq", "jsonpath", "template"] {
            let config = json!({"engine": engine, "expression": "e", "input": {"a": [1]}});
            assert_eq!(made(config).await.unwrap(), json!([engine, "e", {"a": [1]}]));
        }
    }

    #[tokio::test]
    async fn a_value_needs_no_evaluator() {
        let none = Transform { evaluator: None };
        for name in ["value", "template"] {
            let done = none.perform(json!({name: {"n": 1}}), &ctx()).await.unwrap();
            assert_eq!(done.output, json!({"n": 1}));
        }
        let config = json!({"engine": "jq", "expression": "."});
        let error = none.perform(config, &ctx()).await.unwrap_err();
        assert_eq!(error.code, "TRANSFORM_EVALUATOR");
    }

    #[test]
    fn what_is_half_said_or_said_twice_is_told_when_it_is_compiled() {
        for (config, field) in [
            (json!({}), Some("")),
            (json!({"engine": "jq"}), Some("")),
            (json!({"expression": "."}), Some("expression")),
            (json!({"template": 1, "engine": "jq", "expression": "."}), Some("template")),
            (json!({"template": 1, "input": 2}), Some("input")),
            (json!({"template": 1}), None),
            (json!({"template": 1, "engine": "template"}), None),
            (json!({"engine": "jq", "expression": ".", "input": 1}), None),
        ] {
            let told = check(&StepSettings { config: &config, file: &|_| None });
            assert_eq!(told.first().map(|fault| fault.field.as_str()), field, "{config}");
        }
    }

    #[tokio::test]
    async fn what_is_half_said_or_said_twice_is_refused() {
        for config in [
            json!({}),
            json!({"engine": "jq"}),
            json!({"expression": "."}),
            json!({"template": 1, "engine": "jq", "expression": "."}),
        ] {
            let error = made(config.clone()).await.unwrap_err();
            assert_eq!(error.code, "TRANSFORM_SETTINGS", "{config}");
        }
        assert_eq!(made(json!({"engine": "awk"})).await.unwrap_err().code, "STEP_SETTINGS");
    }
}
