//! The record of who changed what, and which calls are changes.

mod doors;

use cairn_core::audit::Line;
use cairn_core::event::Door;
use cairn_engine::record::Page;
use schemars::JsonSchema;
use serde::Serialize;

pub use doors::{CLI, Call, HTTP, MCP};

/// One line of the record. Each line vouches for the one before it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its place; the first is 0.
    pub index: u64,
    /// When it was written.
    pub at: String,
    /// Who asked: a person, or the name of a token.
    pub by: String,
    /// Through which door: `cli`, `http` or `mcp`.
    #[schemars(with = "Option<String>")]
    pub door: Option<Door>,
    /// The token that they came with.
    pub token_id: Option<String>,
    /// What was asked for, such as `runs:start`.
    pub action: String,
    /// The workflow that it was about.
    pub workflow_id: Option<String>,
    /// The run that it was about.
    pub run_id: Option<String>,
    /// The session that it was about.
    pub session_id: Option<String>,
    /// What else it was about: the name of a secret or a setting, the id of a token, a path.
    pub object: String,
    /// The digest of what was asked with; values of secrets are no part of it.
    pub arguments: Option<String>,
    /// Whether it was let through.
    pub allowed: bool,
    /// The error code, if it was refused or failed.
    pub outcome: Option<String>,
    /// The line that this one says more about: nothing came of it, or which session it made.
    pub of: Option<u64>,
    /// How often it was refused since the last line that said so, this time included.
    pub times: Option<u64>,
    /// The digest of the line before it; of nothing for the first.
    pub previous: String,
    /// The digest of this line without this member.
    pub digest: String,
}

impl From<Line> for Entry {
    fn from(line: Line) -> Self {
        Self {
            index: line.index,
            at: line.at,
            by: line.by,
            door: line.door,
            token_id: line.token_id,
            action: line.action,
            workflow_id: line.workflow_id,
            run_id: line.run_id.map(|run| run.to_string()),
            session_id: line.session_id.map(|session| session.to_string()),
            object: line.object,
            arguments: line.arguments.map(|digest| digest.to_string()),
            allowed: line.allowed,
            outcome: line.outcome,
            of: line.of,
            times: line.times,
            previous: line.previous,
            digest: line.digest,
        }
    }
}

/// One page of the record, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    /// The lines.
    pub items: Vec<Entry>,
    /// The place behind the last of these, when there are more.
    pub next_cursor: Option<u64>,
}

impl From<Page> for Entries {
    fn from(page: Page) -> Self {
        Self { items: page.lines.into_iter().map(Into::into).collect(), next_cursor: page.next }
    }
}
