//! What a guided workflow tells agents and people beside its steps.

use serde::{Deserialize, Serialize};

/// What a guided workflow tells agents and people beside its steps.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guide {
    /// An overview for people who choose a workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Judgements that steps ask for, by id.
    pub assessments: Vec<Assessment>,
    /// Questions to settle at the beginning, in order.
    pub clarifications: Vec<String>,
    /// Goals that the workflow serves, in order.
    pub examples: Vec<String>,
    /// The strength of model that suits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_tier: Option<ModelTier>,
    /// What must be so before it begins, in order.
    pub preconditions: Vec<String>,
    /// Documents to read, in order.
    pub references: Vec<Reference>,
    /// Rules that hold throughout, in order.
    pub rules: Vec<String>,
}

/// A judgement in several respects.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Assessment {
    /// What is judged, in order.
    pub dimensions: Vec<Dimension>,
    /// Its name.
    pub id: String,
    /// What it is for.
    pub purpose: String,
}

/// One respect of a judgement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dimension {
    /// Its name.
    pub id: String,
    /// The answers there are, in order.
    pub levels: Vec<String>,
    /// What it is about.
    pub purpose: String,
    /// Whether a judgement must speak of it.
    pub required: bool,
}

/// How strong a model should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ModelTier {
    Lightweight,
    Mid,
    Heavy,
}

/// A document to read. Its content is not part of the plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reference {
    /// Whether it is to be followed strictly.
    pub authoritative: bool,
    /// Its name.
    pub id: String,
    /// Why it matters.
    pub purpose: String,
    /// Where its path begins.
    pub resolve_from: ResolveFrom,
    /// Its path.
    pub source: String,
    /// Its name for people.
    pub title: String,
}

/// Where a document's path begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolveFrom {
    /// The project that the agent works on.
    Workspace,
    /// The folder that the workflow came from.
    Package,
}
