//! Runs that the engine performs, on the wire.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::event::engine::{
    AfterFailure, ENGINE, Failure, InterruptDecision, Payload, TaskOpened, WaitingFor,
};
use cairn_core::event::{Event, EventData};
use cairn_core::flow::{Fork, begins};
use cairn_core::id::{NodeId, RunId, SessionId, TaskId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::Plan;
use cairn_core::projection::run::{End, StepStatus};
use cairn_engine::flow::{Past, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time;
use asked::Asked;
use usage::Usage;

pub mod asked;
pub mod usage;

/// A run in the list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_id: String,
    /// Where it stands: queued, running, waiting, paused, succeeded, failed or cancelled.
    pub status: String,
    /// The trigger that asked for it; none when somebody asked directly.
    pub trigger_id: Option<String>,
    /// When it was asked for.
    pub queued_at: Option<String>,
    /// When it was over.
    pub ended_at: Option<String>,
    /// The session it is recorded in.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// The run that waits for it.
    #[schemars(with = "Option<String>")]
    pub parent_run_id: Option<RunId>,
    /// Whether it came from elsewhere and nobody said yet that it may go on here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

impl From<&Summary> for Run {
    fn from(summary: &Summary) -> Self {
        Self {
            run_id: summary.run,
            workflow_id: summary.workflow.clone(),
            status: summary.status.name().to_owned(),
            trigger_id: summary.trigger.clone(),
            queued_at: time::rfc3339(summary.queued_ms),
            ended_at: summary.ended_ms.and_then(time::rfc3339),
            session_id: summary.session,
            parent_run_id: summary.parent,
            untrusted: summary.is_paper,
        }
    }
}

/// A run with everything that came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// What the list says of it.
    #[serde(flatten)]
    pub run: Run,
    /// What came out, once it has ended well.
    pub result: Value,
    /// What went wrong, when it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Who cancelled it, when somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Cancelled>,
    /// What it was given.
    pub input: Value,
    /// The plan it is pinned to, once it has begun.
    pub workflow_hash: Option<String>,
    /// The run and the step that it was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub forked_from: Option<RunId>,
    /// What it asks people and agents.
    pub tasks: Vec<Task>,
    /// Its steps, by instance, such as `fetch` or `each@2::fetch`.
    pub steps: BTreeMap<String, Step>,
    /// What all of them used up of models; left out when that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Why a run failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunError {
    /// A stable name.
    pub code: String,
    /// In words.
    pub message: String,
    /// The step at which it did.
    pub step: Option<String>,
}

/// Who ended a run, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Who.
    pub by: String,
    /// Why; empty when nobody said.
    pub reason: String,
}

/// A question that waits for an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The question's own id.
    #[schemars(with = "String")]
    pub task_id: TaskId,
    /// The run that asks.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// The step that asks.
    pub step: String,
    /// What is asked: prompt, form, who may answer.
    pub request: Value,
    /// Who can go on with it: `person` answers, `agent` joins the run and does the step.
    pub waiting_for: TaskFor,
}

/// Whom a question is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum TaskFor {
    Agent,
    Person,
}

/// What came of a step.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Where it stands.
    pub status: String,
    /// What came out; of a try that failed, as much as is kept.
    pub output: Value,
    /// The outcome's label.
    pub case: Option<String>,
    /// How many tries were begun.
    pub attempts: u32,
    /// When the last try was begun; none of a step that was not, or that a fork keeps.
    pub begun_at: Option<String>,
    /// How long the last try took.
    pub duration_ms: u64,
    /// How long all tries took, with the pauses between them.
    #[serde(default)]
    pub total_ms: u64,
    /// What went wrong at the last try.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RunError>")]
    pub error: Option<Failure>,
    /// The node that its completion made, to fork from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub node_id: Option<NodeId>,
    /// What all its tries used up of models; left out when that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// One thing that happened, for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    /// Its place in the log.
    pub index: u64,
    /// When it was recorded, as far as its id says.
    pub at: Option<String>,
    /// What happened.
    pub kind: String,
    /// The step it is about.
    pub step: Option<String>,
    /// In a few words.
    pub what: String,
}

