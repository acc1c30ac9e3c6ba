//! `start_workflow`: begins a run.

use cairn_api::error::Result;
use cairn_api::guided::{answer, request};
use cairn_engine::guided::ask;

use super::{Effect, Reply, Tool};
use crate::{Door, render};

pub(super) struct StartWorkflow;

impl Tool for StartWorkflow {
    const NAME: &'static str = "start_workflow";
    const TITLE: &'static str = "Start a workflow";
    const DESCRIPTION: &'static str = "Begins a run and answers with its first step and the \
        tokens to go on with. Do that step for real, then call continue_workflow. Each call \
        begins another run: to go on with one you have lost, call resume_session instead.";
    const EFFECT: Effect = Effect::Writes;
    const PERFORMS: bool = true;
    type Input = request::StartWorkflow;
    type Output = answer::Answer;

    async fn call(door: &Door, input: Self::Input) -> Result<Reply<Self::Output>> {
        let found = door.start(ask::Start::try_from(input)?).await?;
        Ok(render::answer(found))
    }
}
