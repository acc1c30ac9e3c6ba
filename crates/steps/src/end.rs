//! `end`: ends the run early, as a success.

use async_trait::async_trait;
use cairn_core::catalog::{StepType, interpreted};
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings;

pub(crate) struct End;

#[derive(Deserialize)]
struct Input {
    /// Why the run is over.
    #[serde(default)]
    message: String,
}

#[async_trait]
impl Performer for End {
    fn kind(&self) -> StepType {
        interpreted::end()
    }

    async fn perform(&self, config: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let Input { message } = settings::read(config)?;
        let notes =
            if message.is_empty() { "the run ends here".to_owned() } else { message.clone() };
        Ok(Outcome { ends: true, ..Outcome::new(json!({"message": message}), notes) })
    }
}
