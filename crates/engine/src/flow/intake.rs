//! One way in: whoever asks for a run, the same is done in the same order.
//!
//! The trigger is found and its key looked up, so that a redelivery gets its first answer whatever
//! the limits say by now. Then come the role, the input, the limits and the settings. Only what
//! passes all of them is recorded, and then begun. Of what is refused nothing stands in the logs
//! of runs and keys.

mod checks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cairn_core::canonical::exact;
use cairn_core::event::engine::{ParentStep, Payload, RunQueued, TriggerReceived};
use cairn_core::event::guided::RunStarted;
use cairn_core::event::{ActorKind, By, Door, Event as Recorded, EventData, NewEvent, Scope, Via};
use cairn_core::flow::Command;
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::plan::{Overflow, Plan};
use cairn_core::text::Slug;
use cairn_core::time;
use cairn_store::port::{Room, SessionRead};
use cairn_store::{AppendPlan, Epoch};
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub(super) use checks::{fitting, require_role};
use checks::{require_recordable, require_start};

use super::chain;
use super::desk::{Arrived, Desk};
use super::holdings::started;
use super::lane::NewRun;
use super::options::overflow;
use super::papers::is_imported;
use super::plans::LoadedPlan;
use super::rights::require_own_child;
use super::trace::{self, TraceParent};
use super::tries::{self, Tries};
use super::watch::{Ended, Refusal};
use super::{Inner, payload};
use crate::catalog::{Found, Identity};
use crate::error::{Error, Result};
use crate::record::{Action, Deed};

