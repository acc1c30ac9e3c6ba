//! Gaps: what was needed and is missing.

use serde::{Deserialize, Serialize};

use crate::id::{EventId, GapId, OutputId};
use crate::reason::{GapReason, Severity};

/// Something that was needed is missing, and the run says so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GapRecorded {
    /// What shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence_refs: Vec<EvidenceRef>,
    /// The gap's own id.
    pub gap_id: GapId,
    /// What is missing.
    pub reason: GapReason,
    /// Whether this closes an earlier gap.
    pub resolution: Resolution,
    /// How bad it is.
    pub severity: Severity,
    /// In words.
    pub summary: String,
}

/// Whether a gap record opens a gap or closes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Resolution {
    /// It is open.
    Unresolved {},
    /// It closes an earlier one.
    Resolves {
        /// The earlier one.
        resolves_gap_id: GapId,
    },
}

/// What shows a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "the names say it")]
pub enum EvidenceRef {
    Event { event_id: EventId },
    Output { output_id: OutputId },
}
