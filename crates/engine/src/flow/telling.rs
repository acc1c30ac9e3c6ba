//! Saying something to a run, wherever it is decided for.

use std::sync::Arc;

use cairn_core::event::By;
use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::{Command, Rejection};
use cairn_core::id::{ChangeId, RunId, SessionId};
use cairn_core::instance::StepInstanceKey;
use cairn_store as store;
use cairn_store::Owner;
use serde_json::{Value, json};

use super::Inner;
use super::decisions::Decider;
use super::lane::Lane;
use super::ownership::REVIVE_MIN;
use crate::error::{Error, Result};
use crate::record::{Action, Deed};

/// How often something is said to a run whose lane falls meanwhile.
const TELL_TRIES: usize = 8;

/// Where a run is decided for.
pub(super) enum Place {
    /// By this process.
    Here(Lane),
    /// By another one.
    There { session: SessionId, owner: Option<Box<Owner>> },
    /// By nobody: it is over.
    Over,
}

impl Inner {
    /// Where a run that is not over is decided for.
    pub(super) async fn place_of(self: &Arc<Self>, run: RunId) -> Result<Place> {
        let summary = self.reading.found(run).await?;
        if let Some(lane) = self.lanes.get(summary.session) {
            return Ok(Place::Here(lane));
        }
        // Nobody takes over the work of others for one that is over.
        if summary.is_over() {
            return Ok(Place::Over);
        }
        let owner = match self.take_up(&summary.identity()).await {
            Ok(()) => match self.lanes.get(summary.session) {
                Some(lane) => return Ok(Place::Here(lane)),
                // Nothing of its session is left to do.
                None => return Ok(Place::Over),
            },
            Err(Error::AdmittedElsewhere { owner, .. }) => owner,
            Err(Error::Store(store::Error::Owned { owner, .. })) => owner,
            Err(error) => return Err(error),
        };
        // Whoever is about to end may have let go of it.
        match self.reading.state(run).await? {
            (_, state) if state.end.is_some() => Ok(Place::Over),
            _ => Ok(Place::There { session: summary.session, owner }),
        }
    }

    /// Says something to a run on behalf of somebody, who is recorded with it.
    pub(super) async fn steer(
        self: &Arc<Self>,
        run: RunId,
        (by, action): (By, Action),
        arguments: &Value,
        command: Command,
    ) -> Result<()> {
        self.steer_again(run, (by, action), arguments, (command, None)).await
    }

    /// Lets a run go on, whether it rests or was left.
    pub(super) async fn let_go_on(
        self: &Arc<Self>,
        run: RunId,
        by: By,
        change: ChangeId,
    ) -> Result<()> {
        let found = self.reading.found(run).await?;
        let deed = Deed::to_run(by, Action::ResumeRun, run, &found.workflow).with(&json!({}));
        let work = async |by: By| {
            self.require_start_role(run, &by).await?;
            let resume = Command::Resume { change, by, input: None };
            let command = self.with_input(run, resume).await?;
            match self.tell(run, command).await {
                Err(error) if goes_on(&error, found.is_over()) => Ok(()),
                told => told,
            }
        };
        self.record.change_by(deed, work).await
    }

    /// Says what becomes of a step that was cut off.
    pub(super) async fn resolve(
        self: &Arc<Self>,
        run: RunId,
        instance: StepInstanceKey,
        decider: Decider,
        decision: InterruptDecision,
    ) -> Result<()> {
        let arguments = json!({"step": instance.to_string(), "decision": decision});
        let by = decider.by.clone();
        let is_again = decision == InterruptDecision::Retry;
        let again = Some((instance.clone(), decider)).filter(|_| is_again);
        let command = Command::Resolve { instance, by: by.clone(), decision };
        let asked = (by, Action::ResolveStep);
        self.steer_again(run, asked, &arguments, (command, again)).await
    }

    /// Says something to a run that may have a step tried again.
    async fn steer_again(
        self: &Arc<Self>,
        run: RunId,
        (by, action): (By, Action),
        arguments: &Value,
        (command, again): (Command, Option<(StepInstanceKey, Decider)>),
    ) -> Result<()> {
        let workflow = self.reading.found(run).await?.workflow;
        let deed = Deed::to_run(by.clone(), action, run, &workflow).with(arguments);
        let goes_on = matches!(action, Action::ResumeRun | Action::ResolveStep);
        let work = async |by: By| {
            if goes_on {
                self.require_start_role(run, &by).await?;
            }
            if let Some((step, decider)) = &again {
                self.decisions.require_answers(run, step, decider).await?;
            }
            let command = self.with_input(run, command.said_by(by)).await?;
            self.tell(run, command).await
        };
        self.record.change_by(deed, work).await
    }

    /// Says something to a run, wherever it is.
    pub(super) async fn tell(self: &Arc<Self>, run: RunId, command: Command) -> Result<()> {
        let ended = || Error::RunRefused { run, refused: Rejection::Ended };
        let (mut last, mut may_have_happened) = (None, false);
        for _ in 0..TELL_TRIES {
            let told = match self.place_of(run).await? {
                Place::Here(lane) => lane.tell(run, command.clone()).await,
                Place::Over => return Err(ended()),
                Place::There { session, owner } => {
                    let told = self.post.tell_owner(session, run, &command).await?;
                    let told = told.map(|told| told.map_err(|e| e.of_owner(owner.as_deref())));
                    let elsewhere = Error::RunElsewhere { run, session, owner };
                    last = Some(elsewhere.clone());
                    told.unwrap_or(Err(elsewhere))
                }
            };
            match told {
                // Whoever opens the session next hears it, and knows whether it was recorded.
                Err(error) if error.is_passing() => {
                    may_have_happened |= !matches!(error, Error::Unheard { .. });
                    self.host.sleep(REVIVE_MIN).await;
                }
                // A later try knows of itself alone that nothing comes of it.
                Err(error) if may_have_happened && error.code() != "RUN_IN_DOUBT" => {
                    let session = self.reading.found(run).await?.session;
                    return Err(Error::InDoubt { session, owner: None });
                }
                // The lane has let go of it, here or in another process, so it is over.
                Err(error) if error.code() == "RUN_NOT_FOUND" => return Err(ended()),
                told => return told,
            }
        }
        let session = self.reading.found(run).await?.session;
        Err(last.filter(|_| !may_have_happened).unwrap_or(Error::LaneDown { session }))
    }
}

/// Whether a run that cannot be resumed goes on all the same: it did not rest, or came to its end
/// when somebody took it over.
fn goes_on(refused: &Error, was_over: bool) -> bool {
    let is_refusal = matches!(refused, Error::RunRefused { .. } | Error::Told { .. });
    is_refusal && (refused.code() == "RUN_STATE" || (refused.code() == "RUN_ENDED" && !was_over))
}
