//! Runs that wait for an agent, for whoever looks for work.

use cairn_core::event::By;
use cairn_core::event::engine::WaitingFor;
use cairn_core::expression::untrusted;
use cairn_core::id::RunId;
use cairn_core::projection::run::{RunState, RunStatus};
use cairn_core::text::truncate;

use super::claims::{ClaimId, Claimant};
use super::{Hand, Held, log, payload, text};
use crate::error::{Error, Result};
use crate::flow::{Automations, Filter, Inner, Past, Roles, Summary};
use crate::guided::answer::RunRef;

/// How much of a prompt is shown in a list.
const PROMPT_MAX: usize = 240;

/// How much of what a run was given is searched.
const GIVEN_MAX: usize = 16 << 10;

/// A run that waits for an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingRun {
    /// Which run.
    pub run: RunRef,
    /// Its readable label.
    pub label: String,
    /// Its workflow.
    pub workflow: String,
    /// The title of the step that waits longest.
    pub step: String,
    /// The beginning of what it asks for.
    pub prompt: String,
    /// Since when it waits, in milliseconds since 1970.
    pub since_ms: u64,
    /// What it was given when it was started, as text to search.
    pub given: String,
    /// Who works on it, if somebody does.
    pub claimant: Option<Claimant>,
    /// Whether that is somebody of the same name as whoever looks, such as the same agent in an
    /// earlier chat.
    pub is_own: bool,
    /// Claims the run, when it is sent alone. A run of somebody of the same name is taken over.
    pub continue_token: String,
}

impl Automations {
    /// The runs that wait for something, latest first. Runs that are paused wait for nothing else.
    pub async fn waiting_for(&self, what: WaitingFor) -> Result<Vec<Summary>> {
        self.inner.waiting_for(what).await
    }

    /// The runs that wait for an agent, those that nobody works on first, each longest first. What
    /// takes a role that whoever looks has not is not shown, and its token not given out.
    pub async fn waiting_for_agents(&self, roles: &Roles) -> Result<Vec<WaitingRun>> {
        self.offered_to(&By::engine(), roles).await
    }

    /// The same for somebody, who can take over what is claimed under their own name: the same
    /// agent may have claimed it in an earlier chat, whose token is lost.
    pub async fn offered_to(&self, by: &By, roles: &Roles) -> Result<Vec<WaitingRun>> {
        let hand = Hand::new(&self.inner).await?;
        let mut found = Vec::new();
        for summary in self.inner.waiting_for(WaitingFor::Caller).await? {
            match self.inner.require_roles(summary.run, roles).await {
                Ok(()) => found.extend(hand.offer(summary.run, by).await?),
                Err(Error::RoleMissing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        found.sort_by_key(|run| (run.claimant.is_some(), run.since_ms));
        Ok(found)
    }

    /// How many runs wait for an agent and are not worked on.
    pub async fn unclaimed(&self) -> Result<usize> {
        let found = self.waiting_for_agents(&Roles::Any).await?;
        Ok(found.iter().filter(|run| run.claimant.is_none()).count())
    }
}

impl Inner {
    async fn waiting_for(&self, what: WaitingFor) -> Result<Vec<Summary>> {
        // A step may wait while others of its run are under way.
        let statuses = vec![RunStatus::Running, RunStatus::Waiting];
        let mut found = Vec::new();
        for summary in self.reading.list(&Filter { statuses, ..Filter::default() }).await? {
            let (summary, state) = self.reading.state(summary.run).await?;
            if waits(&state, what) {
                found.push(summary);
            }
        }
        Ok(found)
    }
}

fn waits(state: &RunState, what: WaitingFor) -> bool {
    let mut steps = state.steps.values();
    state.end.is_none() && !state.paused && steps.any(|step| step.waiting_for == Some(what))
}

impl Hand {
    /// A run as it is offered; none when it waits for no agent any more.
    async fn offer(&self, run: RunId, by: &By) -> Result<Option<WaitingRun>> {
        let past = self.flow.reading.past(run).await?;
        let stop = log::last_stop(&past.events);
        let Some(open) = stop.handed().next() else { return Ok(None) };
        let opened = past.events.iter().find(|event| event.index == open.at);
        let since_ms = opened.map(|event| event.id.minted_ms()).unwrap_or_default();
        let request = payload::value(&self.flow.store, &open.task.request).await?;
        let step = self.replies().title(&past, &open.task.instance).await?;
        let held = Held::new(&past, &self.keys);
        let claimant = self.claimant(&past).await?;
        let is_own = claimant.as_ref().is_some_and(|claimant| claimant.by == by.name);
        let join = ClaimId::mint(&*self.flow.host)?;
        let join = if is_own { join.taking_over() } else { join };
        Ok(Some(WaitingRun {
            run: RunRef { session: past.summary.session, run },
            label: held.label.as_str().to_owned(),
            workflow: past.summary.workflow.clone(),
            step,
            prompt: untrusted::warned(&untrusted::cut(&text(&request, "prompt"), PROMPT_MAX)),
            since_ms,
            given: self.given(&past).await?,
            claimant,
            is_own,
            continue_token: held.token(past.summary.first, join.first_try()),
        }))
    }

    /// What a run was given, as text to search: what it is for, and its payload.
    async fn given(&self, past: &Past) -> Result<String> {
        let Some(queued) = &past.state.queued else { return Ok(String::new()) };
        let input = payload::value(&self.flow.store, &queued.input).await?;
        Ok(truncate(&input.to_string(), GIVEN_MAX))
    }
}
