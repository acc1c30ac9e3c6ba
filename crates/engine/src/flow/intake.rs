//! One way in: whoever asks for a run, the same is done in the same order.
//!
//! The trigger is found and its key looked up, so that a redelivery gets its first answer whatever
//! the limits say by now. Then come the role, the input, the limits and the settings. Only what
//! passes all of them is recorded, and then begun. Of what is refused nothing stands in the logs
//! of runs and keys.

mod checks;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cairn_core::canonical::exact;
use cairn_core::event::engine::{ParentStep, Payload, RunQueued};
use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_core::flow::Command;
use cairn_core::id::{RunId, SessionId};
use cairn_core::plan::{Overflow, Plan};
use cairn_core::text::Slug;
use cairn_core::time;
use cairn_store::Epoch;
use cairn_store::port::Room;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use checks::require_start;
pub(super) use checks::{PAYLOAD_DEPTH_MAX, fitting, require_recordable, require_role};

use super::chain;
use super::desk::{Arrived, Claim, Desk};
use super::holdings::started;
use super::index::Summary;
use super::lane::NewRun;
use super::options::overflow;
use super::papers::is_imported;
use super::plans::LoadedPlan;
use super::received::received;
use super::rights::require_own_child;
use super::trace::{self, TraceParent};
use super::tries::{self, Tries};
use super::watch::{Ended, Refusal};
use super::{Inner, payload};
use crate::catalog::{Found, Identity};
use crate::error::{Error, Result};
use crate::record::{Action, Deed};

/// How long whoever finds the desk busy is to wait.
const BUSY_MS: u64 = 1_000;
/// How long the engine itself waits before it asks again, at first and at most.
const PATIENCE_MIN: Duration = Duration::from_millis(200);
const PATIENCE_MAX: Duration = Duration::from_secs(10);

/// Somebody asks for a run.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The workflow's id.
    pub workflow: String,
    /// The trigger that fired; none when somebody asks directly.
    pub trigger: Option<Slug>,
    /// What makes it one of a kind: a delivery id, an instant, a message id. Without one it
    /// is one of a kind by itself.
    pub key: Option<String>,
    /// What came with it.
    pub event: TriggerEvent,
    /// How many runs led to it.
    pub depth: u32,
    /// Who asks.
    pub by: By,
    /// What whoever asks may do.
    pub roles: Roles,
}

/// The roles of somebody who asks for a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roles {
    /// Whoever asks needs none: it is the engine itself, a trigger that has proved itself, or
    /// somebody on this machine who may read the data.
    Any,
    /// These.
    Of(BTreeSet<String>),
}

impl Roles {
    fn has(&self, role: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Of(roles) => roles.contains(role),
        }
    }
}

/// What the templates of a run see as `event`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TriggerEvent {
    /// What came in.
    pub payload: Value,
    /// What kind of thing it was, such as `webhook`.
    pub kind: String,
    /// Whatever else is known of it, by the names that templates have for it.
    pub more: serde_json::Map<String, Value>,
}

impl TriggerEvent {
    /// The same as a part of something that is traced.
    #[must_use]
    pub fn within(mut self, above: Option<TraceParent>) -> Self {
        let told = above.map(|above| (trace::MEMBER.to_owned(), json!(above.to_string())));
        self.more.extend(told);
        self
    }
}

/// A run that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The run.
    pub run: RunId,
    /// Whether it was asked for before, and nothing new was begun.
    pub replayed: bool,
}

/// A run that was asked for by somebody who waits.
pub struct Call {
    /// The run.
    pub asked: Asked,
    /// What it answers, if it does. Of a run that was asked for before nothing is told.
    pub response: oneshot::Receiver<Value>,
    /// How it ends.
    pub ended: oneshot::Receiver<Ended>,
}

impl Inner {
    /// Asks for a run, and waits so long for the limits of its workflow. The same key asks for the
    /// same run, once.
    pub(super) async fn submit(
        self: &Arc<Self>,
        request: RunRequest,
        patience: Duration,
    ) -> Result<Asked> {
        let found = self.workflows.find_to_run(&request.workflow, &request.by).await?;
        let entry = self.entry(&found, request)?;
        let deed = entry.deed(Action::StartRun, &found.id);
        let enter = |by| self.enter_or_note(&found, Entry { by, ..entry }, patience);
        self.record.change_by(deed, enter).await
    }

