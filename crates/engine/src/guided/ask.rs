//! What an agent asks for.

use std::path::PathBuf;

use cairn_core::event::By;
pub use cairn_core::guided::decide::Wanted;
use cairn_core::id::SessionId;
use serde_json::Value;

/// Begin a run.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The workflow: its id, or the name part of it.
    pub workflow: String,
    /// What the run is for, in one sentence.
    pub goal: Option<String>,
    /// Facts from outside that conditions and prompts use.
    pub context: Option<Value>,
    /// Preferences that the user asked for.
    pub preferences: Wanted,
    /// The session to add the run to; without one a new session begins.
    pub session: Option<SessionId>,
    /// The project that the agent works on.
    pub workspace: Option<PathBuf>,
    /// Which tokens the answer carries.
    pub tokens: Tokens,
    /// Who asks; somebody who does not say is recorded as an agent.
    pub by: Option<By>,
}

/// Go on, or get the pending step again.
#[derive(Clone, Debug)]
pub struct Continue {
    /// Where.
    pub at: At,
    /// What is meant; without it an output means to go on, and nothing means to come back.
    pub intent: Option<Intent>,
    /// What the step brought.
    pub output: Option<Output>,
    /// Facts to merge over what is known; `null` removes one.
    pub context: Option<Value>,
    /// Preferences that the user asked for.
    pub preferences: Wanted,
    /// Which tokens the answer carries.
    pub tokens: Tokens,
    /// Who asks; somebody who does not say is recorded as an agent.
    pub by: Option<By>,
}

/// Leave notes at a step without going on.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Where.
    pub at: CheckpointAt,
    /// What to keep.
    pub output: Output,
    /// Whether the notes take the place of those of the step that was done last.
    pub replaces_notes: bool,
    /// Which tokens the answer carries.
    pub tokens: Tokens,
    /// Who asks; somebody who does not say is recorded as an agent.
    pub by: Option<By>,
}

/// Find the run that somebody means.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// Words to look for.
    pub query: Option<String>,
    /// The branch that is checked out, when not as the workspace says.
    pub git_branch: Option<String>,
    /// The commit that is checked out, when not as the workspace says.
    pub git_head_sha: Option<String>,
    /// The project that the agent works on.
    pub workspace: Option<PathBuf>,
}

/// The tokens of a call to go on.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum At {
    Compact(String),
    Pair { state: String, ack: Option<String> },
}

/// The tokens of a call to leave a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum CheckpointAt {
    Compact(String),
    Pair { state: String, checkpoint: String },
}

/// What a call to go on means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// The pending step is done.
    Advance,
    /// The pending step is to be shown again. Nothing is written.
    Rehydrate,
}

/// Which tokens an answer carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tokens {
    /// The short ones.
    #[default]
    Compact,
    /// The long pair beside them.
    Pair,
}

/// What a step brought.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Output {
    /// What was done in this step alone, as Markdown.
    pub notes: Option<String>,
    /// Structured results, each with its `kind`.
    pub artifacts: Vec<Value>,
}
