//! `transform`: makes a value out of values of the context.

use async_trait::async_trait;
use cairn_core::catalog::StepType;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use serde::Deserialize;
use serde_json::Value;

use crate::{kinds, settings};

pub(crate) struct Transform;

#[derive(Deserialize)]
struct Input {
    /// The value; its paths are filled in before it gets here.
    value: Value,
}

#[async_trait]
impl Performer for Transform {
    fn kind(&self) -> StepType {
        kinds::of("transform")
    }

    async fn perform(&self, config: Value, _: &Ctx) -> Result<Outcome, Failed> {
        let Input { value } = settings::read(config)?;
        let notes = format!("the value is `{value}`");
        Ok(Outcome::new(value, notes))
    }
}
