//! Capabilities, and how it is known whether they are there.

use serde::{Deserialize, Serialize};

use crate::id::CapObsId;

/// Whether a capability is there was observed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CapabilityObserved {
    /// The observation's own id.
    pub cap_obs_id: CapObsId,
    /// Which capability.
    pub capability: Capability,
    /// How it was observed.
    pub provenance: Provenance,
    /// What was observed.
    pub status: CapabilityStatus,
}

/// The capabilities a procedure may need.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Capability {
    Delegation,
    WebBrowsing,
}

/// Whether a capability is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum CapabilityStatus {
    Unknown,
    Available,
    Unavailable,
}

/// How an observation came about. Only a strong one may unlock a required path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "every field is one of two")]
pub enum Provenance {
    /// A probe step was run for it: strong.
    ProbeStep { detail: ProbeDetail, enforcement_grade: EnforcementGrade },
    /// It was used, and that worked or not: strong.
    AttemptedUse { detail: AttemptDetail, enforcement_grade: EnforcementGrade },
    /// Somebody says so: weak.
    ManualClaim { detail: ClaimDetail, enforcement_grade: EnforcementGrade },
}

impl Provenance {
    /// How strong the observation says it is.
    #[must_use]
    pub const fn grade(&self) -> EnforcementGrade {
        match self {
            Self::ProbeStep { enforcement_grade, .. }
            | Self::AttemptedUse { enforcement_grade, .. }
            | Self::ManualClaim { enforcement_grade, .. } => *enforcement_grade,
        }
    }

    /// How strong an observation of this kind is.
    #[must_use]
    pub const fn deserved_grade(&self) -> EnforcementGrade {
        match self {
            Self::ProbeStep { .. } | Self::AttemptedUse { .. } => EnforcementGrade::Strong,
            Self::ManualClaim { .. } => EnforcementGrade::Weak,
        }
    }
}

/// How strong an observation is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EnforcementGrade {
    Weak,
    Strong,
}

/// A probe step's result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ProbeDetail {
    pub probe_step_id: String,
    pub probe_template_id: String,
    pub result: ProbeResult,
}

/// Whether something worked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ProbeResult {
    Success,
    Failure,
}

/// A use's result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttemptDetail {
    /// Where it was used.
    pub attempt_context: AttemptContext,
    /// Why it failed; there exactly when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
    /// Whether it worked.
    pub result: ProbeResult,
}

/// Where a capability was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum AttemptContext {
    WorkflowStep,
    SystemProbe,
}

/// Why a use failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FailureCode {
    ToolMissing,
    ToolError,
    PolicyBlocked,
    Unknown,
}

/// A claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ClaimDetail {
    pub claim: Claim,
    pub claimed_by: Claimant,
}

/// What is claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Claim {
    Available,
    Unavailable,
}

/// Who claims it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Claimant {
    Agent,
    User,
}
