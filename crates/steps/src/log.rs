//! `log`: writes a line into the run's history.

use async_trait::async_trait;
use cairn_core::catalog::StepType;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{kinds, settings};

pub(crate) struct Log;

#[derive(Deserialize)]
struct Input {
    /// The line.
    message: Value,
}

#[async_trait]
impl Performer for Log {
    fn kind(&self) -> StepType {
        kinds::of("log")
    }

    async fn perform(&self, config: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let Input { message } = settings::read(config)?;
        let notes = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        Ok(Outcome::new(json!({"message": message}), notes))
    }
}
