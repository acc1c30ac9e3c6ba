//! Telling other workflows of runs that failed.
//!
//! Who is told follows from the failed run and the workflows there are, and telling one again
//! changes nothing. So it is done when a run fails, and once more for the latest failures when
//! an engine takes over from one that is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use cairn_core::canonical;
use cairn_core::event::engine::Payload;
use cairn_core::event::{Door, EventData};
use cairn_core::id::RunId;
use cairn_core::plan::Plan;
use cairn_core::projection::run::{End, RunState, RunStatus, StepStatus};
use cairn_core::text::Slug;
use cairn_store::Store;
use serde_json::{Value, json};

use super::index::{Filter, Index, Summary};
use super::intake::{Entry, PAYLOAD_DEPTH_MAX, Roles, TriggerEvent, by_run, given, keyed};
use super::papers::is_imported;
use super::workflows::Workflows;
use super::{Inner, payload};
use crate::catalog::{Found, Identity};
use crate::error::{Error, Result};

/// How many workflows may be told of one another's failures.
const LEVELS_MAX: u32 = 3;
/// What templates have for how many failures led to a run.
const LEVEL: &str = "level";
/// How many bytes of a failure are told.
const REPORT_MAX: usize = 1 << 20;
/// How many failures are looked at again after a crash.
const LOOKED_AT_MAX: usize = 1_000;

/// What came of telling others that a run failed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FailureTold {
    /// The workflows that were told, and their runs.
    pub runs: Vec<(String, RunId)>,
    /// The workflow that the failed one names and that is not there.
    pub missing: Option<String>,
}

/// Somebody who is told.
struct Taker {
    found: Arc<Found>,
    trigger: Slug,
    /// Whether the workflow that failed names it.
    is_named: bool,
}

impl Inner {
    /// Tells of a failure beside whatever else goes on.
    pub(super) fn tell_of_failure_later(self: &Arc<Self>, run: RunId) {
        let inner = Arc::clone(self);
        self.host.spawn(Box::pin(async move {
            // A process that ends leaves it to the next one.
            if let Err(error) = inner.tell_of_failure(run).await
                && !inner.lanes.is_stopped()
            {
                (inner.options.trouble)(&format!("nobody is told that {run} failed: {error}"));
            }
            // What cannot be read now was told above.
            if let Some(missing) = inner.told_of_failure(run).await.ok().and_then(|t| t.missing) {
                (inner.options.trouble)(&format!(
                    "{run} failed, and `{missing}`, which `on_error` of its workflow names, is not there"
                ));
            }
        }));
    }

    /// Who was told of the failure of a run, and who could not be.
    pub(super) async fn told_of_failure(&self, run: RunId) -> Result<FailureTold> {
        let (_, state) = self.reading.state(run).await?;
        let (Some(started), Some(End::Failed { .. })) = (&state.started, &state.end) else {
            return Ok(FailureTold::default());
        };
        let (workflow, ready) =
            (Identity::of_run(started), self.plans.get(started.workflow_hash).await?);
        let plan = &ready.graph.plan;
        let mut runs = Vec::new();
        for taker in self.takers.of_plan(&workflow, plan).await? {
            let told = keyed(taker.found.identity(), &taker.trigger, &run.to_string());
            if self.index.find(told).await?.is_some() {
                runs.push((taker.found.id.clone(), told));
            }
        }
        let missing = match &plan.policy.error_workflow_id {
            Some(named) => match self.workflows.find_for(&workflow, named).await {
                Err(Error::WorkflowUnknown { .. }) => Some(named.clone()),
                _ => None,
            },
            None => None,
        };
        Ok(FailureTold { runs, missing })
    }

    /// Tells everybody who takes the failures of a run's workflow; gives their runs.
    pub(super) async fn tell_of_failure(self: &Arc<Self>, run: RunId) -> Result<Vec<RunId>> {
        let (_, state) = self.reading.state(run).await?;
        let depth = state.depth() + 1;
        let level = self.takers.level(&state).await? + 1;
        let told = level <= LEVELS_MAX && depth <= self.options.limits.depth_max;
        let Some(started) = state.started.as_ref().filter(|_| told) else {
            return Ok(Vec::new());
        };
        let Some(End::Failed { .. }) = state.end else { return Ok(Vec::new()) };
        let ready = self.plans.get(started.workflow_hash).await?;
        let report = self.takers.report(&ready.graph.plan, &state).await?;
        let mut told = Vec::new();
        for taker in self.takers.of_plan(&Identity::of_run(started), &ready.graph.plan).await? {
            let event = TriggerEvent {
                payload: report.clone(),
                kind: "error".to_owned(),
                more: [(LEVEL.to_owned(), json!(level))].into_iter().collect(),
            };
            let (trigger, key) = (taker.trigger, run.to_string());
            let event = given(&event, trigger.as_str(), &key, self.host.now_ms());
            let entry = Entry {
                run: keyed(taker.found.identity(), &trigger, &key),
                trigger: Some(trigger),
                key: Some(key),
                event,
                parent: None,
                depth,
                by: by_run(run, Door::Error, None),
                roles: Roles::Any,
            };
            // Whoever tells it a second time finds what the first began.
            told.push(self.submit_patiently(&taker.found, entry).await?.run);
        }
        Ok(told)
    }

