//! Payloads of the events that engine-performed runs record.
//!
//! Fields stand in the order of their names on the wire, which is the canonical order.

use serde::{Deserialize, Serialize};

pub use super::payload::{BlobRef, EarlierValue, Payload, StepInput, Usage};

use super::by::Via;
use crate::digest::{Digest, SnapshotRef};
use crate::id::{ChangeId, EventIndex, NodeId, RunId, SessionId, TaskId, TimerId};
use crate::instance::StepInstanceKey;
use crate::text::Slug;

/// A process became the owner of the session, and of all its runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionOwned {
    /// Which ownership this is; each is higher than the one before.
    pub epoch: u64,
    /// The process, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// Whoever admits the runs of a workflow has acquired a session for them. It stands where the
/// workflow's trigger keys are kept, and nothing is recorded in a session before it is listed: so
/// whoever is replaced as the one that admits can begin nothing, in any session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionListed {
    /// Which ownership of the session this is.
    pub epoch: u64,
    /// Which session.
    pub listed_id: SessionId,
    /// The workflow whose runs it takes.
    pub workflow_id: String,
    /// Where its file was, which tells it from others of the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_source_ref: Option<String>,
}

/// A trigger fired; the run it asks for is known from now on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TriggerReceived {
    /// Who caused it, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What makes this firing one of a kind: a delivery id, an instant, a message id.
    pub key: String,
    /// What came with it.
    pub payload: Payload,
    /// The run that it starts.
    pub run_id: RunId,
    /// Which trigger of the workflow.
    pub trigger_id: Slug,
    /// How it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The workflow.
    pub workflow_id: String,
    /// Where its file was, which tells it from others of the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_source_ref: Option<String>,
}

/// A run was asked for and waits for its turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunQueued {
    /// Who makes its steps go on; the engine when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advance: Option<Advance>,
    /// Who asked for it, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How many error workflows or child runs stand above it.
    pub depth: u32,
    /// What it goes on from, when it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// What it was given.
    pub input: Payload,
    /// The run and step that wait for it, when it is a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentStep>,
    /// The trigger that asked, when it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<Slug>,
    /// How it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The workflow.
    pub workflow_id: String,
    /// Where its file was, which tells it from others of the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_source_ref: Option<String>,
    /// The folder or checkout that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// Who makes a run's steps go on, when it is not the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advance {
    /// Nobody takes it up by himself: each step is asked for.
    ByHand,
}

/// Where a forked run comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ForkedFrom {
    pub node_id: NodeId,
    pub run_id: RunId,
    pub session_id: SessionId,
    pub snapshot_ref: SnapshotRef,
    /// What people decided in the other run, and whoever asked for this one decides as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vouched: Vec<StepInstanceKey>,
}

/// The step that waits for a child run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ParentStep {
    pub instance: StepInstanceKey,
    pub run_id: RunId,
    pub session_id: SessionId,
}

/// A step is about to be performed: its intent is durable.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepStarted {
    /// Which try; counts from 0.
    pub attempt: u32,
    /// The epoch of the owner that makes this try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// What the step was given.
    pub input: StepInput,
    /// Which instance of which step.
    pub instance: StepInstanceKey,
}

/// A step was performed. This event is the node that later work may be forked from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepCompleted {
    /// Which try; counts from 0.
    pub attempt: u32,
    /// The outcome's label, which picks the edges that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// How long it took, for people.
    pub duration_ms: u64,
    /// Which instance of which step.
    pub instance: StepInstanceKey,
    /// What came out.
    pub output: Payload,
    /// What it used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A try at a step failed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepFailed {
    /// Which try; counts from 0.
    pub attempt: u32,
    /// How long it took, for people.
    pub duration_ms: u64,
    /// What went wrong.
    pub error: Failure,
    /// Which instance of which step.
    pub instance: StepInstanceKey,
    /// What came out all the same, cut short and with secrets removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Payload>,
    /// What happens now.
    pub then: AfterFailure,
    /// What it used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Failure {
    /// A stable name.
    pub code: String,
    /// In words, with secrets removed.
    pub message: String,
}

/// What happens after a failed try.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterFailure {
    /// It is tried again.
    Retry,
    /// The run fails.
    Stop,
    /// The step counts as skipped and its successors go on.
    Skip,
    /// Another step takes its place.
    Fallback,
}

/// A step will not be performed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepSkipped {
    /// Which instance of which step.
    pub instance: StepInstanceKey,
    /// Why not.
    pub reason: SkipReason,
}

