//! What an agent sends.

mod parse;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Begin a run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartWorkflow {
    /// Id from list_workflows, such as `wr.code-review`.
    pub workflow_id: String,
    /// What this run is for, in one sentence; resume_session finds it by these words.
    pub goal: Option<String>,
    /// Facts from outside that prompts and conditions use: a ticket id, a branch, parameters.
    /// They are kept, so send them once. Paths, not documents; at most 256 KB.
    pub context: Option<Map<String, Value>>,
    /// Only what the user asked for.
    pub preferences: Option<Preferences>,
    /// Adds the run to a session: `session.sessionId` of an earlier answer.
    pub session_id: Option<String>,
    /// Absolute path of the project you work on.
    pub workspace_path: Option<String>,
    /// `pair` adds stateToken and ackToken.
    pub tokens: Option<Tokens>,
}

/// Go on, or see the pending step again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContinueWorkflow {
    /// The continueToken of the last answer, copied whole; after a block its
    /// retryContinueToken. RIGHT: the newest one. WRONG: a checkpointToken; one you shortened;
    /// one of an earlier step, unless you mean to fork the run there.
    pub continue_token: Option<String>,
    /// In place of continueToken, when you asked for `tokens: "pair"`.
    pub state_token: Option<String>,
    /// Goes with stateToken and says that the step is done; without it the step is shown again.
    pub ack_token: Option<String>,
    /// `advance`: the step is done. `rehydrate`: show it again; nothing changes. Left out, it is
    /// advance when there is an output, otherwise rehydrate.
    pub intent: Option<Intent>,
    /// What this step brought.
    pub output: Option<Output>,
    /// Keys that the step tells you to set, and facts that are new or changed; null removes one.
    /// Goes with output or intent. WRONG: sending what is known again.
    pub context: Option<Map<String, Value>>,
    /// Only when the user changes them.
    pub preferences: Option<Preferences>,
    /// `pair` adds stateToken and ackToken.
    pub tokens: Option<Tokens>,
}

/// Leave notes without going on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointWorkflow {
    /// The checkpointToken of the last answer. WRONG: its continueToken.
    pub checkpoint_token: Option<String>,
    /// Goes with it after `tokens: "pair"`.
    pub state_token: Option<String>,
    /// In place of the others, in a session without a run.
    pub session_token: Option<String>,
    /// What to keep.
    pub output: Kept,
    /// `pair` adds stateToken and ackToken.
    pub tokens: Option<Tokens>,
}

/// Find the run that is meant.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeSession {
    /// Words from its goal, notes, context or workflow's name, all of which must be there. Left
    /// out, the runs that moved last are shown.
    pub query: Option<String>,
    /// Branch you are on.
    pub git_branch: Option<String>,
    /// Commit you are on.
    pub git_head_sha: Option<String>,
    /// Absolute path of the project; its branch and commit are then looked up.
    pub workspace_path: Option<String>,
}

/// Begin a session without a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartSession {}

/// See the workflows there are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListWorkflows {
    /// Words, all of which must be in the id, the name or the description.
    pub query: Option<String>,
    /// nextCursor of the page before.
    pub cursor: Option<String>,
}

/// See one workflow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InspectWorkflow {
    /// Id from list_workflows.
    pub workflow_id: String,
    /// `full` adds loops, and the contracts of outputs with their schemas. Default: brief.
    pub detail: Option<Detail>,
}

/// How much to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Detail {
    #[default]
    Brief,
    Full,
}

/// What a call to go on means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Intent {
    Advance,
    Rehydrate,
}

/// Which tokens an answer carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Tokens {
    Compact,
    Pair,
}

/// What a step brought.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    /// Markdown for people, at most 4096 bytes: what you did and decided, results with paths and
    /// numbers, what is open. RIGHT: this step alone. WRONG: earlier notes repeated; "done".
    pub notes_markdown: Option<String>,
    /// Structured results that the prompt asks for, each with its `kind`.
    pub artifacts: Option<Vec<Map<String, Value>>>,
}

/// What a checkpoint keeps.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the other name says it")]
pub struct Kept {
    /// Markdown: what is new since the last notes, and what comes next.
    pub notes_markdown: Option<String>,
    pub artifacts: Option<Vec<Map<String, Value>>>,
    /// Corrects the last step's notes.
    pub replaces_notes: Option<bool>,
}

/// Preferences that the user asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Preferences {
    pub autonomy: Option<Autonomy>,
    pub risk_policy: Option<RiskPolicy>,
}

/// When a run stops for a person.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Autonomy {
    Guided,
    FullAutoStopOnUserDeps,
    FullAutoNeverStop,
}

/// How much risk to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum RiskPolicy {
    Conservative,
    Balanced,
    Aggressive,
}