    /// Has a run admitted, and notes of what was refused that it was.
    async fn enter_or_note(
        self: &Arc<Self>,
        found: &Found,
        entry: Entry,
        patience: Duration,
    ) -> Result<Asked> {
        let trigger = entry.trigger.clone();
        let asked = self.enter_in_turn(found, entry, patience).await;
        if let (Err(why), Some(trigger)) = (&asked, &trigger)
            && !why.is_passing()
            && self.refusals.note(found.identity(), trigger, why)
        {
            self.watchers.refused(&Refusal { workflow: &found.id, trigger, why });
        }
        asked
    }

    /// Has a run admitted when its turn comes, if that is soon enough.
    async fn enter_in_turn(
        self: &Arc<Self>,
        found: &Found,
        entry: Entry,
        patience: Duration,
    ) -> Result<Asked> {
        let until = self.host.uptime().saturating_add(patience);
        loop {
            let asked = self.enter(found, entry.clone()).await;
            let Err(Error::RateLimited { after_ms, .. }) = &asked else { return asked };
            let pause = Duration::from_millis(*after_ms);
            if self.host.uptime().saturating_add(pause) > until {
                return asked;
            }
            self.host.sleep(pause).await;
        }
    }

    /// Asks for a run on behalf of the engine itself, which waits as long as the limits of the
    /// workflow say, and until whatever is in the way has passed. Its run is the same at each try,
    /// so that asking again begins nothing twice.
    pub(super) async fn submit_patiently(
        self: &Arc<Self>,
        found: &Found,
        entry: Entry,
    ) -> Result<Asked> {
        let mut pause = PATIENCE_MIN;
        loop {
            let asked = self.enter(found, entry.clone()).await;
            if !self.wait_out(&asked, &mut pause).await {
                return asked;
            }
        }
    }

    /// Waits until what is in the way may have passed; says whether to ask again.
    async fn wait_out<T>(&self, asked: &Result<T>, pause: &mut Duration) -> bool {
        let after = match asked {
            Err(Error::RateLimited { after_ms, .. } | Error::Busy { after_ms, .. }) => {
                Duration::from_millis(*after_ms)
            }
            Err(error) if error.goes_by() => *pause,
            _ => return false,
        };
        *pause = (*pause * 2).min(PATIENCE_MAX);
        self.host.sleep(after).await;
        true
    }

    /// Whether a run is over, or gone, as far as that can be read.
    async fn is_over(&self, run: RunId) -> bool {
        match self.reading.state(run).await {
            Ok((_, state)) => state.end.is_some(),
            Err(error) => matches!(error, Error::RunUnknown(_)),
        }
    }

    /// Asks for a run, and lets whoever asked wait for what comes of it.
    pub(super) async fn call(self: &Arc<Self>, request: RunRequest) -> Result<Call> {
        let found = self.workflows.find_to_run(&request.workflow, &request.by).await?;
        let entry = self.entry(&found, request)?;
        let run = entry.run;
        let (response, ended) =
            (self.watchers.until_response(run), self.watchers.until_end_of_new(run));
        let asked = self.enter_or_note(&found, entry, Duration::ZERO).await;
        if !asked.as_ref().is_ok_and(|asked| !asked.replayed && asked.run == run) {
            // Nobody is told of what was told before.
            drop((response, ended));
            self.watchers.tidy(run);
            let ((_, response), (_, ended)) = (oneshot::channel(), oneshot::channel());
            return asked.map(|asked| Call { asked, response, ended });
        }
        self.tell_end_from_afar(run).await;
        Ok(Call { asked: asked?, response, ended })
    }

    fn entry(&self, found: &Found, request: RunRequest) -> Result<Entry> {
        let RunRequest { trigger, key, event, depth, by, roles, .. } = request;
        chain::require_short(&found.id, depth)?;
        let run = match (&trigger, &key) {
            (Some(trigger), Some(key)) => keyed(found.identity(), trigger, key),
            _ => self.host.run_id()?,
        };
        let name = trigger.as_ref().map_or("manual", Slug::as_str);
        let event = TriggerEvent { payload: exact(event.payload), ..event };
        let event = given(&event, name, key.as_deref().unwrap_or_default(), self.host.now_ms());
        let key = key.filter(|_| trigger.is_some());
        Ok(Entry { run, trigger, key, event, parent: None, depth, by, roles })
    }