    /// Tells of failures that whoever was here before may not have told of.
    pub(super) async fn tell_of_earlier_failures(self: &Arc<Self>) -> Result<()> {
        let filter = Filter {
            statuses: vec![RunStatus::Failed],
            limit: Some(LOOKED_AT_MAX),
            ..Filter::default()
        };
        let mut known: BTreeMap<Identity, Vec<Taker>> = BTreeMap::new();
        for failed in self.index.list(&filter).await? {
            let workflow = failed.identity();
            if !known.contains_key(&workflow) {
                let takers = self.takers.of_workflow(&workflow).await?;
                known.insert(workflow.clone(), takers);
            }
            let takers = known.get(&workflow).map(Vec::as_slice).unwrap_or_default();
            // What failed elsewhere was told there, and whoever trusts it starts nothing.
            let is_ours = !is_imported(&self.store, failed.session).await.unwrap_or(true);
            if is_ours && self.takers.is_untold(&failed, takers).await? {
                self.tell_of_failure(failed.run).await?;
            }
        }
        Ok(())
    }
}

/// Knows who is to be told of what failed.
pub(super) struct Takers {
    pub(super) store: Store,
    pub(super) index: Arc<Index>,
    pub(super) workflows: Arc<Workflows>,
}

impl Takers {
    /// How many failures led to a run: the one that it is told of, and those before it.
    async fn level(&self, state: &RunState) -> Result<u32> {
        let Some(queued) = &state.queued else { return Ok(0) };
        let input = payload::value(&self.store, &queued.input).await?;
        let level = input.pointer("/event/level").and_then(Value::as_u64).unwrap_or_default();
        Ok(u32::try_from(level).unwrap_or(u32::MAX))
    }

    /// What whoever takes a failure is told of it: enough to tell people, and to start the run
    /// again with what it was given.
    async fn report(&self, plan: &Plan, state: &RunState) -> Result<Value> {
        let input = match &state.queued {
            Some(queued) => payload::value(&self.store, &queued.input).await?,
            None => Value::Null,
        };
        let event = input.get("event").cloned().unwrap_or_default();
        let attempt = self.attempt(plan, state).await?;
        let mut report = report(plan, state, &event, attempt);
        let fits = |report: &Value| {
            let is_flat = canonical::check(report, PAYLOAD_DEPTH_MAX).is_ok();
            Ok::<_, Error>(is_flat && payload::fits(report, REPORT_MAX)?)
        };
        for large in ["steps", "event", "output", "state"] {
            if fits(&report)? {
                break;
            }
            // What does not fit is left out, the least needed first, and says so.
            if let Some(members) = report.as_object_mut() {
                members.insert(large.to_owned(), Value::Null);
                members.insert("truncated".to_owned(), json!(true));
            }
        }
        Ok(report)
    }

    /// Which try a run is: the first, or one more than that whose failure led to it. A workflow
    /// that takes failures tries again by starting the failed one as its child.
    async fn attempt(&self, plan: &Plan, state: &RunState) -> Result<u64> {
        let parent = state.queued.as_ref().and_then(|queued| queued.parent.as_ref());
        let Some(parent) = parent else { return Ok(1) };
        let Some(summary) = self.index.find(parent.run_id).await? else { return Ok(1) };
        let events = self.store.log.read_between(summary.session, summary.first, summary.first);
        let asked = events.await?.into_iter().find_map(|event| match event.data {
            EventData::RunQueued(queued) => Some(queued.input),
            _ => None,
        });
        let Some(asked) = asked else { return Ok(1) };
        let told = payload::value(&self.store, &asked).await?;
        let told = told.pointer("/event/payload").cloned().unwrap_or_default();
        let is_of = told.get("workflow").and_then(Value::as_str) == Some(&plan.workflow_id);
        let before = told.get("attempt").and_then(Value::as_u64).filter(|_| is_of);
        Ok(before.map_or(1, |before| before.saturating_add(1)))
    }