/// What a fork would do, or does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// The new run; none when it was only looked at.
    #[schemars(with = "Option<String>")]
    pub run_id: Option<RunId>,
    /// The steps that are done again.
    pub again: Vec<Again>,
    /// The steps whose outcomes are kept.
    pub kept: Vec<String>,
    /// Those of them that a person decided, which count as decided by whoever forks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vouched: Vec<String>,
}

/// A step that is done again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Again {
    /// Which.
    pub step: String,
    /// Whether the world may notice: what it did before may happen twice.
    pub has_effects: bool,
}

impl Forked {
    /// A fork, begun or looked at.
    #[must_use]
    pub fn new(run_id: Option<RunId>, fork: &Fork) -> Self {
        let again = fork
            .again
            .iter()
            .map(|step| Again { step: step.instance.to_string(), has_effects: step.has_effects });
        let names = |steps: &[StepInstanceKey]| steps.iter().map(ToString::to_string).collect();
        let (kept, vouched) = (names(&fork.kept), names(&fork.vouched));
        Self { run_id, again: again.collect(), kept, vouched }
    }
}

impl From<&Past> for Shown {
    fn from(past: &Past) -> Self {
        let state = &past.state;
        let mut run = Run::from(&past.summary);
        let over = past.events.iter().rev().find(|event| is_end(&event.data));
        if let Some(end) = over {
            run.ended_at = time::rfc3339(end.id.minted_ms());
        }
        let (result, error) = match &state.end {
            Some(End::Succeeded { result }) => (value(result), None),
            Some(End::Failed { error, instance }) => {
                let step = instance.as_ref().map(ToString::to_string);
                let Failure { code, message } = error.clone();
                (Value::Null, Some(RunError { code, message, step }))
            }
            Some(End::Cancelled {}) | None => (Value::Null, None),
        };
        let task = |(id, task): (&TaskId, &cairn_core::projection::run::Task)| Task {
            task_id: *id,
            run_id: state.run_id,
            step: task.instance.to_string(),
            request: value(&task.request),
            waiting_for: match state.steps.get(&task.instance).and_then(|step| step.waiting_for) {
                Some(WaitingFor::Caller) => TaskFor::Agent,
                _ => TaskFor::Person,
            },
        };
        let input = state.queued.as_ref().map(|queued| value(&queued.input));
        let forked = state.queued.as_ref().and_then(|queued| queued.forked_from.as_ref());
        Self {
            run,
            result,
            error,
            cancelled: past.events.iter().rev().find_map(|event| match &event.data {
                EventData::RunCancelRequested(asked) => {
                    Some(Cancelled { by: asked.by.clone(), reason: asked.reason.clone() })
                }
                _ => None,
            }),
            input: input.and_then(|input| input.get("event").cloned()).unwrap_or_default(),
            workflow_hash: state.started.as_ref().map(|s| s.workflow_hash.to_string()),
            forked_from: forked.map(|from| from.run_id),
            tasks: state.tasks.iter().map(task).collect(),
            steps: steps(past),
            usage: Usage::of_events(&past.events),
        }
    }
}

const fn is_end(data: &EventData) -> bool {
    matches!(
        data,
        EventData::RunCompleted(_) | EventData::RunFailed(_) | EventData::RunCancelled(_)
    )
}

fn value(payload: &Payload) -> Value {
    match payload {
        Payload::Inline(value) => value.0.clone(),
        Payload::Blob(blob) => serde_json::json!({"blob": blob}),
    }
}

