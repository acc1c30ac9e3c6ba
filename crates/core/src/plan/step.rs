//! One unit of a plan.

use serde::{Deserialize, Serialize};

use super::Prompt;
use crate::canonical::StrictValue;
use crate::text::Slug;

/// One unit of a plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// What is to be done.
    pub action: Action,
    /// The condition under which it is done; without one it always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Slug>,
    /// Its name in the plan.
    pub id: Slug,
    /// What happens when it fails for good.
    pub on_failure: OnFailure,
    /// What happens when a crash cuts it off.
    pub on_interrupt: OnInterrupt,
    /// Where it comes from.
    pub origin: Origin,
    /// The contracts that its outputs must satisfy, by reference.
    pub output_contracts: Vec<OutputContract>,
    /// Who must agree before the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_confirmation: Option<Confirmation>,
    /// Whether and when it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// How long one try may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Its name for people.
    pub title: String,
    /// How often a run may come to it, when it is in a cycle; without one,
    /// [the usual](super::cycle::VISITS_MAX).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits_max: Option<u32>,
}

/// What is to be done.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// An agent follows instructions.
    Prompt(Box<Prompt>),
    /// A step type is performed.
    Typed {
        /// Its particulars, as its type asks for them.
        config: StrictValue,
        /// The step type.
        r#type: Slug,
    },
}

/// A contract that a step's output is under.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputContract {
    /// Which contract.
    pub r#ref: String,
    /// Whether there must be such an output.
    pub required: bool,
}

/// Who must agree, and when.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Confirmation {
    /// Who.
    pub by: ConfirmedBy,
    /// The condition under which it is asked for; without one it always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Slug>,
}

/// Who must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmedBy {
    /// The user whom the agent works with.
    User,
    /// A person with the right to approve.
    HumanApproval,
    /// Another agent that judges the result.
    CoordinatorEval,
}

/// What happens when a step fails for good.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum OnFailure {
    /// The run fails.
    Stop {},
    /// The run goes on without it.
    Skip {},
    /// Another step takes its place.
    Fallback {
        /// Which.
        step_id: Slug,
    },
}

/// What happens when a crash cuts a step off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInterrupt {
    /// It is performed again with the same idempotency key.
    Retry,
    /// It counts as failed.
    Fail,
    /// A person decides.
    Ask,
}

/// When a failed step is tried again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryPolicy {
    /// How many tries there are in all.
    pub attempts_max: u32,
    /// How the pause grows.
    pub backoff: Backoff,
    /// The longest pause.
    pub delay_max_ms: u64,
    /// The first pause.
    pub delay_ms: u64,
    /// The failures after which it is tried again; without any, after all that may pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FailureKind>,
    /// Whether pauses vary by chance, so that many runs do not come back at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub jitter: bool,
}

/// What kind of failure a try ended in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The other side was not reached, or went away.
    Connection,
    /// A process ended with an exit code other than 0.
    ExitCode,
    /// What came out is not what was asked for.
    InvalidOutput,
    /// The other side says that it was asked too often.
    RateLimited,
    /// The other side failed.
    ServerError,
    /// Its time was over.
    Timeout,
    /// Anything that another try does not mend.
    Permanent,
}

/// How the pause between tries grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// It does not.
    Fixed,
    /// It doubles.
    Exponential,
}

/// Where a step comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Origin {
    /// The template or feature that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Who wrote it.
    pub source: StepSource,
}

/// Who wrote a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum StepSource {
    Authored,
    TemplateInjected,
    FeatureInjected,
}
