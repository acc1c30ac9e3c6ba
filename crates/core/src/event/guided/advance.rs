//! Attempts to go on, and what came of them.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::{AttemptId, NodeId};
use crate::reason::BlockerReport;

/// An attempt to go on was made, and this came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdvanceRecorded {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// A digest of what the caller sent, so that a replay with other input is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Digest>,
    /// What was attempted.
    pub intent: AdvanceIntent,
    /// What came of it.
    pub outcome: AdvanceOutcome,
}

/// What an attempt wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvanceIntent {
    /// Acknowledge the pending step and go on.
    AckPending,
}

/// What came of an attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum AdvanceOutcome {
    /// The run did not move.
    Blocked {
        /// Why not.
        blockers: BlockerReport,
    },
    /// The run moved.
    Advanced {
        /// To here.
        to_node_id: NodeId,
    },
}