    /// Has a run admitted by whoever admits those of its workflow.
    async fn enter(self: &Arc<Self>, found: &Found, entry: Entry) -> Result<Asked> {
        // Only an automation has a plan that can be gone through.
        require_start(&found.compiled()?.plan, entry.trigger.as_ref())?;
        let ready = self.plans.pin(found).await?;
        let loaded = LoadedPlan { started: started(found, &ready), ready };
        let session = triggers_of(found.identity());
        let mut tries = Tries::at(session);
        loop {
            let asked = match self.desk(found.identity()).await {
                Ok(desk) => self.admit(&desk, &loaded, entry.clone()).await,
                Err(elsewhere @ Error::AdmittedElsewhere { .. }) if tries.is_in_doubt => {
                    tries.elsewhere = Some(elsewhere);
                    Err(Error::InDoubt { session, owner: None })
                }
                Err(elsewhere @ Error::AdmittedElsewhere { .. }) => {
                    tries.elsewhere = Some(elsewhere.clone());
                    let handed = self.post.hand_over(session, found, &entry).await;
                    handed.and_then(|handed| handed.unwrap_or(Err(elsewhere)))
                }
                Err(error) => Err(error),
            };
            if let Some(said) = tries.settle(asked) {
                return said;
            }
            // The next try is for the same run.
            self.host.sleep(tries::PAUSE).await;
        }
    }

    /// Looks at a request in the order that holds for all of them, records it and begins it.
    pub(super) async fn admit(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        loaded: &LoadedPlan,
        entry: Entry,
    ) -> Result<Asked> {
        let plan = &loaded.ready.graph.plan;
        let (run, replayed) = (entry.run, Asked { run: entry.run, replayed: true });
        require_start(plan, entry.trigger.as_ref())?;
        let claim = match desk.arrive(run).await {
            Arrived::New(claim) => claim,
            Arrived::Known => return Ok(replayed),
            Arrived::Unknown(session) => return Err(Error::LaneDown { session }),
            Arrived::Busy => return Err(busy(desk.workflow.id())),
        };
        if let Some(found) = self.index.find(run).await? {
            let is_ours = !is_imported(&self.store, found.session).await?;
            if is_ours || self.has_received(desk, run).await? {
                return Ok(replayed);
            }
            // A run from elsewhere answers for none that is asked for here.
            let entry = Entry { run: RunId::derive(&["here", &run.to_string()]), ..entry };
            return Box::pin(self.admit(desk, loaded, entry)).await;
        }
        require_role(plan, entry.trigger.as_ref(), &entry.roles)?;
        let event = fitting(plan, entry.trigger.as_ref(), entry.event.clone())?;
        require_recordable(&event, entry.key.as_deref())?;
        self.store.log.room(Room::Run).await?;
        let counted = self.count_within(desk, &claim, plan, entry.trigger.as_ref())?;
        let workflow = Identity::of_run(&loaded.started);
        let env = self.steps.environment.settings(&workflow, plan).await?;
        let asked = self.record(desk, loaded, (entry, event, env), claim.epoch).await?;
        if !asked.replayed {
            counted.into_iter().for_each(Counted::keep);
        }
        Ok(asked)
    }

    /// Records a request that passed, under one ownership of the desk, and begins its run. One with
    /// a key is promised once it is received: what cannot begin then begins as soon as it can.
    async fn record(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        loaded: &LoadedPlan,
        (entry, event, env): (Entry, Value, Value),
        admitted: Epoch,
    ) -> Result<Asked> {
        let run = entry.run;
        if let (Some(trigger), Some(key)) = (&entry.trigger, &entry.key) {
            let received = received(&loaded.started, &entry, trigger, key, &event);
            let noted = self.note_received(desk, received, admitted).await;
            let known = noted.inspect_err(|error| {
                // It may have been received.
                if matches!(error, Error::InDoubt { .. }) {
                    self.begin_later(desk);
                }
            })?;
            // Whoever received it before may have been cut off before it began.
            if known {
                if self.retention.retired_in(desk.session).await?.contains(&run) {
                    return Ok(Asked { run, replayed: true });
                }
                self.require_whole(desk).await?;
                if self.index.find(run).await?.is_some() {
                    return Ok(Asked { run, replayed: true });
                }
            }
        }
        let is_promised = entry.key.is_some();
        let queued = RunQueued {
            advance: None,
            by: Some(entry.by.name),
            via: entry.by.via,
            workspace: None,
            depth: entry.depth,
            forked_from: None,
            input: Payload::inline(json!({"env": env, "event": event})),
            parent: entry.parent,
            trigger_id: entry.trigger,
            workflow_id: loaded.started.workflow_id.clone(),
            workflow_source_ref: Some(loaded.started.workflow_source_ref.clone()),
        };
        let LoadedPlan { ready, started } = loaded.clone();
        let (id, forked) = (run, None);
        match self.begin(desk, NewRun { id, ready, queued, started, forked, admitted }).await {
            Err(_) if is_promised => self.begin_later(desk),
            begun => begun?,
        }
        Ok(Asked { run, replayed: false })
    }

