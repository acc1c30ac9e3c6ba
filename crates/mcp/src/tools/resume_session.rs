//! `resume_session`: finds the run that somebody means who has no token.

use cairn_api::error::Result;
use cairn_api::guided::{answer, request};
use cairn_engine::guided::ask;

use super::{Effect, Reply, Tool};
use crate::{Door, render};

pub(super) struct ResumeSession;

impl Tool for ResumeSession {
    const NAME: &'static str = "resume_session";
    const TITLE: &'static str = "Find a run to resume";
    const DESCRIPTION: &'static str = "Finds earlier runs when you have no token: in a new \
        chat, or when the user says \"continue with …\". Take the one that fits, or ask the \
        user; then call continue_workflow with its continueToken alone.";
    const EFFECT: Effect = Effect::Reads;
    type Input = request::ResumeSession;
    type Output = answer::Resumed;

    async fn call(door: &Door, input: Self::Input) -> Result<Reply<Self::Output>> {
        let ask = ask::Resume::try_from(input)?;
        let asked = render::Looked {
            words: ask.query.is_some(),
            place: ask.git_branch.is_some() || ask.git_head_sha.is_some(),
            folder: ask.workspace.is_some(),
        };
        let data = door.resume(ask).await?;
        let texts = vec![render::resumed(&data, &asked)];
        Ok(Reply { data, texts })
    }
}
