//! `log`: writes a line into the run's history.

use async_trait::async_trait;
use cairn_core::catalog::schema::{any, closed, one_of, shown, text, told};
use cairn_core::catalog::{Class, StepType};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings;

pub(crate) struct Log;

#[derive(Deserialize)]
struct Input {
    /// The line.
    message: Value,
    level: Option<String>,
}

#[async_trait]
impl Performer for Log {
    fn kind(&self) -> StepType {
        let levels = one_of(&["debug", "info", "warning", "error"]);
        let input = closed(
            &json!({
                "level": told(levels, "How grave it is; `info` when it is left out."),
                "message": told(text(), "The line."),
            }),
            &["message"],
        );
        let example =
            json!({"level": "warning", "message": "{{ steps.fetch.status }} from the shop"});
        let input = shown(told(input, "Writes a line into the run's history."), &example);
        let output = closed(
            &json!({"level": told(text(), "How grave it is."), "message": told(any(), "The line.")}),
            &[],
        );
        StepType::new("log", Class::Effectful, input, output)
    }

    async fn perform(&self, config: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let Input { message, level } = settings::read(config)?;
        let line = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        Ok(match level {
            Some(level) => {
                let notes = format!("{level}: {line}");
                Outcome::new(json!({"level": level, "message": message}), notes)
            }
            None => Outcome::new(json!({"message": message}), line),
        })
    }
}
