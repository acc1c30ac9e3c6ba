//! The graph of a run: its nodes and its edges.

use serde::{Deserialize, Serialize};

use crate::digest::{SnapshotRef, WorkflowHash};
use crate::id::{EventId, NodeId};

/// A run reached a durable point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeCreated {
    /// What kind of point.
    pub node_kind: NodeKind,
    /// The point before; only the run's root has none.
    pub parent_node_id: Option<NodeId>,
    /// The state to go on from.
    pub snapshot_ref: SnapshotRef,
    /// The plan, equal to the run's.
    pub workflow_hash: WorkflowHash,
}

/// The kinds of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum NodeKind {
    Step,
    Checkpoint,
    BlockedAttempt,
}

/// One node follows another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeCreated {
    /// Why.
    pub cause: EdgeCause,
    /// How.
    pub edge_kind: EdgeKind,
    /// The earlier node.
    pub from_node_id: NodeId,
    /// The later node.
    pub to_node_id: NodeId,
}

/// The kinds of edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EdgeKind {
    AckedStep,
    Checkpoint,
}

impl EdgeKind {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AckedStep => "acked_step",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Why an edge was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeCause {
    /// The event that explains it.
    pub event_id: EventId,
    /// The kind of cause.
    pub kind: EdgeCauseKind,
}

/// The kinds of causes of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EdgeCauseKind {
    IdempotentReplay,
    IntentionalFork,
    NonTipAdvance,
    CheckpointCreated,
}
