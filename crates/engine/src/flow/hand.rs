//! Steps of automations that are handed to an agent: `guide`.
//!
//! An agent starts a run or comes back to one, gets what is handed to it, one step at a time,
//! and says what came of it. Its tokens name places in the log, and answers are made from
//! what stands there, so the same call gets the same answer.

mod claims;
mod follow;
mod fork;
pub(super) mod log;
mod output;
mod reads;
mod reply;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use cairn_core::event::engine::{Payload, TaskOpened};
use cairn_core::event::{By, Door, Event as Recorded, EventData};
use cairn_core::flow::{Command, Rejection};
use cairn_core::guided::label::label;
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::keyring::Keyring;
use cairn_core::reason::Blocker;
use cairn_core::token::compact::{Attempt, CompactToken, Kind, Label};
use cairn_store as store;
use serde_json::{Value, json};

use super::intake::{Roles, RunRequest};
use super::{Automations, Inner, Past, payload};
use crate::error::{Error, Result};
use crate::guided::answer::{Answer, Warning, WarningCode};
use crate::guided::ask::{At, Continue, Output, Wanted};
use crate::guided::{input, is_advance};
use crate::record::{Action, Deed};
use claims::ClaimId;
use follow::Since;
use output::{Handed, Taken};
use reply::{Replies, Reply, text};

pub use claims::Claimant;
pub use waiting::WaitingRun;

impl Automations {
    /// Starts a run that an agent holds, and gives what is handed to it first.
    pub async fn start_held(&self, request: RunRequest) -> Result<Answer> {
        let hand = Hand::new(&self.inner).await?;
        hand.start(request).await.map_err(Error::of_execution)
    }

    /// Takes what an agent with these roles did, or says where its run stands.
    pub async fn proceed(&self, ask: Continue, roles: &Roles) -> Result<Answer> {
        let hand = Hand::new(&self.inner).await?;
        hand.proceed(ask, roles).await.map_err(Error::of_execution)
    }

    /// Claims a run that waits for an agent, whoever started it, and gives its step to somebody who
    /// has the role that starting it takes.
    pub async fn join(&self, run: RunId, by: impl Into<By>, roles: &Roles) -> Result<Answer> {
        self.inner.require_roles(run, roles).await?;
        let hand = Hand::new(&self.inner).await?;
        let past = self.inner.reading.past(run).await?;
        let claim = ClaimId::mint(&*self.inner.host)?;
        hand.stands(past, claim, &by.into()).await.map_err(Error::of_execution)
    }

    /// Frees a run that somebody has claimed, so that others can join; gives who had it.
    pub async fn release(&self, run: RunId, by: impl Into<By>) -> Result<Option<Claimant>> {
        let (by, hand) = (by.into(), Hand::new(&self.inner).await?);
        let past = self.inner.reading.past(run).await?;
        let deed = Deed::to_run(by.clone(), Action::ReleaseRun, run, &past.summary.workflow);
        self.inner.record.change(deed, hand.release(&past, &by)).await
    }

    /// Whether a token was given out by an automation.
    pub async fn gave_out(&self, token: &str) -> Result<bool> {
        let keys = self.inner.store.keys.load().await?;
        Ok(CompactToken::verify(token.trim(), Kind::Hand, &keys).is_ok())
    }
}

/// A place in the log that a token names.
struct Spot {
    run: RunId,
    /// The event there.
    event: Recorded,
    attempt: Attempt,
}

/// What a run of an automation is called, and how its tokens are made.
struct Held<'a> {
    session: SessionId,
    label: Label,
    keys: &'a Keyring,
}

impl<'a> Held<'a> {
    fn new(past: &Past, keys: &'a Keyring) -> Self {
        let label = label(&past.summary.workflow, past.summary.run);
        Self { session: past.summary.session, label, keys }
    }

    fn token(&self, node: EventIndex, attempt: Attempt) -> String {
        let (label, session) = (self.label.clone(), self.session);
        CompactToken { label, session, node, attempt }.sign(Kind::Hand, self.keys)
    }
}

/// Hands steps to agents, with the keys that sign their tokens.
struct Hand {
    flow: Arc<Inner>,
    keys: Keyring,
}

impl Hand {
    async fn new(flow: &Arc<Inner>) -> Result<Self> {
        Ok(Self { flow: Arc::clone(flow), keys: flow.store.keys.load().await? })
    }

