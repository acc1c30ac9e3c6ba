//! The record of who changed what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of the record. Each line vouches for the one before it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Its place; the first is 0.
    pub index: u64,
    /// When it was written.
    pub at: String,
    /// Who asked: a token's name and id.
    pub by: String,
    /// What was asked for, such as `runs:start`.
    pub action: String,
    /// What it was about: a path, or the id of something.
    pub object: String,
    /// Whether it was let through.
    pub allowed: bool,
    /// The digest of the line before it; of nothing for the first.
    pub previous: String,
    /// The digest of this line without this member.
    pub digest: String,
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
