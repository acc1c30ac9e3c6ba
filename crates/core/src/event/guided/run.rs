//! The start of a run.

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, WorkflowHash};

/// A run exists and is pinned to a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunStarted {
    /// The files that the plan names, so that they are kept as long as the run is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assets: Vec<Digest>,
    /// What the run is for, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The plan; the authority for the whole run.
    pub workflow_hash: WorkflowHash,
    /// The workflow's id.
    pub workflow_id: String,
    /// Where the source was found.
    pub workflow_source_kind: SourceKind,
    /// Where exactly, in the terms of that kind of source.
    pub workflow_source_ref: String,
    /// The folder or checkout that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// The kinds of places that workflows come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum SourceKind {
    Bundled,
    User,
    Project,
    Remote,
    Plugin,
}
