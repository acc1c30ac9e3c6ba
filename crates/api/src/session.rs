//! Sessions on the wire: the list and the single one.

use std::str::FromStr;

use cairn_core::digest::{Digest, WorkflowHash};
use cairn_core::id::{EventIndex, NodeId, RunId, SessionId};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

mod claims;
mod graph;
mod markdown;
mod read;
mod resolve;
mod story;

pub use claims::{ClaimedPlan, ClaimedRun, Claims, Decision, TrustSession};
pub use graph::{Drawn, Graph, GraphGap, GraphNode, GraphStep, NODES_DEFAULT, draw};
pub use markdown::{Document, Extent, tell};
pub use read::{Filter, RUNS_MAX, TIMELINE_DEFAULT, list, show};
pub use resolve::{resolve, resolve_with_runs};

/// A session in the list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The session.
    pub session_id: SessionId,
    /// How its data is.
    pub health: Health,
    /// What is damaged, when something is; of an unreadable session the code and the message
    /// of what stood in the way.
    pub damage: Option<String>,
    /// When it was created, as far as its id says.
    pub created_at: Option<String>,
    /// When its last event was recorded, as far as that event's id says.
    pub updated_at: Option<String>,
    /// How many events can be read.
    pub events: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// Whether it is kept whatever its age.
    pub kept: bool,
    /// How many runs it holds.
    pub run_count: u64,
    /// The run that something happened to last.
    pub latest_run: Option<Run>,
    /// Where it comes from, when it did not begin here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Origin>,
}

/// Where a session comes from that did not begin here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The session it was.
    pub original_session_id: SessionId,
    /// The digest of everything in its bundle.
    pub root_hash: Digest,
    /// Who said that it may go on here; nobody has while it is left out, and then it does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_by: Option<String>,
    /// When they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_at: Option<String>,
}

/// A session with everything there is to see at a glance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// What the list says of it.
    #[serde(flatten)]
    pub summary: Summary,
    /// What else an operator may want to know.
    pub notices: Vec<String>,
    /// How many blobs it needs.
    pub blobs: u64,
    /// What was observed of the workspace, the latest of each kind.
    pub observations: Vec<Observation>,
    /// Its runs, the one that something happened to last first; at most [`RUNS_MAX`].
    pub runs: Vec<Run>,
    /// The last things that happened, oldest first.
    pub timeline: Vec<Moment>,
}

/// A run of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The run.
    pub run_id: RunId,
    /// Who performs it.
    pub kind: RunKind,
    /// Its readable label, which its tokens begin with; of a guided run.
    pub label: Option<String>,
    /// Where it stands, in one word; `unknown` when its state cannot be read.
    pub status: String,
    /// The workflow, once it is known.
    pub workflow_id: Option<String>,
    /// The plan it is pinned to, once it has begun.
    pub workflow_hash: Option<WorkflowHash>,
    /// How many events are about it.
    pub events: u64,
    /// How many nodes it has.
    pub nodes: u64,
    /// When it began, as far as its first event's id says.
    pub created_at: Option<String>,
    /// When something last happened to it, as far as that event's id says.
    pub updated_at: Option<String>,
}

/// Who performs a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// An agent is led through it, one step at a time.
    Guided,
    /// The engine performs it.
    Engine,
}

/// Something that was observed of the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// What.
    pub key: String,
    /// What it was.
    pub value: String,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    /// Its place in the log.
    pub index: EventIndex,
    /// When, as far as the event's id says.
    pub at: Option<String>,
    /// What, as the log spells it.
    pub kind: String,
    /// The run it is about.
    pub run_id: Option<RunId>,
    /// The node it is about.
    pub node_id: Option<NodeId>,
    /// Its particulars in a few words.
    pub text: String,
}

/// How a session's data is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Health {
    Healthy,
    CorruptTail,
    CorruptHead,
    UnknownVersion,
    /// It could not be looked at, which says nothing about its data.
    Unreadable,
}

impl Health {
    /// Every state there is.
    pub const ALL: [Self; 5] = [
        Self::Healthy,
        Self::CorruptTail,
        Self::CorruptHead,
        Self::UnknownVersion,
        Self::Unreadable,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::CorruptTail => "corrupt_tail",
            Self::CorruptHead => "corrupt_head",
            Self::UnknownVersion => "unknown_version",
            Self::Unreadable => "unreadable",
        }
    }
}

impl From<cairn_store::Health> for Health {
    fn from(health: cairn_store::Health) -> Self {
        match health {
            cairn_store::Health::Healthy => Self::Healthy,
            cairn_store::Health::CorruptTail => Self::CorruptTail,
            cairn_store::Health::CorruptHead => Self::CorruptHead,
            cairn_store::Health::UnknownVersion => Self::UnknownVersion,
        }
    }
}

impl FromStr for Health {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|health| health.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::RequestInvalid(format!("`health` is one of {names}"))
        })
    }
}
