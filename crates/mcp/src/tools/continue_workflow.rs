//! `continue_workflow`: goes on with a run, or shows its pending step again.

use cairn_api::error::Result;
use cairn_api::guided::{answer, request};
use cairn_engine::guided::ask;

use super::{Effect, Reply, Tool};
use crate::{Door, render};

pub(super) struct ContinueWorkflow;

impl Tool for ContinueWorkflow {
    const NAME: &'static str = "continue_workflow";
    const TITLE: &'static str = "Continue a workflow";
    const DESCRIPTION: &'static str = "Says that the pending step is done and returns the next \
        one. With the token alone, shows the pending step again and changes nothing.\n\
        RIGHT: do the step, then {\"continueToken\": \"…\", \"output\": {\"notesMarkdown\": \
        \"what this step did\"}}.\n\
        WRONG: advancing before the step is done; guessing the next step.\n\
        BLOCKED: the run did not move. Do each suggestedFix, then call again with the \
        retryContinueToken and the whole output.\n\
        nextIntent await_user_confirmation: get the user's yes. complete, ended: stop.\n\
        Repeating a call returns the same answer. To fork, send an older token alone first.";
    const EFFECT: Effect = Effect::WritesOnce;
    const PERFORMS: bool = true;
    type Input = request::ContinueWorkflow;
    type Output = answer::Answer;

    async fn call(door: &Door, input: Self::Input) -> Result<Reply<Self::Output>> {
        let found = door.proceed(ask::Continue::try_from(input)?).await?;
        Ok(render::answer(found))
    }
}
