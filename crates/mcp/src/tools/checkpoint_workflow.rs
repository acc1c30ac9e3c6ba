//! `checkpoint_workflow`: leaves notes at a step without going on.

use cairn_api::error::Result;
use cairn_api::guided::{answer, request};
use cairn_engine::guided::ask;

use super::{Effect, Reply, Tool};
use crate::{Door, render};

pub(super) struct CheckpointWorkflow;

impl Tool for CheckpointWorkflow {
    const NAME: &'static str = "checkpoint_workflow";
    const TITLE: &'static str = "Keep notes without advancing";
    const DESCRIPTION: &'static str = "Records what you have so far, in case the chat is \
        rewound or lost, and stays at the pending step. Use it in long steps and for work \
        between steps. WRONG: finishing a step with it. Continue with the tokens of its answer.";
    const EFFECT: Effect = Effect::WritesOnce;
    type Input = request::CheckpointWorkflow;
    type Output = answer::Checkpointed;

    async fn call(door: &Door, input: Self::Input) -> Result<Reply<Self::Output>> {
        let found = door.checkpoint(ask::Checkpoint::try_from(input)?).await?;
        Ok(render::checkpointed(found))
    }
}
