//! Preferences, and who changed them.

use serde::{Deserialize, Serialize};

use crate::id::ChangeId;

/// The preferences at a node were changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreferencesChanged {
    /// The change's own id.
    pub change_id: ChangeId,
    /// What changed.
    pub delta: Vec<PreferenceChange>,
    /// All preferences after the change.
    pub effective: Preferences,
    /// Who changed them.
    pub source: PreferenceSource,
}

/// One changed preference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "key", content = "value", rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub enum PreferenceChange {
    Autonomy(Autonomy),
    RiskPolicy(RiskPolicy),
}

/// All preferences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preferences {
    /// When to stop for a person.
    pub autonomy: Autonomy,
    /// How much risk to take between correct paths.
    pub risk_policy: RiskPolicy,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { autonomy: Autonomy::Guided, risk_policy: RiskPolicy::Conservative }
    }
}

/// When a run stops for a person; a later one stops less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Autonomy {
    Guided,
    FullAutoStopOnUserDeps,
    FullAutoNeverStop,
}

impl Autonomy {
    /// The name that people and clients see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guided => "guided",
            Self::FullAutoStopOnUserDeps => "full_auto_stop_on_user_deps",
            Self::FullAutoNeverStop => "full_auto_never_stop",
        }
    }
}

/// How much risk to take; a later one takes more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum RiskPolicy {
    Conservative,
    Balanced,
    Aggressive,
}

impl RiskPolicy {
    /// The name that people and clients see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conservative => "conservative",
            Self::Balanced => "balanced",
            Self::Aggressive => "aggressive",
        }
    }
}

/// Who changed preferences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PreferenceSource {
    User,
    WorkflowRecommendation,
    System,
}