    /// Holds a request to the limits of its workflow, as its trigger says; gives what counts for
    /// them, if it does now.
    fn count_within(
        &self,
        desk: &Arc<Desk>,
        claim: &Claim<'_>,
        plan: &Plan,
        trigger: Option<&Slug>,
    ) -> Result<Option<Counted>> {
        let most = self.options.at_once(plan);
        let overflow = overflow(plan, trigger);
        let dropped = || Error::Dropped { workflow: desk.workflow.id().to_owned() };
        match overflow {
            Some(Overflow::Queue) => Ok(None),
            Some(Overflow::Drop) if !claim.reserve(most) => Err(dropped()),
            Some(Overflow::Drop) => self.count(desk, plan).map(Some).map_err(|_| dropped()),
            Some(Overflow::Reject) if !claim.reserve(most) => {
                let workflow = desk.workflow.id().to_owned();
                Err(Error::Overflow { workflow, most, after_ms: BUSY_MS })
            }
            Some(Overflow::Reject) | None => self.count(desk, plan).map(Some),
        }
    }

    /// Begins a run that was admitted. Its claim is held by whoever asks.
    pub(super) async fn begin(self: &Arc<Self>, desk: &Arc<Desk>, new: NewRun) -> Result<()> {
        self.lane(desk).await?.begin(new).await
    }

    /// Counts a run for the limit of its workflow, or says when it may begin.
    pub(super) fn count(&self, desk: &Arc<Desk>, plan: &Plan) -> Result<Counted> {
        let limit = self.options.rate(plan);
        let at_ms = self.host.now_ms();
        desk.rate.take(&limit, at_ms).map_err(|after_ms| Error::RateLimited {
            workflow: desk.workflow.id().to_owned(),
            runs_max: limit.runs_max,
            per_ms: limit.per_ms,
            after_ms,
        })?;
        Ok(Counted { desk: Some(Arc::clone(desk)), at_ms })
    }

    /// Does a run again with the same event, for somebody who has these roles.
    pub(super) async fn replay(
        self: &Arc<Self>,
        run: RunId,
        by: By,
        roles: Roles,
    ) -> Result<Asked> {
        let (_, state) = self.reading.state(run).await?;
        let queued = state.queued.ok_or(Error::RunUnknown(run))?;
        let input = payload::value(&self.store, &queued.input).await?;
        let event = input.get("event").cloned().unwrap_or_default();
        let was = match &state.started {
            Some(started) => Some(self.plans.get(started.workflow_hash).await?),
            None => None,
        };
        let place = queued.workflow_source_ref.as_deref();
        let found =
            self.workflows.find_same(&Identity::recorded(&queued.workflow_id, place)).await?;
        let (of, run, trigger) = (run, self.host.run_id()?, queued.trigger_id);
        let entry = Entry { run, trigger, key: None, event, parent: None, depth: 0, by, roles };
        let deed = entry.deed(Action::ReplayRun, &found.id).with(&json!({"of": of.to_string()}));
        let entered = async |by| {
            let entry = Entry { by, ..entry };
            if let Some(was) = &was {
                require_role(&was.graph.plan, entry.trigger.as_ref(), &entry.roles)?;
            }
            self.enter(&found, entry).await
        };
        self.record.change_by(deed, entered).await
    }

