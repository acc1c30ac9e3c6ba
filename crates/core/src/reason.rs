//! One table of reasons, whether they stop a run or are disclosed while it goes on.
//!
//! A mode changes what happens, never what a reason means: the same [`Reason`] gives a
//! blocker where the run may stop, and a gap where it may not.

use serde::{Deserialize, Serialize};

use crate::event::guided::{Autonomy, Capability};
use crate::event::{Invalid, limits};
use crate::text::Slug;

/// Why a run cannot simply go on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Only a person can provide it.
    UserOnly(UserOnlyDependency),
    /// An output that the step owes is missing or wrong.
    Contract(ContractViolation),
    /// The workflow needs a capability that is not there.
    Capability(CapabilityMissing),
    /// Something that should be impossible.
    Unexpected(Unexpected),
}

/// What only a person can provide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum UserOnlyDependency {
    NeedsUserSecretOrToken,
    NeedsUserAccountAccess,
    NeedsUserArtifact,
    NeedsUserChoice,
    NeedsUserApproval,
    NeedsUserEnvironmentAction,
}

/// Choices that an agent may not make by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum NonAssumableChoice {
    PreferenceTradeoff,
    ScopeBoundary,
    IrreversibleAction,
    ExternalSideEffect,
    PolicyOrCompliance,
}

impl NonAssumableChoice {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreferenceTradeoff => "preference_tradeoff",
            Self::ScopeBoundary => "scope_boundary",
            Self::IrreversibleAction => "irreversible_action",
            Self::ExternalSideEffect => "external_side_effect",
            Self::PolicyOrCompliance => "policy_or_compliance",
        }
    }
}

/// What is wrong with an owed output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ContractViolation {
    MissingRequiredOutput,
    InvalidRequiredOutput,
}

/// What is wrong with a needed capability.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum CapabilityMissing {
    RequiredCapabilityUnavailable,
    RequiredCapabilityUnknown,
}

/// What should be impossible.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unexpected {
    InvariantViolation,
    StorageCorruptionDetected,
}

/// A reason as a gap records it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "category", content = "detail", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub enum GapReason {
    UserOnlyDependency(UserOnlyDependency),
    ContractViolation(ContractViolation),
    CapabilityMissing(CapabilityMissing),
    Unexpected(Unexpected),
}

/// How bad a gap is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Severity {
    Info,
    Warning,
    Critical,
}

/// What a reason does under a mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consequence {
    /// The attempt is answered with a blocker and the run stays where it is.
    Block(BlockerCode),
    /// The run goes on and says what is missing.
    Disclose(GapReason, Severity),
    /// It is recorded, and the call fails: going on would not be correct.
    Fail(GapReason, Severity),
}

impl Reason {
    /// Every reason there is.
    pub const ALL: [Self; 12] = [
        Self::UserOnly(UserOnlyDependency::NeedsUserSecretOrToken),
        Self::UserOnly(UserOnlyDependency::NeedsUserAccountAccess),
        Self::UserOnly(UserOnlyDependency::NeedsUserArtifact),
        Self::UserOnly(UserOnlyDependency::NeedsUserChoice),
        Self::UserOnly(UserOnlyDependency::NeedsUserApproval),
        Self::UserOnly(UserOnlyDependency::NeedsUserEnvironmentAction),
        Self::Contract(ContractViolation::MissingRequiredOutput),
        Self::Contract(ContractViolation::InvalidRequiredOutput),
        Self::Capability(CapabilityMissing::RequiredCapabilityUnknown),
        Self::Capability(CapabilityMissing::RequiredCapabilityUnavailable),
        Self::Unexpected(Unexpected::InvariantViolation),
        Self::Unexpected(Unexpected::StorageCorruptionDetected),
    ];

    /// The code that a blocker for this reason carries.
    #[must_use]
    pub const fn blocker_code(self) -> BlockerCode {
        match self {
            Self::UserOnly(_) => BlockerCode::UserOnlyDependency,
            Self::Contract(ContractViolation::MissingRequiredOutput) => {
                BlockerCode::MissingRequiredOutput
            }
            Self::Contract(ContractViolation::InvalidRequiredOutput) => {
                BlockerCode::InvalidRequiredOutput
            }
            Self::Capability(CapabilityMissing::RequiredCapabilityUnknown) => {
                BlockerCode::RequiredCapabilityUnknown
            }
            Self::Capability(CapabilityMissing::RequiredCapabilityUnavailable) => {
                BlockerCode::RequiredCapabilityUnavailable
            }
            Self::Unexpected(Unexpected::InvariantViolation) => BlockerCode::InvariantViolation,
            Self::Unexpected(Unexpected::StorageCorruptionDetected) => {
                BlockerCode::StorageCorruptionDetected
            }
        }
    }

    /// The reason as a gap records it.
    #[must_use]
    pub const fn gap_reason(self) -> GapReason {
        match self {
            Self::UserOnly(detail) => GapReason::UserOnlyDependency(detail),
            Self::Contract(detail) => GapReason::ContractViolation(detail),
            Self::Capability(detail) => GapReason::CapabilityMissing(detail),
            Self::Unexpected(detail) => GapReason::Unexpected(detail),
        }
    }