/// The steps of a run in the order in which they were begun: what a fork keeps comes first, and
/// what was not begun last, both as the plan has them.
#[must_use]
pub fn in_order(past: &Past, plan: Option<&Plan>) -> Vec<String> {
    let mut begun: Vec<&StepInstanceKey> = Vec::new();
    let mut seen = BTreeSet::new();
    for key in past.events.iter().filter_map(|event| begins(&event.data)) {
        if seen.insert(key) {
            begun.push(key);
        }
    }
    let place = |key: &&StepInstanceKey| {
        plan.and_then(|plan| plan.steps.iter().position(|step| step.id == key.step))
    };
    let is_over = |key: &&StepInstanceKey| {
        past.state.steps.get(*key).is_some_and(|step| step.status != StepStatus::Pending)
    };
    let left = past.state.steps.keys().filter(|key| !seen.contains(key));
    let (mut kept, mut open): (Vec<_>, Vec<_>) = left.partition(is_over);
    kept.sort_by_key(place);
    open.sort_by_key(place);
    kept.into_iter().chain(begun).chain(open).map(ToString::to_string).collect()
}

/// Every step that something is recorded of, also of turns that are over.
fn steps(past: &Past) -> BTreeMap<String, Step> {
    let mut steps: BTreeMap<String, Step> = BTreeMap::new();
    let mut waiting: BTreeMap<&StepInstanceKey, u64> = BTreeMap::new();
    let mut begun: BTreeMap<&StepInstanceKey, u64> = BTreeMap::new();
    for event in &past.events {
        let now_ms = event.id.minted_ms();
        let Some((instance, change)) = change(event) else { continue };
        let step = steps.entry(instance.to_string()).or_default();
        change(step);
        // What nobody performs takes its time all the same.
        match &event.data {
            EventData::StepWaiting(_) | EventData::LoopEntered(_) => {
                waiting.insert(instance, now_ms);
            }
            _ => {
                let since = waiting.remove(instance);
                step.duration_ms = since.map_or(step.duration_ms, |ms| now_ms.saturating_sub(ms));
            }
        }
        // A single try knows better than two instants how long it took.
        let since = now_ms.saturating_sub(*begun.entry(instance).or_insert(now_ms));
        step.total_ms = if step.attempts > 1 { since } else { step.duration_ms };
        let is_try = matches!(
            event.data,
            EventData::StepStarted(_) | EventData::StepWaiting(_) | EventData::LoopEntered(_)
        );
        if is_try || step.begun_at.is_none() && begins(&event.data).is_some() {
            step.begun_at = time::rfc3339(now_ms);
        }
    }
    // What is still there knows more: values that are kept beside the log, and how it stands.
    for (key, state) in &past.state.steps {
        let step = steps.entry(key.to_string()).or_default();
        step.status = status(state.status).to_owned();
        // Of what a fork keeps, this is all there is.
        if step.begun_at.is_none() {
            (step.case, step.error) = (state.case.clone(), state.error.clone());
            step.attempts = state.attempts;
        }
        if let Some(output) = &state.output {
            step.output = value(output);
        }
    }
    steps
}

type Change = Box<dyn FnOnce(&mut Step)>;

