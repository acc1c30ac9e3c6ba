//! `log`: writes a line into the run's history.

use async_trait::async_trait;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings;

pub(crate) struct Log;

#[derive(Deserialize)]
struct Input {
    /// The line.
    message: Value,
}

#[async_trait]
impl Performer for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    async fn perform(&self, config: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let Input { message } = settings::read(config)?;
        let notes = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        Ok(Outcome { output: json!({"message": message}), notes, ends: false })
    }
}