/// Why a step is not performed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Its run condition does not hold.
    Condition,
    /// No edge that was taken leads to it.
    Untaken,
    /// It failed, and the workflow says to go on without it.
    Failed,
}

/// A step waits for something outside the engine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepWaiting {
    /// Which try; counts from 0.
    pub attempt: u32,
    /// Which instance of which step.
    pub instance: StepInstanceKey,
    /// For what.
    pub waiting_for: WaitingFor,
}

/// What a step waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum WaitingFor {
    Caller,
    Person,
    Timer,
    Child,
}

/// A step was cut off by a crash.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepInterrupted {
    /// Which try; counts from 0.
    pub attempt: u32,
    /// Which instance of which step.
    pub instance: StepInstanceKey,
}

/// Who decides what nobody has to be asked for. No user of a system has such a name.
pub const ENGINE: &str = "the engine";

/// Somebody said what is done about an interrupted step: a person, or [`ENGINE`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepResolved {
    /// Which try; counts from 0.
    pub attempt: u32,
    /// Who said it.
    pub by: String,
    /// What is done about it.
    pub decision: InterruptDecision,
    /// Which instance of which step.
    pub instance: StepInstanceKey,
    /// How it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

/// What is done about an interrupted step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum InterruptDecision {
    Retry,
    Fail,
    Skip,
}

/// A loop began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopEntered {
    /// The loop, in the turns of the loops around it.
    pub instance: StepInstanceKey,
    /// What it goes over, when it goes over a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Payload>,
}

/// A loop ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopExited {
    /// The loop, in the turns of the loops around it.
    pub instance: StepInstanceKey,
    /// How many turns it made.
    pub iterations: u32,
}

/// Something is to happen at a time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimerSet {
    /// When, in milliseconds since 1970.
    pub due_ms: u64,
    /// The step it belongs to; none when it is the run's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<StepInstanceKey>,
    /// What for.
    pub purpose: TimerPurpose,
    /// The timer's own id.
    pub timer_id: TimerId,
}

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum TimerPurpose {
    Retry,
    Wait,
    StepTimeout,
    RunTimeout,
    TaskTimeout,
}

/// A timer's time came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimerFired {
    /// The timer.
    pub timer_id: TimerId,
}

/// A timer is no longer needed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimerCancelled {
    /// The timer.
    pub timer_id: TimerId,
}

/// A person is asked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskOpened {
    /// Which step asks.
    pub instance: StepInstanceKey,
    /// The question: title, text, form, who may answer.
    pub request: Payload,
    /// The task's own id.
    pub task_id: TaskId,
}

/// A person answered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskAnswered {
    /// The answer.
    pub answer: Payload,
    /// Who answered.
    pub by: String,
    /// The task.
    pub task_id: TaskId,
    /// How it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

/// A child run was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildStarted {
    /// The child.
    pub child_run_id: RunId,
    /// The log it lives in.
    pub child_session_id: SessionId,
    /// The step that waits for it.
    pub instance: StepInstanceKey,
}

/// A child run ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildFinished {
    /// The child.
    pub child_run_id: RunId,
    /// The step that waits for it.
    pub instance: StepInstanceKey,
    /// What came out.
    pub output: Payload,
    /// How it ended.
    pub status: EndStatus,
}

/// How a run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EndStatus {
    Succeeded,
    Failed,
    Cancelled,
}

/// The run's state was stored, so that it can be read from here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SnapshotTaken {
    /// Large values that it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Digest>,
    /// The stored state.
    pub snapshot_ref: SnapshotRef,
    /// The last event that is in it.
    pub through: EventIndex,
}

/// The run rests until it is resumed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunPaused {
    /// Who paused it.
    pub by: String,
    /// The pause's own id.
    pub change_id: ChangeId,
    /// Whether it came from elsewhere: what people decided in it before counts for nothing here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// How it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

/// The run goes on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunResumed {
    /// Who resumed it.
    pub by: String,
    /// The resumption's own id.
    pub change_id: ChangeId,
    /// What the run is given here, when it came from elsewhere and is resumed for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// How it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

/// The run is to end; what is under way is being stopped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunCancelRequested {
    /// Who asked.
    pub by: String,
    /// Why.
    pub reason: String,
    /// How it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

/// The run ended well.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunCompleted {
    /// What came out.
    pub result: Payload,
}

/// The run ended with an error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunFailed {
    /// What went wrong.
    pub error: Failure,
    /// The step at which it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<StepInstanceKey>,
}

/// The run was ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCancelled {}

/// The run's time to be kept is over: it is hidden and its blobs are not held any more.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRetired {}