    fn replies(&self) -> Replies<'_> {
        Replies { store: &self.flow.store, plans: &self.flow.plans, keys: &self.keys }
    }

    async fn start(&self, request: RunRequest) -> Result<Answer> {
        let by = request.by.clone();
        // That a run was started over MCP stands in its log; nothing else says that its steps
        // are for whoever asked.
        let over_mcp = by.via.as_ref().is_some_and(|via| via.door == Door::Mcp);
        let claim = match over_mcp {
            true => ClaimId::STARTER,
            false => ClaimId::mint(&*self.flow.host)?,
        };
        let run = self.flow.submit(request, Duration::ZERO).await?.run;
        let past = self.flow.reading.past(run).await?;
        let past = self.settle(past, Since::Event(EventIndex(0))).await?;
        if log::last_stop(&past.events).handed().next().is_some() {
            self.hold(&past, claim, &by).await?;
        }
        self.replies().make(Reply::begun(&past).under(claim)).await
    }

    async fn proceed(&self, ask: Continue, roles: &Roles) -> Result<Answer> {
        let spot = self.spot(&ask.at).await?;
        self.flow.require_roles(spot.run, roles).await?;
        if !is_advance(&ask) {
            input::rehydrate_only(&ask)?;
            return self.back(&spot, &asker(&ask)).await;
        }
        nothing_else(&ask)?;
        match &spot.event.data {
            EventData::TaskOpened(task) => self.take(&spot, task, &ask).await,
            EventData::TaskAnswered(task) => self.fork_held(&spot, task, &ask, roles).await,
            _ => Err(input::invalid(
                "no step was handed out with this token, so there is none to be done".to_owned(),
                "send the token alone, without `output` and `intent`, to see where the run stands",
                json!({"field": "continueToken"}),
            )),
        }
    }

    /// The place that a token names.
    async fn spot(&self, at: &At) -> Result<Spot> {
        let (At::Compact(text) | At::Pair { state: text, .. }) = at;
        let token = CompactToken::verify(text.trim(), Kind::Hand, &self.keys);
        let field = "continueToken";
        let token = token.map_err(|source| Error::Token {
            field,
            source,
            instead: "copy the `continueToken` of the latest answer whole".to_owned(),
        })?;
        let CompactToken { session, node, attempt, .. } = token;
        let gone = || Error::TokenUnknownNode(format!("a place in session {session}"));
        let events = match self.flow.store.log.read_between(session, node, node).await {
            Err(store::Error::NotFound(_)) => return Err(gone()),
            other => other?,
        };
        let event = events.into_iter().next().ok_or_else(gone)?;
        let run = event.scope.run().ok_or_else(gone)?;
        Ok(Spot { run, event, attempt })
    }

    /// Takes what an agent says of a step.
    async fn take(&self, spot: &Spot, task: &TaskOpened, ask: &Continue) -> Result<Answer> {
        let (claim, by) = (ClaimId::of(spot.attempt), asker(ask));
        let mut past = self.flow.reading.past(spot.run).await?;
        let judged = self.judge(&past, task, ask.output.as_ref()).await?;
        let is_done = log::answered(&past.events, task.task_id).is_some();
        let taken = match judged {
            Ok(taken) => taken,
            // What is wrong with another answer to a step that is done keeps nothing waiting.
            Err(_) if is_done => {
                return self.not_taken(&past, spot, task, ask.output.as_ref()).await;
            }
            Err(blockers) => {
                return self.replies().make(Reply::blocked(&past, spot, blockers)).await;
            }
        };
        if !is_done {
            if past.state.end.is_none() {
                self.hold(&past, claim, &by).await?;
            }
            self.acknowledge(&past, task, by, taken.output.clone()).await?;
            past = self.flow.reading.past(spot.run).await?;
        }
        let Some((at, answered)) = log::answered(&past.events, task.task_id) else {
            return Err(Error::Broken("an answer left no record".to_owned()));
        };
        let recorded = payload::value(&self.flow.store, &answered.answer).await?;
        let past = self.settle(past, Since::Event(at)).await?;
        if recorded != taken.output {
            return self.not_taken(&past, spot, task, ask.output.as_ref()).await;
        }
        let reply = Reply::advanced(&past, at, taken.warnings);
        self.replies().make(reply.under(claim)).await
    }

    /// What comes of what an agent sent for a step.
    async fn judge(
        &self,
        past: &Past,
        task: &TaskOpened,
        sent: Option<&Output>,
    ) -> Result<std::result::Result<Taken, Vec<Blocker>>> {
        let step = &task.instance.step;
        let request = payload::value(&self.flow.store, &task.request).await?;
        let reads = self.replies().reads(past, step).await?;
        output::judge(Handed { step, request: &request, reads: &reads }, sent)
    }

    /// Comes back to a step that was done with another output than the one that was sent now.
    async fn not_taken(
        &self,
        past: &Past,
        spot: &Spot,
        task: &TaskOpened,
        sent: Option<&Output>,
    ) -> Result<Answer> {
        let answer = self.rewound(past, spot, task).await?;
        let mut answer =
            answer.ok_or_else(|| Error::Broken("an answer left no record".to_owned()))?;
        let now = log::last_stop(&past.events);
        let at = now.handed().next().map(|open| open.task.instance.to_string());
        let stands = match (now.end.is_some(), at) {
            (true, _) => "the run is over".to_owned(),
            (false, Some(at)) => format!("the run is at `{at}`"),
            (false, None) => "the run continues by itself".to_owned(),
        };
        answer.warnings.insert(0, other_input(sent, &stands));
        Ok(answer)
    }

    /// Says to a run what came of a step. That somebody said so before is no mistake.
    async fn acknowledge(
        &self,
        past: &Past,
        task: &TaskOpened,
        by: By,
        output: Value,
    ) -> Result<()> {
        let run = past.summary.run;
        let label = || Held::new(past, &self.keys).label.as_str().to_owned();
        if past.state.end.is_some() {
            return Err(Error::RunComplete(label()));
        }
        let deed = Deed::to_run(by.clone(), Action::ContinueRun, run, &past.summary.workflow);
        let by = self.flow.record.note(deed.with(&output)).await?;
        let instance = task.instance.clone();
        let told = self.flow.tell(run, Command::Acknowledge { instance, by, output }).await;
        let Err(error) = told else { return Ok(()) };
        let now = self.flow.reading.past(run).await?;
        if log::answered(&now.events, task.task_id).is_some() {
            return Ok(());
        }
        match error {
            Error::RunRefused { refused: Rejection::Ended, .. } => Err(Error::RunComplete(label())),
            Error::Told { code, .. } if code == "RUN_ENDED" => Err(Error::RunComplete(label())),
            other => Err(other),
        }
    }

    /// Says where a run stands, or shows a step again. Nothing is written to the log for it; a run
    /// that nobody performs goes on.
    async fn back(&self, spot: &Spot, by: &By) -> Result<Answer> {
        let claim = ClaimId::of(spot.attempt);
        let past = self.flow.reading.past(spot.run).await?;
        if let EventData::TaskOpened(task) = &spot.event.data {
            let now = log::last_stop(&past.events);
            if now.handed().any(|open| open.task.task_id == task.task_id) {
                self.claim(&past, claim, by).await?;
                return self.replies().make(Reply::again(&past, spot)).await;
            }
            if let Some(answer) = self.rewound(&past, spot, task).await? {
                return Ok(answer);
            }
        }
        self.stands(past, claim, by).await
    }

    /// Says where a run stands. A step that waits for an agent is claimed with it.
    async fn stands(&self, past: Past, claim: ClaimId, by: &By) -> Result<Answer> {
        let past = self.settle(past, Since::Now).await?;
        if log::last_stop(&past.events).handed().next().is_some() {
            self.claim(&past, claim, by).await?;
        }
        let (claim, _) = claim.settled();
        self.replies().make(Reply::back(&past).under(claim)).await
    }
}