    /// Who takes the failures of a workflow as it is now.
    async fn of_workflow(&self, workflow: &Identity) -> Result<Vec<Taker>> {
        let Ok(found) = self.workflows.find_same(workflow).await else { return Ok(Vec::new()) };
        match found.compiled() {
            Ok(compiled) => self.of_plan(workflow, &compiled.plan).await,
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Whether somebody should have been told of a failure and was not. One that the failed
    /// workflow names was meant; of the others those whose file is younger than the failure may
    /// not have been there.
    async fn is_untold(&self, failed: &Summary, takers: &[Taker]) -> Result<bool> {
        let ended_ms = failed.ended_ms.unwrap_or_default();
        for taker in takers {
            let changed_ms = taker.found.changed_ms;
            let was_there =
                taker.is_named || changed_ms.is_none_or(|changed_ms| changed_ms < ended_ms);
            let key = failed.run.to_string();
            let run = keyed(taker.found.identity(), &taker.trigger, &key);
            if was_there && self.index.find(run).await?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Who takes the failures of a workflow: the one that it names, and those that name it.
    async fn of_plan(&self, workflow: &Identity, plan: &Plan) -> Result<Vec<Taker>> {
        let mut takers: Vec<Taker> = Vec::new();
        if let Some(named) = &plan.policy.error_workflow_id {
            // One that is gone cannot be told.
            if let Ok(found) = self.workflows.find_for(workflow, named).await {
                let trigger = error_triggers(&found).next().map(|trigger| trigger.id.clone());
                let trigger = trigger.map_or_else(|| "error".parse(), Ok);
                let trigger = trigger.map_err(|_| Error::Broken("no name".to_owned()))?;
                takers.push(Taker { found, trigger, is_named: true });
            }
        }
        for found in self.workflows.around(workflow).await? {
            let known = takers.iter().any(|taker| taker.found.id == found.id);
            let trigger = error_triggers(&found).find(|trigger| names(trigger, &plan.workflow_id));
            if let Some(trigger) = trigger.map(|trigger| trigger.id.clone()).filter(|_| !known) {
                takers.push(Taker { found, trigger, is_named: false });
            }
        }
        Ok(takers)
    }
}

fn error_triggers(found: &Found) -> impl Iterator<Item = &cairn_core::plan::Trigger> {
    let plan = found.compiled().ok().map(|compiled| &compiled.plan);
    let plan = plan.filter(|_| found.is_enabled());
    let triggers = plan.into_iter().flat_map(|plan| &plan.triggers);
    triggers.filter(|trigger| trigger.r#type.as_str() == "error")
}

/// Whether a trigger names a workflow whose failures it takes.
fn names(trigger: &cairn_core::plan::Trigger, workflow: &str) -> bool {
    let named = trigger.config.0.get("workflows").and_then(Value::as_array);
    named.is_some_and(|named| named.iter().any(|id| id.as_str() == Some(workflow)))
}

/// What a failed run leaves to be said.
fn report(plan: &Plan, state: &RunState, event: &Value, attempt: u64) -> Value {
    let (error, step) = match &state.end {
        Some(End::Failed { error, instance }) => (Some(error), instance.as_ref()),
        _ => (None, None),
    };
    let failed = step.and_then(|step| state.steps.get(step));
    json!({
        "attempt": attempt,
        "event": event,
        "output": failed.and_then(|step| step.output.as_ref()).and_then(value),
        "steps": outputs(state),
        "tries": failed.map(|step| step.attempts),
        "error": error.map(|error| &error.message),
        "code": error.map(|error| &error.code),
        "failed_node": step.map(ToString::to_string),
        "run_id": state.run_id.to_string(),
        "workflow": plan.workflow_id,
        "state": states(state),
        "truncated": false,
    })
}

/// What came of each step that was done.
fn outputs(state: &RunState) -> Value {
    let done = state.steps.iter().filter(|(_, step)| step.status == StepStatus::Succeeded);
    let outputs = done.filter_map(|(key, step)| {
        let output = step.output.as_ref().and_then(value)?;
        Some((key.to_string(), output))
    });
    Value::Object(outputs.collect())
}

/// A value that is in its place.
fn value(payload: &Payload) -> Option<Value> {
    match payload {
        Payload::Inline(value) => Some(value.0.clone()),
        Payload::Blob(_) => None,
    }
}

/// Where each step stood when a run failed.
fn states(state: &RunState) -> Value {
    let steps = state.steps.iter().map(|(key, step)| {
        let error = step.error.as_ref().map(|error| &error.message);
        (key.to_string(), json!({"status": step.status, "error": error}))
    });
    Value::Object(steps.collect())
}
