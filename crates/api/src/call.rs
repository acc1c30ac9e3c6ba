//! What clients send to have runs begun, steered and answered, and the pages they get.

use std::collections::BTreeMap;

use cairn_core::id::RunId;
use cairn_engine as engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run::{Moment, Run, Task};
use crate::time::rfc3339;
use crate::workflow::{Diagnostic, Summary};

/// Asks for a run.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Start {
    /// The workflow: its id, or the name part of it.
    pub workflow: String,
    /// What the run is given as `event.payload`.
    #[serde(default)]
    pub payload: Value,
    /// The trigger where it begins.
    #[serde(default)]
    pub trigger: Option<String>,
}

/// A run that was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// Whether it was asked for before, and nothing new was begun.
    pub replayed: bool,
}

/// Ends a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cancel {
    /// Why, for whoever reads it later.
    #[serde(default)]
    pub reason: String,
}

/// Goes on from a step of a run, in a run of its own.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkFrom {
    /// The step to go on from, such as `notify` or `each@2::fetch`.
    pub step: String,
    /// Outputs of earlier steps that are to be others, by step.
    #[serde(default)]
    pub outputs: BTreeMap<String, Value>,
    /// Whether to follow the workflow as it is now, and not as it was.
    #[serde(default)]
    pub on_new_plan: bool,
    /// Whether only to say which steps would be done again.
    #[serde(default)]
    pub dry_run: bool,
}

/// Says what became of a step that a crash cut off.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resolve {
    /// The step, such as `charge` or `each@2::charge`.
    pub step: String,
    /// What to do.
    pub decision: Decision,
}

/// What to do about a step that a crash cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Do it again.
    Retry,
    /// Count it as failed.
    Fail,
    /// Go on behind it.
    Skip,
}

/// Answers a question that a run asks.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerTask {
    /// Yes or no.
    pub verdict: Verdict,
    /// The fields of the form.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
}

/// Yes or no.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Verdict {
    Approved,
    Rejected,
}

/// A text that may be a workflow.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Validate {
    /// The text, in YAML or JSON.
    pub source: String,
    /// The name that its file would have; it says whether it is YAML or JSON.
    #[serde(default)]
    pub path: Option<String>,
}

/// What is to be said about a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validated {
    /// Whether it can be run.
    pub valid: bool,
    /// The id that the workflow would have.
    pub workflow_id: String,
    /// The name of its plan, when it has one.
    pub workflow_hash: Option<String>,
    /// Mistakes, and what is worth a look.
    pub diagnostics: Vec<Diagnostic>,
}

/// One page of the runs, latest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Runs {
    /// The runs.
    pub items: Vec<Run>,
    /// Where the next page starts; none when this is the last one.
    pub next_cursor: Option<String>,
    /// Sessions that cannot be read, whose runs may be missing here. A token for some workflows is
    /// not told.
    pub unreadable_sessions: Vec<String>,
}

/// What happened to a run, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Moments {
    /// What happened.
    pub items: Vec<Moment>,
    /// The place behind the last of these, when there are more.
    pub next_cursor: Option<u64>,
}

/// The questions that wait for an answer.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tasks {
    /// The questions.
    pub items: Vec<Task>,
}

/// The workflows there are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workflows {
    /// The workflows, by id.
    pub items: Vec<Summary>,
}

/// A workflow, what is to be said about it, and what it is made of.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowShown {
    /// What the list says of it.
    #[serde(flatten)]
    pub workflow: Summary,
    /// Whether its triggers fire.
    pub enabled: bool,
    /// Mistakes, and what is worth a look.
    pub diagnostics: Vec<Diagnostic>,
    /// What it compiled to; none when it does not compile.
    pub plan: Option<Value>,
}

/// Something that happened to a run, as a stream tells it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Happened {
    /// The run.
    #[schemars(with = "String")]
    pub run_id: RunId,
    /// What happened.
    #[serde(flatten)]
    pub moment: Moment,
}

/// The triggers there are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Triggers {
    /// The triggers, by workflow and id.
    pub items: Vec<Trigger>,
}

/// A trigger of a workflow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Its workflow.
    pub workflow_id: String,
    /// Its own id.
    pub trigger_id: String,
    /// Its type.
    pub r#type: String,
    /// Whether it fires.
    pub enabled: bool,
    /// When it fires next, when the clock fires it.
    pub next_at: Option<String>,
    /// Where its requests go, when requests fire it.
    pub path: Option<String>,
    /// Up to when the clock was seen to.
    pub seen_until: Option<String>,
    /// Why it could not start a run the last time, or cannot.
    pub last_error: Option<String>,
    /// What it was refused, if it ever was.
    pub refused: Option<Refused>,
    /// Whether the file of its workflow does not compile, so that it starts the version that
    /// compiled last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

/// What a trigger was refused, over a limit or for what it was given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// How often.
    pub count: u64,
    /// When last.
    pub last_at: Option<String>,
    /// Why then, by its code.
    pub code: String,
    /// Why then, in words.
    pub message: String,
}

impl From<engine::flow::Refused> for Refused {
    fn from(refused: engine::flow::Refused) -> Self {
        let engine::flow::Refused { count, at_ms, code, message } = refused;
        Self { count, last_at: rfc3339(at_ms), code, message }
    }
}