/// How long what was received and cannot begin is left alone.
const OWED_PAUSE: Duration = Duration::from_secs(2);
/// How long whoever finds the desk busy is to wait.
const BUSY_MS: u64 = 1_000;

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
        let found = self.workflows.find(&request.workflow).await?;
        let entry = self.entry(&found, request)?;
        let deed = entry.deed(Action::StartRun, &found.id);
        self.record.change(deed, self.enter_or_note(&found, entry, patience)).await
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
    /// workflow say.
    pub(super) async fn submit_patiently(
        self: &Arc<Self>,
        found: &Found,
        entry: Entry,
    ) -> Result<Asked> {
        loop {
            match self.enter(found, entry.clone()).await {
                Err(Error::RateLimited { after_ms, .. } | Error::Busy { after_ms, .. }) => {
                    self.host.sleep(Duration::from_millis(after_ms)).await;
                }
                asked => return asked,
            }
        }
    }

    /// Asks for a run, and lets whoever asked wait for what comes of it.
    pub(super) async fn call(self: &Arc<Self>, request: RunRequest) -> Result<Call> {
        let found = self.workflows.find(&request.workflow).await?;
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
        self.tell_end_from_afar(run).await?;
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
        let counted = self.count_within(desk, plan, entry.trigger.as_ref())?;
        let workflow = Identity::of_run(&loaded.started);
        let env = self.steps.environment.settings(&workflow, plan).await?;
        if let (Some(trigger), Some(key)) = (&entry.trigger, &entry.key) {
            let received = received(&loaded.started, &entry, trigger, key, &event);
            let known = self.note_received(desk, received, claim.epoch).await?;
            // Whoever received it before may have been cut off before it began.
            if known && self.retention.retired_in(desk.session).await?.contains(&run) {
                return Ok(replayed);
            }
        }
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
        let (forked, admitted) = (None, claim.epoch);
        let new = NewRun { id: run, ready, queued, started, forked, admitted };
        let begun = self.begin(desk, new).await;
        if begun.is_err() && entry.key.is_some() {
            // It is received: it begins as soon as it can.
            self.begin_later(desk);
        }
        begun?;
        counted.into_iter().for_each(Counted::keep);
        Ok(Asked { run, replayed: false })
    }

    /// Holds a request to the limits of its workflow, as its trigger says; gives what counts for
    /// them, if it does now.
    fn count_within(
        &self,
        desk: &Arc<Desk>,
        plan: &Plan,
        trigger: Option<&Slug>,
    ) -> Result<Option<Counted>> {
        let most = self.options.at_once(plan);
        let overflow = overflow(plan, trigger);
        let dropped = || Error::Dropped { workflow: desk.workflow.id().to_owned() };
        match overflow {
            Some(Overflow::Queue) => Ok(None),
            Some(Overflow::Drop) if desk.is_full(most) => Err(dropped()),
            Some(Overflow::Drop) => self.count(desk, plan).map(Some).map_err(|_| dropped()),
            Some(Overflow::Reject) if desk.is_full(most) => {
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

    /// Records that a trigger fired; says whether it had been recorded before.
    async fn note_received(
        &self,
        desk: &Desk,
        received: TriggerReceived,
        epoch: Epoch,
    ) -> Result<bool> {
        let (id, scope, data) = (self.host.event_id()?, Scope::Session, received.into());
        let mut events = vec![NewEvent { id, scope, data }];
        let blobs = payload::set_aside(&mut events, self.options.inline_max)?;
        let plan = AppendPlan { events, seen: Vec::new(), blobs, fence: Some(epoch) };
        Ok(self.store.log.append(desk.session, plan).await?.replayed)
    }

    /// Whether something asked for a run here, which may be gone since and brought back.
    async fn has_received(&self, desk: &Desk, run: RunId) -> Result<bool> {
        let events = self.store.log.read(desk.session, EventIndex(0)).await?;
        let is_it = |event: &Recorded| match &event.data {
            EventData::TriggerReceived(received) => received.run_id == run,
            _ => false,
        };
        Ok(events.iter().any(is_it))
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
        let entered = async {
            if let Some(was) = &was {
                require_role(&was.graph.plan, entry.trigger.as_ref(), &entry.roles)?;
            }
            self.enter(&found, entry).await
        };
        self.record.change(deed, entered).await
    }

    /// Starts the child run of a step; gives what to tell the parent.
    pub(super) async fn child(
        self: &Arc<Self>,
        child: RunId,
        (asker, workflow): (&Identity, &str),
        event: TriggerEvent,
        parent: ParentStep,
        depth: u32,
    ) -> Vec<Command> {
        let instance = parent.instance.clone();
        let begun = async {
            let found = self.workflows.find_for(asker, workflow).await?;
            let event = given(&event, "workflow", "", self.host.now_ms());
            let token = self.caller_of(parent.run_id).await?;
            // What was begun while it was allowed goes on.
            let roles = match self.index.find(child).await? {
                Some(known) => require_own_child(&known, &parent)?,
                None => self.child_roles(&found, token.as_deref()).await?,
            };
            let by = by_run(parent.run_id, Door::Child, token);
            let (parent, run) = (Some(parent), child);
            let (trigger, key) = (None, None);
            let entry = Entry { run, trigger, key, event, parent, depth, by, roles };
            self.submit_patiently(&found, entry).await?;
            self.reading.found(child).await
        };
        let summary = match begun.await {
            Ok(summary) => summary,
            Err(error) => {
                let fault = cairn_core::flow::Fault::new(error.code(), error.to_string());
                return vec![Command::ChildRefused { instance, fault }];
            }
        };
        let session = summary.session;
        let mut told = vec![Command::ChildStarted { child, session, instance }];
        // It may be over already, when whoever performed the parent is gone since.
        if let Ok(Some(Ended { status, result, .. })) = self.reading.end_of(child).await {
            told.push(Command::ChildFinished { child, status, output: result });
        }
        told
    }

    /// Takes the desks of workflows that received something which was not begun.
    pub(super) async fn take_received(self: &Arc<Self>) -> Result<()> {
        let workflows: Vec<Identity> =
            self.workflows.list()?.iter().map(|found| found.identity().clone()).collect();
        let read = self.store.runs.sessions().await?;
        let read: BTreeMap<SessionId, SessionRead> =
            read.into_iter().map(|read| (read.session, read)).collect();
        // One that cannot be begun, for want of a setting perhaps, holds up no other.
        let mut failed = None;
        for workflow in workflows {
            // The list of runs has caught up, and says where there may be some.
            match read.get(&triggers_of(&workflow)) {
                Some(read) if read.mark.is_none() => {}
                _ => continue,
            }
            match self.desk(&workflow).await {
                Ok(_) | Err(Error::AdmittedElsewhere { .. }) => {}
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Begins what was received at a desk and not begun when somebody ended.
    pub(super) async fn begin_received(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<()> {
        let read = self.store.runs.sessions().await?;
        let read = read.into_iter().find(|read| read.session == desk.session);
        // The list of runs has caught up, and says from where on there may be some.
        let from = match read {
            Some(read) if read.mark.is_some() => return Ok(()),
            read => read.map_or(EventIndex(0), |read| read.next),
        };
        let events = self.store.log.read(desk.session, from).await?;
        let mut is_owed = false;
        for (run, (_, received)) in asked_for(&events) {
            if self.index.find(run).await?.is_some() {
                continue;
            }
            if let Err(error) = self.begin_one(desk, received.clone()).await {
                is_owed = true;
                let key = &received.key;
                (self.options.trouble)(&format!(
                    "what `{}` received as `{key}` cannot begin yet: {error}",
                    desk.workflow.id()
                ));
            }
        }
        if is_owed {
            self.begin_later(desk);
        }
        Ok(())
    }

    /// Begins what was received and not begun, as soon as that is possible.
    fn begin_later(self: &Arc<Self>, desk: &Arc<Desk>) {
        if !desk.owes() {
            return;
        }
        let (inner, host) = (Arc::downgrade(self), Arc::clone(&self.host));
        let desk = Arc::downgrade(desk);
        self.host.spawn(Box::pin(async move {
            host.sleep(OWED_PAUSE).await;
            let (Some(inner), Some(desk)) = (inner.upgrade(), desk.upgrade()) else { return };
            desk.owes_no_more();
            let again = async {
                // It may have been lost meanwhile.
                let desk = inner.desk(&desk.workflow).await?;
                inner.index.catch_up().await?;
                inner.begin_received(&desk).await
            };
            match again.await {
                // Whoever admits its runs by now sees to it.
                Ok(()) | Err(Error::AdmittedElsewhere { .. } | Error::Stopping) => {}
                Err(_) => inner.begin_later(&desk),
            }
        }));
    }

    /// Begins a run that was received before: it was admitted then, and keeps its place.
    async fn begin_one(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        received: TriggerReceived,
    ) -> Result<()> {
        let TriggerReceived { payload, run_id, trigger_id, by, via, .. } = received;
        let claim = match desk.arrive(run_id).await {
            Arrived::New(claim) => claim,
            Arrived::Known => return Ok(()),
            Arrived::Busy => return Err(busy(desk.workflow.id())),
        };
        // Whoever asked for it again may have begun it since, and it may be over.
        if self.index.find(run_id).await?.is_some() {
            return Ok(());
        }
        let kept = payload::value(&self.store, &payload).await?;
        let depth = kept.get("depth").and_then(Value::as_u64).unwrap_or_default();
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let found = self.workflows.find_same(&desk.workflow).await?;
        let plan = &found.compiled()?.plan;
        let event = kept.get("event").cloned().unwrap_or_default();
        let event = fitting(plan, Some(&trigger_id), event)?;
        let env = self.steps.environment.settings(found.identity(), plan).await?;
        let ready = self.plans.pin(&found).await?;
        let started = started(&found, &ready);
        let queued = RunQueued {
            advance: None,
            by,
            via,
            workspace: None,
            depth,
            forked_from: None,
            input: Payload::inline(json!({"env": env, "event": event})),
            parent: None,
            trigger_id: Some(trigger_id),
            workflow_id: started.workflow_id.clone(),
            workflow_source_ref: Some(started.workflow_source_ref.clone()),
        };
        let (id, forked, admitted) = (run_id, None, claim.epoch);
        self.begin(desk, NewRun { id, ready, queued, started, forked, admitted }).await
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
    let via = Via { actor: ActorKind::Run, door, token_id };
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

/// What is kept of something that starts a run.
fn received(
    workflow: &RunStarted,
    entry: &Entry,
    trigger: &Slug,
    key: &str,
    event: &Value,
) -> TriggerReceived {
    TriggerReceived {
        by: Some(entry.by.name.clone()),
        key: key.to_owned(),
        payload: Payload::inline(json!({"event": event, "depth": entry.depth})),
        run_id: entry.run,
        trigger_id: trigger.clone(),
        via: entry.by.via.clone(),
        workflow_id: workflow.workflow_id.clone(),
        workflow_source_ref: Some(workflow.workflow_source_ref.clone()),
    }
}

/// What was received, and where, by the run that it asks for; without runs that were begun and
/// are over for so long that they may be gone.
pub(super) fn asked_for(events: &[Recorded]) -> BTreeMap<RunId, (EventIndex, &TriggerReceived)> {
    let mut asked = BTreeMap::new();
    for event in events {
        match (&event.data, event.scope.run()) {
            (EventData::TriggerReceived(received), _) => {
                asked.insert(received.run_id, (event.index, received));
            }
            (EventData::RunRetired(_), Some(run)) => {
                asked.remove(&run);
            }
            _ => {}
        }
    }
    asked
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