fn change(event: &Event) -> Option<(&StepInstanceKey, Change)> {
    Some(match &event.data {
        EventData::StepStarted(e) => {
            let attempts = e.attempt + 1;
            (
                &e.instance,
                Box::new(move |step: &mut Step| {
                    step.status = status(StepStatus::Running).to_owned();
                    step.attempts = attempts;
                }),
            )
        }
        EventData::StepCompleted(e) => {
            let (case, duration_ms) = (e.case.clone(), e.duration_ms);
            let run = event.scope.run();
            let (output, node) = (value(&e.output), run.map(|run| e.instance.node(run)));
            let used = e.usage.as_ref().map(Usage::from);
            (
                &e.instance,
                Box::new(move |step: &mut Step| {
                    step.usage = Usage::sum(step.usage.take(), used);
                    step.status = status(StepStatus::Succeeded).to_owned();
                    (step.case, step.duration_ms, step.output) = (case, duration_ms, output);
                    (step.node_id, step.error) = (node, None);
                }),
            )
        }
        EventData::StepFailed(e) => {
            let (error, duration_ms, then) = (e.error.clone(), e.duration_ms, e.then.clone());
            let output = e.output.as_ref().map(value).unwrap_or_default();
            let used = e.usage.as_ref().map(Usage::from);
            (
                &e.instance,
                Box::new(move |step: &mut Step| {
                    step.usage = Usage::sum(step.usage.take(), used);
                    let now = match then {
                        AfterFailure::Retry => StepStatus::Pending,
                        AfterFailure::Skip => StepStatus::Skipped,
                        AfterFailure::Stop | AfterFailure::Fallback => StepStatus::Failed,
                    };
                    step.status = status(now).to_owned();
                    (step.error, step.duration_ms) = (Some(error), duration_ms);
                    step.output = output;
                }),
            )
        }
        EventData::StepSkipped(e) => (&e.instance, set(StepStatus::Skipped)),
        EventData::StepWaiting(e) => (&e.instance, set(StepStatus::Waiting)),
        EventData::StepInterrupted(e) => (&e.instance, set(StepStatus::Unknown)),
        EventData::StepResolved(e) => (&e.instance, set(StepStatus::after(e.decision))),
        EventData::LoopEntered(e) => (&e.instance, set(StepStatus::Running)),
        EventData::LoopExited(e) => (&e.instance, set(StepStatus::Succeeded)),
        _ => return None,
    })
}

fn set(now: StepStatus) -> Change {
    Box::new(move |step| status(now).clone_into(&mut step.status))
}

const fn status(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::Running => "running",
        StepStatus::Waiting => "waiting",
        StepStatus::Succeeded => "succeeded",
        StepStatus::Failed => "failed",
        StepStatus::Skipped => "skipped",
        StepStatus::Cancelled => "cancelled",
        StepStatus::Unknown => "unknown",
    }
}

impl Task {
    /// In lines: what is asked, the fields of the form, and how it is answered.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let (run, task) = (self.run_id.to_string(), self.task_id.to_string());
        let who = self.request.get("who").and_then(Value::as_array);
        let who: Vec<&str> = who.into_iter().flatten().filter_map(Value::as_str).collect();
        let prompt = self.request.get("prompt").and_then(Value::as_str).unwrap_or_default();
        if self.waiting_for == TaskFor::Agent {
            return asked::of_agent(&run, &self.step, prompt);
        }
        let form = self.request.get("form");
        Asked { run: &run, task: &task, step: &self.step, prompt, form, who: &who }.lines()
    }
}

/// What a step that failed said last: what a command printed, or a server answered.
#[must_use]
pub fn last_words(output: &Value) -> Option<&str> {
    let said = |name: &&str| output.get(*name)?.as_str().map(str::trim_end);
    ["stderr", "stdout", "body"].iter().filter_map(said).find(|text| !text.is_empty())
}