    /// Starts the child run of a step, as soon as nothing is in the way that passes; gives what to
    /// tell the parent.
    pub(super) async fn child(
        self: &Arc<Self>,
        child: RunId,
        named: (&Identity, &str),
        event: TriggerEvent,
        parent: ParentStep,
        depth: u32,
    ) -> Vec<Command> {
        let mut pause = PATIENCE_MIN;
        let begun = loop {
            let begun = self.begin_child(child, named, &event, &parent, depth).await;
            // Whoever is over waits for nobody.
            if !self.wait_out(&begun, &mut pause).await || self.is_over(parent.run_id).await {
                break begun;
            }
        };
        let instance = parent.instance;
        let session = match begun {
            Ok(summary) => summary.session,
            // That this process ends says nothing of the child: whoever recovers the parent asks
            // again.
            Err(Error::Stopping) => return Vec::new(),
            Err(error) => {
                let fault = cairn_core::flow::Fault::new(error.code(), error.to_string());
                return vec![Command::ChildRefused { instance, fault }];
            }
        };
        let mut told = vec![Command::ChildStarted { child, session, instance }];
        // It may be over already, when whoever performed the parent is gone since.
        if let Ok(Some(Ended { status, result, .. })) = self.reading.end_of(child).await {
            told.push(Command::ChildFinished { child, status, output: result });
        }
        told
    }

    /// Asks for the child run of a step, which is the same at each try.
    async fn begin_child(
        self: &Arc<Self>,
        child: RunId,
        (asker, workflow): (&Identity, &str),
        event: &TriggerEvent,
        parent: &ParentStep,
        depth: u32,
    ) -> Result<Summary> {
        let found = self.workflows.find_for(asker, workflow).await?;
        let event = given(event, "workflow", "", self.host.now_ms());
        let token = self.caller_of(parent.run_id).await?;
        // What was begun while it was allowed goes on.
        let roles = match self.index.find(child).await? {
            Some(known) => require_own_child(&known, parent)?,
            None => self.child_roles(&found, token.as_deref()).await?,
        };
        let by = by_run(parent.run_id, Door::Child, token);
        let (parent, run) = (Some(parent.clone()), child);
        let (trigger, key) = (None, None);
        let entry = Entry { run, trigger, key, event, parent, depth, by, roles };
        self.enter(&found, entry).await?;
        self.reading.found(child).await
    }
}

/// A run that was asked for, on its way in.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entry {
    pub(super) run: RunId,
    pub(super) trigger: Option<Slug>,
    pub(super) key: Option<String>,
    /// What templates see as `event`.
    pub(super) event: Value,
    pub(super) parent: Option<ParentStep>,
    pub(super) depth: u32,
    pub(super) by: By,
    pub(super) roles: Roles,
}

impl Entry {
    /// What whoever asks for the run is recorded with.
    fn deed(&self, action: Action, workflow: &str) -> Deed {
        let payload = self.event.get("payload");
        let arguments = json!({"trigger": self.trigger, "key": self.key, "payload": payload});
        Deed::to_run(self.by.clone(), action, self.run, workflow).with(&arguments)
    }
}

/// A run that asks for another.
pub(super) fn by_run(run: RunId, door: Door, token_id: Option<String>) -> By {
    let via = Via { actor: ActorKind::Run, door, line: None, token_id };
    By { name: run.to_string(), via: Some(via) }
}

/// A run that counts for the limit of its workflow, unless nothing comes of it.
pub(super) struct Counted {
    desk: Option<Arc<Desk>>,
    at_ms: u64,
}

impl Counted {
    /// It begins.
    pub(super) fn keep(mut self) {
        self.desk = None;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.desk.iter().for_each(|desk| desk.rate.give_back(self.at_ms));
    }
}

pub(super) fn busy(workflow: &str) -> Error {
    Error::Busy { workflow: workflow.to_owned(), after_ms: BUSY_MS }
}

/// The session that remembers what fired for a workflow.
pub(super) fn triggers_of(workflow: &Identity) -> SessionId {
    SessionId::derive(&["triggers", workflow.key()])
}

/// The run that a trigger asks for with a key.
pub(super) fn keyed(workflow: &Identity, trigger: &Slug, key: &str) -> RunId {
    RunId::derive(&[workflow.key(), trigger.as_str(), key])
}

/// What templates see as `event`.
pub(super) fn given(event: &TriggerEvent, trigger: &str, key: &str, now: u64) -> Value {
    let mut members = event.more.clone();
    members.insert("at".to_owned(), json!(time::show(now)));
    members.insert("key".to_owned(), json!(key));
    members.insert("payload".to_owned(), event.payload.clone());
    members.insert("trigger".to_owned(), json!(trigger));
    members.insert("type".to_owned(), json!(event.kind));
    Value::Object(members)
}
