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
    const DESCRIPTION: &'static str = "Starts a run and returns its first step. Do that step \
        for real, then call continue_workflow. Every call starts another run; to find one you \
        lost, call resume_session.";
    const EFFECT: Effect = Effect::Writes;
    const PERFORMS: bool = true;
    type Input = request::StartWorkflow;
    type Output = answer::Answer;

    async fn call(door: &Door, input: Self::Input) -> Result<Reply<Self::Output>> {
        let found = door.start(ask::Start::try_from(input)?).await?;
        Ok(render::answer(found))
    }
}