/// As much of a line as stands beside another.
fn short(line: &str) -> String {
    const MAX: usize = 200;
    match line.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// One thing that happened, for people.
#[must_use]
pub fn moment(event: &Event) -> Moment {
    let (step, what) = told(&event.data);
    Moment {
        index: event.index.0,
        at: time::plausible(event.id.minted_ms()).and_then(time::rfc3339),
        kind: event.data.kind().name().to_owned(),
        step: step.map(ToString::to_string),
        what,
    }
}

fn told(data: &EventData) -> (Option<&StepInstanceKey>, String) {
    match data {
        EventData::RunQueued(e) => {
            let by = e.trigger_id.as_ref().map_or("directly".to_owned(), |id| format!("by {id}"));
            (None, format!("asked for {by}"))
        }
        EventData::RunStarted(e) => (None, format!("pinned to {}", e.workflow_hash)),
        EventData::StepStarted(e) if e.attempt > 0 => {
            (Some(&e.instance), format!("begun again, try {}", e.attempt + 1))
        }
        EventData::StepStarted(e) => (Some(&e.instance), "begun".to_owned()),
        EventData::StepCompleted(e) => {
            let case = e.case.as_ref().map(|case| format!(" [{case}]")).unwrap_or_default();
            let said = logged(&e.output).map(|said| format!(", {said}")).unwrap_or_default();
            (Some(&e.instance), format!("done{case} in {} ms{said}", e.duration_ms))
        }
        EventData::StepFailed(e) => {
            let then = match e.then {
                AfterFailure::Retry => "tried again",
                AfterFailure::Stop => "the run fails",
                AfterFailure::Skip => "passed over",
                AfterFailure::Fallback => "replaced",
            };
            let output = e.output.as_ref().map(value).unwrap_or_default();
            let last = last_words(&output).and_then(|text| text.lines().last().map(short));
            let last = last.map(|last| format!(" ({last})")).unwrap_or_default();
            (Some(&e.instance), format!("{}: {}{last}; {then}", e.error.code, e.error.message))
        }
        EventData::StepSkipped(e) => (Some(&e.instance), "passed over".to_owned()),
        EventData::StepWaiting(e) => {
            let what = match e.waiting_for {
                WaitingFor::Caller => "an agent",
                WaitingFor::Person => "a person",
                WaitingFor::Timer => "a time",
                WaitingFor::Child => "a child run",
            };
            (Some(&e.instance), format!("waits for {what}"))
        }
        EventData::StepInterrupted(e) => {
            (Some(&e.instance), format!("try {} was cut off", e.attempt + 1))
        }
        EventData::StepResolved(e) => {
            let what = match e.decision {
                InterruptDecision::Retry => "is tried again",
                InterruptDecision::Fail => "counts as failed",
                InterruptDecision::Skip => "is passed over",
            };
            let by = if e.by == ENGINE { String::new() } else { format!(", says {}", e.by) };
            (Some(&e.instance), format!("{what}{by}"))
        }
        EventData::LoopEntered(e) => (Some(&e.instance), "loop begun".to_owned()),
        EventData::LoopExited(e) => (Some(&e.instance), format!("{} turns made", e.iterations)),
        EventData::TimerSet(e) => {
            let at = time::rfc3339(e.due_ms).unwrap_or_default();
            (e.instance.as_ref(), format!("timer until {at}"))
        }
        EventData::TaskOpened(e) => (Some(&e.instance), asks(e)),
        EventData::TaskAnswered(e) => (None, format!("answered by {}", e.by)),
        EventData::ChildStarted(e) => (Some(&e.instance), format!("child {}", e.child_run_id)),
        EventData::RunPaused(e) => (None, format!("paused by {}", e.by)),
        EventData::RunResumed(e) => (None, format!("resumed by {}", e.by)),
        EventData::RunCancelRequested(e) if e.reason.is_empty() => {
            (None, format!("cancelled by {}", e.by))
        }
        EventData::RunCancelRequested(e) => (None, format!("cancelled by {}: {}", e.by, e.reason)),
        EventData::RunFailed(e) => {
            (e.instance.as_ref(), format!("{}: {}", e.error.code, e.error.message))
        }
        other => (None, other.kind().name().replace('_', " ")),
    }
}

/// The line that a step wrote into the run's history. What else comes out so reads as one.
fn logged(output: &Payload) -> Option<String> {
    let Payload::Inline(output) = output else { return None };
    let members = output.0.as_object()?;
    let level = members.get("level").map_or(Some("info"), Value::as_str)?;
    let is_line = members.keys().all(|name| name == "level" || name == "message");
    let message = members.get("message").filter(|_| is_line)?;
    let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    Some(format!("{level}: {}", short(&message)))
}

/// What a question asks, as far as it is in its place.
fn asks(task: &TaskOpened) -> String {
    let prompt = match &task.request {
        Payload::Inline(request) => request.0.get("prompt").and_then(Value::as_str),
        Payload::Blob(_) => None,
    };
    let prompt = prompt.map(|prompt| format!(": {prompt}")).unwrap_or_default();
    format!("asks, as {}{prompt}", task.task_id)
}
