//! The plan: a workflow compiled to one self-contained, immutable value.
//!
//! All four dialects compile to it. Its name is the digest of its canonical JSON, so it
//! holds everything that decides how a run goes and nothing of where or when it runs.
//! Fields stand in the order of their names on the wire, which is the canonical order.

mod check;
pub mod cycle;
mod env;
mod guide;
mod prompt;
mod repeat;
mod step;
mod widget;

pub use check::{Invalid, limits};
pub use env::{DataTable, EnvField, TableAccess, VisibleWhen};
pub use guide::{Assessment, Dimension, Guide, ModelTier, Reference, ResolveFrom};
pub use prompt::{Check, Consequence, ContextKey, Fragment, InjectedText, Prompt};
pub use repeat::{Loop, LoopVariables, Repeat};
pub use step::{
    Action, Backoff, Confirmation, ConfirmedBy, FailureKind, OnFailure, OnInterrupt, Origin,
    OutputContract, RetryPolicy, Step, StepSource,
};

use serde::{Deserialize, Serialize};

use crate::canonical::{self, StrictValue};
use crate::digest::{Digest, WorkflowHash};
use crate::event::guided::{Autonomy, Capability, RiskPolicy};
use crate::text::Slug;

/// The version of the plan's shape.
pub const VERSION: u64 = 1;

/// A compiled workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// The stance that an agent takes throughout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_role: Option<String>,
    /// Files that steps use, by path.
    pub assets: Vec<Asset>,
    /// The plan it was derived from, when it is a patched one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub based_on: Option<WorkflowHash>,
    /// What the procedure needs of an agent, by capability.
    pub capabilities: Vec<CapabilityNeed>,
    /// Conditions that steps, edges and loops refer to, by id.
    pub conditions: Vec<Condition>,
    /// What outputs must look like, by reference.
    pub contracts: Vec<Contract>,
    /// Data tables that steps use, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_tables: Vec<DataTable>,
    /// What the workflow is for.
    pub description: String,
    /// The language it was written in.
    pub dialect: Dialect,
    /// What follows what. Edges of one step are tried in this order.
    pub edges: Vec<Edge>,
    /// The steps and loops at which a run begins, unless its trigger names another.
    pub entry: Vec<Slug>,
    /// Settings that the workflow asks for, by name.
    pub env: Vec<EnvField>,
    /// Features that were applied, by id.
    pub features: Vec<Feature>,
    /// Instructions that steps refer to by name, by scope and name.
    pub functions: Vec<Function>,
    /// What a guided workflow tells agents and people beside its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide: Option<Guide>,
    /// Loops, by id.
    pub loops: Vec<Loop>,
    /// The workflow's name for people.
    pub name: String,
    /// Limits on runs.
    pub policy: Policy,
    /// The preferences that the author recommends.
    pub recommendations: Recommendations,
    /// Always [`VERSION`].
    pub schema_version: u64,
    /// The steps, as they were written.
    pub steps: Vec<Step>,
    /// Words to find it by, in order.
    pub tags: Vec<String>,
    /// What starts runs, by id.
    pub triggers: Vec<Trigger>,
    /// The author's version of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the compiler wants a person to know.
    pub warnings: Vec<Warning>,
    /// The workflow's id, such as `project.triage`.
    pub workflow_id: String,
}

/// The languages that workflows are written in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Dialect {
    Guided,
    Graph,
    Roles,
    Steps,
}

impl Dialect {
    /// The name that people and clients see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guided => "guided",
            Self::Graph => "graph",
            Self::Roles => "roles",
            Self::Steps => "steps",
        }
    }

    /// Who moves the runs of such workflows forward.
    #[must_use]
    pub const fn mode(self) -> Mode {
        match self {
            Self::Guided => Mode::Guided,
            Self::Graph | Self::Roles | Self::Steps => Mode::Performed,
        }
    }
}

/// Who moves the runs of a plan forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// An agent is led through it, one step at a time.
    Guided,
    /// The engine interprets it and performs its steps, or hands them to others.
    Performed,
}

/// A file that belongs to the workflow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Asset {
    pub path: String,
    pub sha256: Digest,
}

/// How much a capability matters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct CapabilityNeed {
    pub capability: Capability,
    pub need: Need,
}

/// How much something matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Need {
    Required,
    Preferred,
    Disabled,
}

impl Need {
    /// The name that people and clients see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Preferred => "preferred",
            Self::Disabled => "disabled",
        }
    }
}

/// Something that holds or does not.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Condition {
    /// Its particulars, as its type asks for them.
    pub config: StrictValue,
    /// Its name in the plan.
    pub id: Slug,
    /// The kind of condition.
    pub r#type: Slug,
}

/// What an output must look like.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Contract {
    /// The kind that an artifact under this contract names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_kind: Option<String>,
    /// An output that satisfies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<StrictValue>,
    /// Its name.
    pub r#ref: String,
    /// Its JSON schema.
    pub schema: StrictValue,
}

