//! What starts runs: received once, durably, and then begun.

use std::collections::BTreeMap;
use std::sync::Arc;

use cairn_core::canonical::{self, exact};
use cairn_core::event::engine::{ParentStep, Payload, RunQueued, TriggerReceived};
use cairn_core::event::guided::SessionCreated;
use cairn_core::event::{Event as Recorded, EventData, NewEvent, Scope, limits};
use cairn_core::flow::Command;
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::plan::{Dialect, Plan};
use cairn_core::text::Slug;
use cairn_core::time;
use cairn_store as store;
use cairn_store::AppendPlan;
use cairn_store::port::SessionRead;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::chain;
use super::lane::NewRun;
use super::lanes::started;
use super::trace::{self, TraceParent};
use super::watch::Ended;
use super::{Inner, payload};
use crate::catalog::Found;
use crate::error::{Error, Result};
use crate::trigger::input;

/// How deep what starts a run may nest.
const PAYLOAD_DEPTH_MAX: usize = 48;
/// How many bytes of it there may be.
const PAYLOAD_MAX: usize = 4 << 20;

/// Something that starts a run.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The workflow's id.
    pub workflow: String,
    /// The trigger that fired; none when somebody asks directly.
    pub trigger: Option<Slug>,
    /// What makes it one of a kind: a delivery id, an instant, a message id. Without one it
    /// is one of a kind by itself.
    pub key: Option<String>,
    /// What came with it.
    pub event: Event,
    /// How many runs led to it.
    pub depth: u32,
}

/// What the templates of a run see as `event`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Event {
    /// What came in.
    pub payload: Value,
    /// What kind of thing it was, such as `webhook`.
    pub kind: String,
    /// Whatever else is known of it, by the names that templates have for it.
    pub more: serde_json::Map<String, Value>,
}

impl Event {
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
    pub(super) async fn find(&self, workflow: &str) -> Result<Arc<Found>> {
        if let Some(found) = self.catalog.find_at_once(workflow) {
            return Ok(found);
        }
        let (catalog, workflow) = (Arc::clone(&self.catalog), workflow.to_owned());
        self.host.wait_for(move || catalog.find(&workflow)).await?
    }

    pub(super) async fn receive(self: &Arc<Self>, arrival: Arrival) -> Result<Asked> {
        let found = self.find(&arrival.workflow).await?;
        let arrival = arrival.fitting(&found)?;
        let run = self.run_of(&arrival, &found)?;
        self.receive_as(&found, run, arrival).await
    }

    pub(super) async fn receive_paced(self: &Arc<Self>, arrival: Arrival) -> Result<Asked> {
        let found = self.find(&arrival.workflow).await?;
        let arrival = arrival.fitting(&found)?;
        let run = self.run_of(&arrival, &found)?;
        self.receive_in_turn(&found, run, arrival).await
    }

    /// Takes something in when its workflow may begin another run.
    async fn receive_in_turn(
        self: &Arc<Self>,
        found: &Found,
        run: RunId,
        arrival: Arrival,
    ) -> Result<Asked> {
        chain::require_short(&found.id, arrival.depth)?;
        if let Err(refused) = self.admit(found).await {
            // What comes again asks for nothing new.
            let known = arrival.key.is_some() && self.found(run).await.is_ok();
            return if known { Ok(Asked { run, replayed: true }) } else { Err(refused) };
        }
        let asked = self.receive_as(found, run, arrival).await;
        if !asked.as_ref().is_ok_and(|asked| !asked.replayed) {
            self.pace.give_back(&found.id);
        }
        asked
    }

    /// Takes something in, and lets whoever asked wait for what comes of it.
    pub(super) async fn call(self: &Arc<Self>, arrival: Arrival) -> Result<Call> {
        let found = self.find(&arrival.workflow).await?;
        let arrival = arrival.fitting(&found)?;
        let run = self.run_of(&arrival, &found)?;
        let (response, ended) = (self.watchers.until_response(run), self.watchers.until_end(run));
        let asked = self.receive_in_turn(&found, run, arrival).await;
        if !asked.as_ref().is_ok_and(|asked| !asked.replayed) {
            // Nobody is told of what was told before.
            drop((response, ended));
            self.watchers.tidy(run);
            let ((_, response), (_, ended)) = (oneshot::channel(), oneshot::channel());
            return asked.map(|asked| Call { asked, response, ended });
        }
        let asked = asked?;
        Ok(Call { asked, response, ended })
    }