/// Who asks.
fn asker(ask: &Continue) -> By {
    ask.by.clone().unwrap_or_else(|| "agent".into())
}

/// Refuses what a step of an automation has no place for.
fn nothing_else(ask: &Continue) -> Result<()> {
    if ask.context.is_some() {
        return Err(input::invalid(
            "an automation takes its context when it starts, and none with a step".to_owned(),
            "put what the step brought into `output`, and leave `context` out",
            json!({"field": "context"}),
        ));
    }
    if ask.preferences != Wanted::default() {
        return Err(input::invalid(
            "an automation has no preferences".to_owned(),
            "leave `preferences` out",
            json!({"field": "preferences"}),
        ));
    }
    Ok(())
}

fn other_input(sent: Option<&Output>, stands: &str) -> Warning {
    let notes = sent.and_then(|sent| sent.notes.as_ref()).map(|_| "notes");
    let artifacts = sent.filter(|sent| !sent.artifacts.is_empty()).map(|_| "artifacts");
    let sent: Vec<&str> = notes.into_iter().chain(artifacts).collect();
    let sent = if sent.is_empty() { "an empty output".to_owned() } else { sent.join(", ") };
    Warning {
        code: WarningCode::ReplayedWithOtherInput,
        message: format!(
            "not recorded: {sent}. This step is done, with another output, and {stands}. This \
             answer shows the step again, and its continueToken starts a new run from it. To \
             continue the recorded run instead, use the continueToken in `branches`"
        ),
    }
}

/// The value of a payload that is in its place.
fn inline(payload: &Payload) -> Option<&Value> {
    match payload {
        Payload::Inline(value) => Some(&value.0),
        Payload::Blob(_) => None,
    }
}