    /// What the reason does in a mode. Every gap is critical: something required is missing.
    #[must_use]
    pub const fn under(self, autonomy: Autonomy) -> Consequence {
        match (self, autonomy) {
            (Self::Unexpected(_), _) => Consequence::Fail(self.gap_reason(), Severity::Critical),
            (_, Autonomy::FullAutoNeverStop) => {
                Consequence::Disclose(self.gap_reason(), Severity::Critical)
            }
            (_, Autonomy::Guided | Autonomy::FullAutoStopOnUserDeps) => {
                Consequence::Block(self.blocker_code())
            }
        }
    }
}

/// Why an attempt did not move the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names say it")]
pub enum BlockerCode {
    InvalidRequiredOutput,
    InvariantViolation,
    MissingRequiredOutput,
    RequiredCapabilityUnavailable,
    RequiredCapabilityUnknown,
    StorageCorruptionDetected,
    UserOnlyDependency,
}

impl BlockerCode {
    /// Every code there is, with the name that people and clients see. They are told in a
    /// blocked answer, which is no error.
    const NAMES: [(Self, &'static str); 7] = [
        (Self::InvalidRequiredOutput, "INVALID_REQUIRED_OUTPUT"),
        (Self::InvariantViolation, "INVARIANT_VIOLATION"),
        (Self::MissingRequiredOutput, "MISSING_REQUIRED_OUTPUT"),
        (Self::RequiredCapabilityUnavailable, "REQUIRED_CAPABILITY_UNAVAILABLE"),
        (Self::RequiredCapabilityUnknown, "REQUIRED_CAPABILITY_UNKNOWN"),
        (Self::StorageCorruptionDetected, "STORAGE_CORRUPTION_DETECTED"),
        (Self::UserOnlyDependency, "USER_ONLY_DEPENDENCY"),
    ];

    /// The name that people and clients see.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(code, _)| *code == self).map_or("BLOCKED", |(_, name)| name)
    }
}

/// What a blocker is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Pointer {
    Capability { capability: Capability },
    ContextBudget {},
    ContextKey { key: Slug },
    OutputContract { contract_ref: String },
    WorkflowStep { step_id: Slug },
}

/// One thing that keeps a run from going on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Blocker {
    /// What it is.
    pub code: BlockerCode,
    /// What it is about.
    pub pointer: Pointer,
    /// In words.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_fix: Option<String>,
}

/// Everything that keeps a run from going on, in a fixed order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockerReport {
    blockers: Vec<Blocker>,
}

impl BlockerReport {
    /// The report of these blockers, put in order. Over budget is an error, never a cut.
    pub fn new(mut blockers: Vec<Blocker>) -> Result<Self, Invalid> {
        blockers.sort();
        let report = Self { blockers };
        report.check()?;
        Ok(report)
    }

