//! Divergences: work that left the procedure on purpose.

use serde::{Deserialize, Serialize};

use crate::id::DivergenceId;
use crate::text::Slug;

/// The work left the procedure on purpose.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DivergenceRecorded {
    /// The divergence's own id.
    pub divergence_id: DivergenceId,
    /// Why.
    pub reason: DivergenceReason,
    /// The step it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_step_id: Option<Slug>,
    /// In words.
    pub summary: String,
}

/// Why work leaves a procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DivergenceReason {
    MissingUserContext,
    CapabilityUnavailable,
    EfficiencySkip,
    SafetyStop,
    PolicyConstraint,
}
