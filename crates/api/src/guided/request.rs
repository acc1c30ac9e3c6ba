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
    /// Facts that prompts and conditions use: a ticket id, a branch, parameters. They stay
    /// recorded, so send them once. Paths, not documents; at most 256 KB.
    pub context: Option<Map<String, Value>>,
    /// Only what the user asked for.
    pub preferences: Option<Preferences>,
    /// Adds the run to a session: session.sessionId of an earlier answer.
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
    /// continueToken of the last answer, copied whole; after a block its retryContinueToken.
    /// WRONG: a checkpointToken; an older one, unless you mean to fork there.
    pub continue_token: Option<String>,
    /// Instead of continueToken, after `tokens: "pair"`.
    pub state_token: Option<String>,
    /// With stateToken: the step is done.
    pub ack_token: Option<String>,
    /// `advance`: the step is done. `rehydrate`: show it again. Default: advance if there is an
    /// output, else rehydrate.
    pub intent: Option<Intent>,
    /// The result of this step.
    pub output: Option<Output>,
    /// Keys that the step asks for, and facts that changed; null removes one. Needs output or
    /// intent. WRONG: repeating what is recorded.
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
    /// checkpointToken of the last answer. WRONG: its continueToken.
    pub checkpoint_token: Option<String>,
    /// With checkpointToken, after `tokens: "pair"`.
    pub state_token: Option<String>,
    /// Instead of the others, in a session without a run.
    pub session_token: Option<String>,
    /// What to record, such as {"notesMarkdown": "…"}.
    pub output: Kept,
    /// `pair` adds stateToken and ackToken.
    pub tokens: Option<Tokens>,
}

/// Find the run that is meant.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeSession {
    /// Words that all occur in its goal, notes, context or workflow name, in one or in several of
    /// them. Default: the runs that moved last.
    pub query: Option<String>,
    /// Branch you are on.
    pub git_branch: Option<String>,
    /// Commit you are on.
    pub git_head_sha: Option<String>,
    /// Absolute path of the project: runs on its git branch and commit come first.
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
    /// Words that all occur in the id, name or description.
    pub query: Option<String>,
    /// nextCursor of the last page.
    pub cursor: Option<String>,
}

/// See one workflow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InspectWorkflow {
    /// Id from list_workflows.
    pub workflow_id: String,
    /// `full` adds loops and output contracts with their schemas. Default: brief.
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
    /// numbers, open points. RIGHT: this step alone. WRONG: earlier notes again; "done".
    pub notes_markdown: Option<String>,
    /// Structured results that the prompt asks for, each with a `kind`.
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
