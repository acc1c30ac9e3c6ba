//! Payloads of the events that guided runs record.
//!
//! Fields stand in the order of their names on the wire, which is the canonical order.

mod advance;
mod capability;
mod context;
mod divergence;
mod gap;
mod node;
mod output;
mod preference;
mod run;
mod session;
mod trace;

pub use advance::{AdvanceIntent, AdvanceOutcome, AdvanceRecorded};
pub use capability::{
    AttemptContext, AttemptDetail, Capability, CapabilityObserved, CapabilityStatus, Claim,
    ClaimDetail, Claimant, EnforcementGrade, FailureCode, ProbeDetail, ProbeResult, Provenance,
};
pub use context::{ContextSet, ContextSource};
pub use divergence::{DivergenceReason, DivergenceRecorded};
pub use gap::{EvidenceRef, GapRecorded, Resolution};
pub use node::{EdgeCause, EdgeCauseKind, EdgeCreated, EdgeKind, NodeCreated, NodeKind};
pub use output::{NodeOutputAppended, OutputChannel, OutputPayload};
pub use preference::{
    Autonomy, PreferenceChange, PreferenceSource, Preferences, PreferencesChanged, RiskPolicy,
};
pub use run::{RunStarted, SourceKind};
pub use session::{Confidence, ObservationKey, ObservationRecorded, ObservedValue, SessionCreated};
pub use trace::{DecisionTraceAppended, TraceEntry, TraceKind, TraceRef};