/// One step may follow another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edge {
    /// The outcome on which it is taken; without one it is taken on every outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The condition under which it is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Slug>,
    /// The earlier step or loop.
    pub from: Slug,
    /// The later one.
    pub to: Slug,
}

/// A feature that the compiler applied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Feature {
    pub config: StrictValue,
    pub id: String,
}

/// Instructions with a name, so that several steps can refer to them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Function {
    /// The instructions.
    pub definition: String,
    /// Their name.
    pub name: String,
    /// Where the name is known.
    pub scope: FunctionScope,
}

/// Where a function's name is known, nearest first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FunctionScope {
    Step { step_id: Slug },
    Loop { loop_id: Slug },
    Workflow {},
}

/// Limits on runs. What is left out is the installation's default.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// How many runs may be under way at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<u32>,
    /// How long a run may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_max_ms: Option<u64>,
    /// The workflow that is started when a run fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_workflow_id: Option<String>,
    /// The hosts that `http` steps may ask, such as `api.example.com` or `*.example.com`; without
    /// a list, all in the public network. An empty list is none at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// How many runs may start in a span of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// How long runs are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// How many runs may start in a span of time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RateLimit {
    pub per_ms: u64,
    pub runs_max: u32,
}

/// How long runs are kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Retention {
    pub failed_days: u32,
    pub runs_max: u32,
    pub succeeded_days: u32,
}

/// The preferences that the author recommends; going beyond them is a warning.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Recommendations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_policy: Option<RiskPolicy>,
}

/// What starts runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trigger {
    /// Its particulars, as its type asks for them.
    pub config: StrictValue,
    /// Where its runs begin, when not at the plan's entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Slug>,
    /// Its name in the plan.
    pub id: Slug,
    /// What becomes of a firing over a limit of the workflow. When nothing is said, it waits for
    /// others to end, and is refused when too many began lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// The kind of trigger.
    pub r#type: Slug,
}

/// What becomes of a firing over a limit of its workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Nothing, and whoever caused it need not know.
    Drop,
    /// Its run waits until it may begin.
    Queue,
    /// Whoever caused it is refused.
    Reject,
}

impl Overflow {
    /// Each of them, with its name.
    pub const ALL: [(&'static str, Self); 3] =
        [("drop", Self::Drop), ("queue", Self::Queue), ("reject", Self::Reject)];
}

/// Something the compiler wants a person to know.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Warning {
    /// A stable name.
    pub code: Slug,
    /// What it is about.
    pub detail: StrictValue,
}

/// Why bytes are not a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A later version wrote it.
    #[error("the plan is of version {0}; this program reads version {VERSION}")]
    UnknownVersion(u64),
    /// It contradicts itself.
    #[error("the plan breaks a rule: {0}")]
    Invalid(#[from] Invalid),
    /// The same plan has another spelling, and so another hash.
    #[error("the plan is not in canonical form")]
    NotCanonical,
    /// Anything else.
    #[error("not a plan: {0}")]
    Malformed(String),
}

impl Plan {
    /// The plan's name: the digest of its canonical JSON.
    pub fn hash(&self) -> Result<WorkflowHash, canonical::Error> {
        canonical::digest(self).map(WorkflowHash)
    }

    /// The plan's canonical JSON.
    pub fn encode(&self) -> Result<Vec<u8>, canonical::Error> {
        canonical::to_vec(self)
    }

    /// Reads a plan. Only canonical bytes are taken, so that their digest is its hash.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let malformed = |text: String| DecodeError::Malformed(text);
        let StrictValue(value) = canonical::parse(bytes).map_err(|e| malformed(e.to_string()))?;
        match value.get("schemaVersion").and_then(serde_json::Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => return Err(DecodeError::UnknownVersion(other)),
            None => return Err(malformed("it has no schemaVersion".into())),
        }
        let plan = Self::deserialize(value).map_err(|e| malformed(e.to_string()))?;
        plan.check()?;
        if plan.encode().is_ok_and(|canonical| canonical == bytes) {
            Ok(plan)
        } else {
            Err(DecodeError::NotCanonical)
        }
    }

    /// Reads a plan that is already JSON, as a bundle holds it.
    pub fn from_value(value: &StrictValue) -> Result<Self, DecodeError> {
        let bytes = canonical::to_vec(value).map_err(|e| DecodeError::Malformed(e.to_string()))?;
        Self::decode(&bytes)
    }

    /// Who moves its runs forward.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.dialect.mode()
    }

    /// The step with this id.
    #[must_use]
    pub fn step(&self, id: &Slug) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == *id)
    }

    /// The loop with this id.
    #[must_use]
    pub fn find_loop(&self, id: &Slug) -> Option<&Loop> {
        self.loops.iter().find(|found| found.id == *id)
    }
}

#[cfg(test)]
mod tests;