    async fn receive_as(
        self: &Arc<Self>,
        found: &Found,
        run: RunId,
        arrival: Arrival,
    ) -> Result<Asked> {
        let Arrival { trigger, key, event, depth, .. } = arrival;
        let event = Event { payload: exact(event.payload), ..event };
        require_recordable(&event, key.as_deref())?;
        let (Some(trigger), Some(key)) = (&trigger, key) else {
            let name = trigger.as_ref().map_or("manual", Slug::as_str);
            let given = given(&event, name, "", self.host.now_ms());
            return self.begin(found, run, trigger, given, depth).await;
        };
        let given = given(&event, trigger.as_str(), &key, self.host.now_ms());
        let received = received(found, run, trigger, key, &given, depth);
        let replayed = self.note_received(&found.id, received).await?;
        // Whoever received it before may have been cut off before it began.
        if !replayed || !self.was_there(&found.id, run).await? {
            self.begin(found, run, Some(trigger.clone()), given, depth).await?;
        }
        Ok(Asked { run, replayed })
    }

    /// Whether a run was begun, by this process or by one before it; it may be gone since.
    async fn was_there(&self, workflow: &str, run: RunId) -> Result<bool> {
        match self.found(run).await {
            Err(Error::RunUnknown(_)) => {
                Ok(self.retired_in(triggers_of(workflow)).await?.contains(&run))
            }
            found => found.map(|_| true),
        }
    }

