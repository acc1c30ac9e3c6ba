//! A session and the workspace it stands in.

use serde::{Deserialize, Serialize};

/// The session exists.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionCreated {}

/// Something about the workspace, kept so that the work can be found again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObservationRecorded {
    /// How sure the observer is.
    pub confidence: Confidence,
    /// What was observed.
    pub key: ObservationKey,
    /// What it was.
    pub value: ObservedValue,
}

/// How sure an observer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Confidence {
    Low,
    Med,
    High,
}

/// What can be observed of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKey {
    /// The branch that is checked out.
    GitBranch,
    /// The commit that is checked out.
    GitHeadSha,
    /// A digest that stands for the repository's root.
    RepoRootHash,
    /// The repository's root as a path, for people.
    RepoRoot,
}

impl ObservationKey {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitBranch => "git_branch",
            Self::GitHeadSha => "git_head_sha",
            Self::RepoRootHash => "repo_root_hash",
            Self::RepoRoot => "repo_root",
        }
    }
}

/// An observed value with its type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ObservedValue {
    ShortString(String),
    GitSha1(String),
    Sha256(String),
    Path(String),
}

impl ObservedValue {
    /// The value without its type.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::ShortString(text)
            | Self::GitSha1(text)
            | Self::Sha256(text)
            | Self::Path(text) => text,
        }
    }
}