    /// The blockers, by code, then by what they are about.
    #[must_use]
    pub fn blockers(&self) -> &[Blocker] {
        &self.blockers
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let over = |field, found: usize, max| {
            let hint = "shorten it";
            if found > max { Err(Invalid::OverBudget { field, found, max, hint }) } else { Ok(()) }
        };
        if self.blockers.is_empty() {
            return Err(Invalid::Empty("blockers"));
        }
        over("blockers", self.blockers.len(), limits::BLOCKERS)?;
        for blocker in &self.blockers {
            over("message", blocker.message.len(), limits::BLOCKER_MESSAGE)?;
            let fix = blocker.suggested_fix.as_ref().map_or(0, String::len);
            over("suggestedFix", fix, limits::BLOCKER_FIX)?;
        }
        if !self.blockers.is_sorted() {
            return Err(Invalid::Contradiction("blockers stand in order of code and pointer"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn names_are_those_on_the_wire() {
        use crate::event::guided::RiskPolicy;
        use crate::plan::Need;
        fn of<T: Serialize>(value: T) -> String {
            serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
        }
        for reason in Reason::ALL {
            let code = reason.blocker_code();
            assert_eq!(code.name(), of(code));
        }
        use Autonomy::{FullAutoNeverStop, FullAutoStopOnUserDeps, Guided};
        for autonomy in [Guided, FullAutoStopOnUserDeps, FullAutoNeverStop] {
            assert_eq!(autonomy.name(), of(autonomy));
        }
        use RiskPolicy::{Aggressive, Balanced, Conservative};
        for policy in [Conservative, Balanced, Aggressive] {
            assert_eq!(policy.name(), of(policy));
        }
        for need in [Need::Required, Need::Preferred, Need::Disabled] {
            assert_eq!(need.name(), of(need));
        }
    }

    fn check(autonomy: Autonomy) -> String {
        let row = |reason: &Reason| format!("{reason:?} -> {:?}\n", reason.under(autonomy));
        Reason::ALL.iter().map(row).collect()
    }

    #[test]
    fn guided_runs_stop_for_everything_but_the_impossible() {
        assert_snapshot!(check(Autonomy::Guided), @r"
        UserOnly(NeedsUserSecretOrToken) -> Block(UserOnlyDependency)
        UserOnly(NeedsUserAccountAccess) -> Block(UserOnlyDependency)
        UserOnly(NeedsUserArtifact) -> Block(UserOnlyDependency)
        UserOnly(NeedsUserChoice) -> Block(UserOnlyDependency)
        UserOnly(NeedsUserApproval) -> Block(UserOnlyDependency)
        UserOnly(NeedsUserEnvironmentAction) -> Block(UserOnlyDependency)
        Contract(MissingRequiredOutput) -> Block(MissingRequiredOutput)
        Contract(InvalidRequiredOutput) -> Block(InvalidRequiredOutput)
        Capability(RequiredCapabilityUnknown) -> Block(RequiredCapabilityUnknown)
        Capability(RequiredCapabilityUnavailable) -> Block(RequiredCapabilityUnavailable)
        Unexpected(InvariantViolation) -> Fail(Unexpected(InvariantViolation), Critical)
        Unexpected(StorageCorruptionDetected) -> Fail(Unexpected(StorageCorruptionDetected), Critical)
        ");
    }

    #[test]
    fn stopping_for_people_only_is_the_same_table() {
        assert_eq!(check(Autonomy::FullAutoStopOnUserDeps), check(Autonomy::Guided));
    }

    #[test]
    fn runs_that_never_stop_disclose() {
        assert_snapshot!(check(Autonomy::FullAutoNeverStop), @r"
        UserOnly(NeedsUserSecretOrToken) -> Disclose(UserOnlyDependency(NeedsUserSecretOrToken), Critical)
        UserOnly(NeedsUserAccountAccess) -> Disclose(UserOnlyDependency(NeedsUserAccountAccess), Critical)
        UserOnly(NeedsUserArtifact) -> Disclose(UserOnlyDependency(NeedsUserArtifact), Critical)
        UserOnly(NeedsUserChoice) -> Disclose(UserOnlyDependency(NeedsUserChoice), Critical)
        UserOnly(NeedsUserApproval) -> Disclose(UserOnlyDependency(NeedsUserApproval), Critical)
        UserOnly(NeedsUserEnvironmentAction) -> Disclose(UserOnlyDependency(NeedsUserEnvironmentAction), Critical)
        Contract(MissingRequiredOutput) -> Disclose(ContractViolation(MissingRequiredOutput), Critical)
        Contract(InvalidRequiredOutput) -> Disclose(ContractViolation(InvalidRequiredOutput), Critical)
        Capability(RequiredCapabilityUnknown) -> Disclose(CapabilityMissing(RequiredCapabilityUnknown), Critical)
        Capability(RequiredCapabilityUnavailable) -> Disclose(CapabilityMissing(RequiredCapabilityUnavailable), Critical)
        Unexpected(InvariantViolation) -> Fail(Unexpected(InvariantViolation), Critical)
        Unexpected(StorageCorruptionDetected) -> Fail(Unexpected(StorageCorruptionDetected), Critical)
        ");
    }

    #[test]
    fn reasons_are_written_as_category_and_detail() {
        let written = |reason: &Reason| {
            let gap = serde_json::to_string(&reason.gap_reason()).unwrap();
            let code = serde_json::to_string(&reason.blocker_code()).unwrap();
            format!("{gap} {code}\n")
        };
        assert_snapshot!(Reason::ALL.iter().map(written).collect::<String>(), @r#"
        {"category":"user_only_dependency","detail":"needs_user_secret_or_token"} "USER_ONLY_DEPENDENCY"
        {"category":"user_only_dependency","detail":"needs_user_account_access"} "USER_ONLY_DEPENDENCY"
        {"category":"user_only_dependency","detail":"needs_user_artifact"} "USER_ONLY_DEPENDENCY"
        {"category":"user_only_dependency","detail":"needs_user_choice"} "USER_ONLY_DEPENDENCY"
        {"category":"user_only_dependency","detail":"needs_user_approval"} "USER_ONLY_DEPENDENCY"
        {"category":"user_only_dependency","detail":"needs_user_environment_action"} "USER_ONLY_DEPENDENCY"
        {"category":"contract_violation","detail":"missing_required_output"} "MISSING_REQUIRED_OUTPUT"
        {"category":"contract_violation","detail":"invalid_required_output"} "INVALID_REQUIRED_OUTPUT"
        {"category":"capability_missing","detail":"required_capability_unknown"} "REQUIRED_CAPABILITY_UNKNOWN"
        {"category":"capability_missing","detail":"required_capability_unavailable"} "REQUIRED_CAPABILITY_UNAVAILABLE"
        {"category":"unexpected","detail":"invariant_violation"} "INVARIANT_VIOLATION"
        {"category":"unexpected","detail":"storage_corruption_detected"} "STORAGE_CORRUPTION_DETECTED"
        "#);
    }
}
