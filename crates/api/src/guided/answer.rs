//! What an agent gets.

mod render;

use cairn_core::event::guided::{Autonomy, RiskPolicy};
use cairn_core::reason;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::run::RunError;

/// The answer to a call that starts, continues or shows a run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `blocked`: the run did not move; `blockers` say why.
    pub kind: Kind,
    /// For the next continue_workflow.
    pub continue_token: String,
    /// For checkpoint_workflow; a run of an automation has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_token: Option<String>,
    /// With `tokens: "pair"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_token: Option<String>,
    /// With `tokens: "pair"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_token: Option<String>,
    /// The step to do now; null when the run is over, or while an automation runs by itself.
    pub pending: Option<Pending>,
    /// Whether the run is over.
    pub is_complete: bool,
    /// The only safe thing to do next.
    pub next_intent: NextIntent,
    /// The run's name for people, when there is no `session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Which run it is; on start and when a step is shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The preferences in effect; on start, when a step is shown again, and after a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferences: Option<Preferences>,
    /// Why the run did not move, in a fixed order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Blocker>")]
    pub blockers: Vec<reason::Blocker>,
    /// Send it as continueToken, once the blockers are resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_continue_token: Option<String>,
    /// Facts about the step just done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_context: Option<StepContext>,
    /// What you should know; none of it stops the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What happened so far; when a step is shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recap: Option<Recap>,
    /// Branches that continue from this step already; of a finished run, its other branches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// The state of the automation, of which you get single steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Standing>,
}

/// The state of a run that the engine performs.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// queued, running, waiting, paused, succeeded, failed or cancelled.
    pub status: &'static str,
    /// Its result; left out when it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// What it asks people. WRONG: answering for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Question>,
    /// How many steps wait for you beside the pending one.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_steps: usize,
    /// Steps that the engine is running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doing: Vec<String>,
    /// Steps that were interrupted: a person decides how they continue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<String>,
}

/// A question to a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Question {
    pub step_id: String,
    pub task_id: String,
    pub prompt: String,
    /// Who may answer; anybody who may run it when left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
    /// The JSON schema of the answer's fields, when more than yes or no is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks it")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The shape of a [`reason::Blocker`].
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct Blocker {
    code: String,
    /// What it refers to: a `kind`, and the fields of that kind.
    pointer: Map<String, Value>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested_fix: Option<String>,
}

/// Whether a run moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Ok,
    Blocked,
}

/// A step to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Pending {
    pub step_id: String,
    pub title: String,
    pub prompt: String,
    /// Whether the result needs a confirmation; nextIntent says when it is the user's.
    pub require_confirmation: bool,
}

/// The only safe thing to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum NextIntent {
    PerformPendingThenContinue,
    AwaitUserConfirmation,
    RehydrateOnly,
    Complete,
    Ended,
}

impl NextIntent {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerformPendingThenContinue => "perform_pending_then_continue",
            Self::AwaitUserConfirmation => "await_user_confirmation",
            Self::RehydrateOnly => "rehydrate_only",
            Self::Complete => "complete",
            Self::Ended => "ended",
        }
    }
}

/// Which run it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Session {
    pub session_id: String,
    pub run_id: String,
    pub label: String,
}

/// The preferences in effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Preferences {
    #[schemars(with = "String")]
    pub autonomy: Autonomy,
    #[schemars(with = "String")]
    pub risk_policy: RiskPolicy,
}

/// Facts about the step that was just done.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct StepContext {
    pub assessments: Assessments,
}

/// The accepted assessments: an object when there is one, a list when there are several.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Assessments {
    One(Box<Assessment>),
    Several(Vec<Assessment>),
}

/// An accepted assessment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Assessment {
    pub assessment_id: String,
    pub dimensions: Vec<Dimension>,
    pub normalization_notes: Vec<String>,
}

/// One dimension of an assessment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Dimension {
    pub dimension_id: String,
    pub level: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
}

/// A warning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Warning {
    pub code: String,
    pub message: String,
}

/// What happened so far.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Recap {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
}

/// What a recap leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// How many entries.
    pub omitted_entries: usize,
    /// By which rule.
    pub policy: &'static str,
}

/// A branch that continues from a node already.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Branch {
    pub node_id: String,
    /// Whether it holds the newest work.
    pub preferred: bool,
    /// How many steps, checkpoints and blocked attempts it holds.
    pub nodes: usize,
    /// Whether the run is over at its end.
    pub is_complete: bool,
    /// The step that is pending at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_step_id: Option<String>,
    pub summary: String,
    /// Continues at its end.
    pub continue_token: String,
}

/// The answer to a call that leaves a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Checkpointed {
    pub kind: Kind,
    /// The run's name for people.
    pub label: String,
    pub node_id: String,
    /// For the same pending step.
    pub continue_token: String,
    /// For the next checkpoint.
    pub checkpoint_token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_token: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// The answer to a call that opens a session for notes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the other names say it")]
pub struct SessionOpened {
    pub session_id: String,
    /// Its name for people.
    pub label: String,
    /// For the first checkpoint; each gives the token of the next.
    pub session_token: String,
}

/// The answer to a call that looks for a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Resumed {
    /// At most five, the likeliest first.
    pub candidates: Vec<Candidate>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Runs of automations that wait for an agent, whoever started them; at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingRun>,
    /// Imported sessions that nobody trusts yet; none is a candidate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<String>,
}

/// A run of an automation that waits for an agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the other names say it")]
pub struct WaitingRun {
    pub session: Session,
    pub workflow_id: String,
    /// The title of the step to do.
    pub pending_step: String,
    /// The beginning of its prompt.
    pub snippet: String,
    pub waiting_since: Option<String>,
    /// Until when another agent has claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_until: Option<String>,
    /// Whether that agent has your name: it may be you, in an earlier chat.
    #[serde(skip_serializing_if = "is_false")]
    pub claimed_as_you: bool,
    /// Sent alone, it claims the run for you and returns the step.
    pub continue_token: String,
}

/// A run that may be meant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Candidate {
    pub session: Session,
    pub workflow_id: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Path of the project it was started in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Seconds since it last moved.
    pub idle_sec: u64,
    /// Whether it is another branch than the one that moved last.
    #[serde(skip_serializing_if = "is_false")]
    pub branch: bool,
    pub status: String,
    /// What blocked the last attempt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    /// The title of the step to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_step: Option<String>,
    /// Best reason first.
    pub why_matched: Vec<&'static str>,
    /// The beginning of its latest notes.
    pub snippet: String,
    /// Sent alone, it shows the pending step.
    pub continue_token: String,
}
