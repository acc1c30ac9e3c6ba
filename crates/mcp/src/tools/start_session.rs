//! `start_session`: begins a session without a run.

use cairn_api::error::Result;
use cairn_api::guided::{answer, request};

use super::{Effect, Reply, Tool};
use crate::{Door, render};

pub(super) struct StartSession;

impl Tool for StartSession {
    const NAME: &'static str = "start_session";
    const TITLE: &'static str = "Start a session without a run";
    const DESCRIPTION: &'static str = "Opens a session for notes only, when no workflow fits: \
        record them with checkpoint_workflow and the sessionToken. start_workflow does not need \
        it.";
    const EFFECT: Effect = Effect::Writes;
    type Input = request::StartSession;
    type Output = answer::SessionOpened;

    async fn call(door: &Door, _: Self::Input) -> Result<Reply<Self::Output>> {
        let data =
            answer::SessionOpened::from(door.guide.open_session(door.holder.by.clone()).await?);
        let texts = vec![render::session_opened(&data)];
        Ok(Reply { data, texts })
    }
}