    /// Records that a trigger fired; says whether it had been recorded before.
    async fn note_received(&self, workflow: &str, received: TriggerReceived) -> Result<bool> {
        let session = triggers_of(workflow);
        let event = |data: EventData| -> Result<NewEvent> {
            let id = self.event_id()?;
            Ok(NewEvent { id, scope: Scope::Session, data })
        };
        let mut events = vec![event(received.into())?];
        let blobs = payload::set_aside(&mut events, self.options.inline_max)?;
        let plan = AppendPlan { events, blobs, ..AppendPlan::default() };
        match self.store.log.append(session, plan.clone()).await {
            Ok(appended) => Ok(appended.replayed),
            Err(store::Error::InvalidPlan(_) | store::Error::NotFound(_)) => {
                let mut events = vec![event(SessionCreated {}.into())?];
                events.extend(plan.events.iter().cloned());
                let first = AppendPlan { events, ..plan.clone() };
                let appended = match self.store.log.append(session, first).await {
                    // Somebody else was first, in this moment.
                    Err(store::Error::PartlyRecorded { .. }) => {
                        self.store.log.append(session, plan).await
                    }
                    appended => appended,
                };
                Ok(appended?.replayed)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Begins a run that is not there.
    async fn begin(
        self: &Arc<Self>,
        found: &Found,
        run: RunId,
        trigger: Option<Slug>,
        given: Value,
        depth: u32,
    ) -> Result<Asked> {
        let fresh = self.begin_given(found, run, trigger, given, None, depth).await?;
        Ok(Asked { run, replayed: !fresh })
    }

    pub(super) async fn begin_given(
        self: &Arc<Self>,
        found: &Found,
        run: RunId,
        trigger_id: Option<Slug>,
        event: Value,
        parent: Option<ParentStep>,
        depth: u32,
    ) -> Result<bool> {
        let plan = &found.compiled()?.plan;
        if plan.dialect == Dialect::Guided {
            return Err(led(plan));
        }
        let named = plan.triggers.iter().any(|trigger| Some(&trigger.id) == trigger_id.as_ref());
        if !named && plan.entry.is_empty() {
            return Err(no_entry(plan));
        }
        let event = fitting(plan, trigger_id.as_ref(), event)?;
        let ready = self.plans.pin(found).await?;
        let env = self.environment.settings(found.identity(), &ready.graph.plan).await?;
        let started = started(found, &ready);
        let queued = RunQueued {
            depth,
            forked_from: None,
            input: Payload::inline(json!({"env": env, "event": event})),
            parent,
            trigger_id,
            workflow_id: found.id.clone(),
        };
        let new = NewRun { id: run, ready, queued, started, forked: None };
        self.lane(&found.id).await?.begin(new).await
    }

    /// Does a run again with the same event.
    pub(super) async fn replay(self: &Arc<Self>, run: RunId) -> Result<Asked> {
        let (_, state) = self.state(run).await?;
        let queued = state.queued.ok_or(Error::RunUnknown(run))?;
        let input = payload::value(&self.store, &queued.input).await?;
        let event = input.get("event").cloned().unwrap_or_default();
        let found = self.find(&queued.workflow_id).await?;
        let again = self.run_id()?;
        self.begin_given(&found, again, queued.trigger_id, event, None, 0).await?;
        Ok(Asked { run: again, replayed: false })
    }

    /// Starts the child run of a step; gives what to tell the parent.
    pub(super) async fn child(
        self: &Arc<Self>,
        child: RunId,
        workflow: &str,
        event: Event,
        parent: ParentStep,
        depth: u32,
    ) -> Vec<Command> {
        let instance = parent.instance.clone();
        let failed = |error: &Error| {
            let fault = cairn_core::flow::Fault::new(error.code(), error.to_string());
            vec![Command::ChildRefused { instance: instance.clone(), fault }]
        };
        let given = given(&event, "workflow", "", self.host.now_ms());
        let begun = async {
            require_recordable(&event, None)?;
            let found = self.find(workflow).await?;
            // Whoever performed the parent before may have begun it.
            if self.index.find(child).await?.is_none() {
                self.begin_given(&found, child, None, given, Some(parent), depth).await?;
            }
            self.index.find(child).await?.ok_or(Error::RunUnknown(child))
        };
        let summary = match begun.await {
            Ok(summary) => summary,
            Err(error) => return failed(&error),
        };
        let session = summary.session;
        let mut told = vec![Command::ChildStarted { child, session, instance: instance.clone() }];
        // It may be over already, when whoever performed the parent is gone since.
        if let Ok(Some(Ended { status, result, .. })) = self.end_of(child).await {
            told.push(Command::ChildFinished { child, status, output: result });
        }
        told
    }

    /// Begins what was received and not begun when somebody ended.
    pub(super) async fn start_received(self: &Arc<Self>) -> Result<()> {
        let workflows: Vec<String> =
            self.catalog.list()?.iter().map(|found| found.id.clone()).collect();
        let read = self.store.runs.sessions().await?;
        let read: BTreeMap<SessionId, SessionRead> =
            read.into_iter().map(|read| (read.session, read)).collect();
        // One that cannot be begun, for want of a setting perhaps, holds up no other.
        let mut failed = None;
        for workflow in workflows {
            let session = triggers_of(&workflow);
            // The list of runs has caught up, and says from where on there may be some.
            let from = match read.get(&session) {
                Some(read) if read.mark.is_some() => continue,
                read => read.map_or(EventIndex(0), |read| read.next),
            };
            let Ok(events) = self.store.log.read(session, from).await else { continue };
            for (run, (_, received)) in asked_for(&events) {
                if self.index.find(run).await?.is_none()
                    && let Err(error) = self.begin_received(received.clone()).await
                {
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn begin_received(self: &Arc<Self>, received: TriggerReceived) -> Result<()> {
        let TriggerReceived { payload, run_id, trigger_id, workflow_id, .. } = received;
        let kept = payload::value(&self.store, &payload).await?;
        let depth = kept.get("depth").and_then(Value::as_u64).unwrap_or_default();
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let event = kept.get("event").cloned().unwrap_or_default();
        let found = self.find(&workflow_id).await?;
        self.begin_given(&found, run_id, Some(trigger_id), event, None, depth).await?;
        Ok(())
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

/// What is kept of something that starts a run.
fn received(
    found: &Found,
    run: RunId,
    trigger: &Slug,
    key: String,
    given: &Value,
    depth: u32,
) -> TriggerReceived {
    TriggerReceived {
        key,
        payload: Payload::inline(json!({"event": given, "depth": depth})),
        run_id: run,
        trigger_id: trigger.clone(),
        workflow_id: found.id.clone(),
    }
}

impl Arrival {
    /// It with a payload that its trigger allows.
    fn fitting(mut self, found: &Found) -> Result<Self> {
        let plan = &found.compiled()?.plan;
        self.event.payload = input::of_run(plan, self.trigger.as_ref(), self.event.payload)?;
        Ok(self)
    }
}

/// Why a run that names no trigger cannot begin.
fn led(plan: &Plan) -> Error {
    let id = &plan.workflow_id;
    Error::Invalid {
        message: format!(
            "`{id}` leads an agent or a person through its steps: it cannot run by itself"
        ),
        fix: format!("go through it with `cairn guide {id}`, or let an agent start it over MCP"),
        details: json!({"field": "workflow"}),
    }
}

fn no_entry(plan: &Plan) -> Error {
    let triggers: Vec<&str> = plan.triggers.iter().map(|trigger| trigger.id.as_str()).collect();
    Error::Invalid {
        message: format!("runs of `{}` begin at its triggers, and none is named", plan.workflow_id),
        fix: format!("say which it is (`--trigger`, or `trigger`): {}", triggers.join(", ")),
        details: json!({"field": "trigger", "known": triggers}),
    }
}

/// An event whose payload a plan allows.
pub(super) fn fitting(plan: &Plan, trigger: Option<&Slug>, mut event: Value) -> Result<Value> {
    let Some(payload) = event.get_mut("payload") else { return Ok(event) };
    *payload = input::of_run(plan, trigger, payload.take())?;
    Ok(event)
}

impl Inner {
    /// The run that an arrival starts: the same for the same key.
    fn run_of(&self, arrival: &Arrival, found: &Found) -> Result<RunId> {
        match (&arrival.trigger, &arrival.key) {
            (Some(trigger), Some(key)) => Ok(RunId::derive(&[&found.id, trigger.as_str(), key])),
            _ => self.run_id(),
        }
    }
}

/// Whether what came in can be recorded.
fn require_recordable(event: &Event, key: Option<&str>) -> Result<()> {
    let invalid = |message: String, fix: String| {
        Err(Error::Invalid { message, fix, details: json!({"field": "event"}) })
    };
    if let Err(error) = canonical::check(&event.payload, PAYLOAD_DEPTH_MAX) {
        let fix = format!("nest it no deeper than {PAYLOAD_DEPTH_MAX} levels");
        return invalid(format!("the event cannot be recorded: {error}"), fix);
    }
    if !payload::fits(&event.payload, PAYLOAD_MAX)? {
        let fix = "send where it is to be found, such as a path or an address".to_owned();
        return invalid("the event has more than 4 MiB".to_owned(), fix);
    }
    match key.map_or(1, str::len) {
        1..=limits::NAME => Ok(()),
        length => invalid(
            format!("the event's key has {length} bytes"),
            format!("send one of 1 to {} bytes", limits::NAME),
        ),
    }
}

/// The session that remembers what fired for a workflow.
pub(super) fn triggers_of(workflow: &str) -> SessionId {
    SessionId::derive(&["triggers", workflow])
}

/// What templates see as `event`.
pub(super) fn given(event: &Event, trigger: &str, key: &str, now: u64) -> Value {
    let mut members = event.more.clone();
    members.insert("at".to_owned(), json!(time::show(now)));
    members.insert("key".to_owned(), json!(key));
    members.insert("payload".to_owned(), event.payload.clone());
    members.insert("trigger".to_owned(), json!(trigger));
    members.insert("type".to_owned(), json!(event.kind));
    Value::Object(members)
}
