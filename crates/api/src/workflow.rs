//! Workflows as doors show them: what there is, and what is wrong with a source.

mod capabilities;

pub use capabilities::Capabilities;

use cairn_engine::catalog::Found;
use cairn_lang::diagnostic::{self, Severity};
use cairn_lang::ids::{self, IdStatus};
use schemars::JsonSchema;
use serde::Serialize;

/// One thing that is wrong with a source, or worth a look.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// A stable name.
    pub code: &'static str,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// The file, from the root of its source.
    pub path: String,
    /// Counts from 1.
    pub line: u32,
    /// Counts characters from 1.
    pub column: u32,
    /// Where it is in the document, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl From<&diagnostic::Diagnostic> for Diagnostic {
    fn from(found: &diagnostic::Diagnostic) -> Self {
        Self {
            code: found.code.name(),
            severity: found.severity.name(),
            path: found.path.clone(),
            line: found.line,
            column: found.column,
            pointer: found.pointer.clone(),
            message: found.message.clone(),
            suggestion: found.suggestion.clone(),
        }
    }
}

/// A workflow in a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Its id.
    pub workflow_id: String,
    /// `namespaced` or `legacy`.
    pub id_status: &'static str,
    /// Its id, when it was asked for by an old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_id: Option<String>,
    /// The id that one without a namespace should get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_id: Option<String>,
    /// Its name for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// `bundled`, `user`, `project`, `remote` or `plugin`.
    pub source_kind: &'static str,
    /// Its file.
    pub path: String,
    /// How many steps it has.
    pub steps: usize,
    /// The name of its plan; none when it does not compile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_hash: Option<String>,
    /// How many mistakes keep it from compiling.
    pub errors: usize,
}

impl Summary {
    /// The summary of a workflow. A suggested id is none of `taken`.
    #[must_use]
    pub fn of(found: &Found, taken: &[&str]) -> Self {
        let plan = found.outcome.as_ref().ok().map(|compiled| &compiled.plan);
        let status = ids::check(&found.id, found.kind).unwrap_or(IdStatus::Legacy);
        let suggested = || ids::suggest(&found.id, found.kind, &found.bytes, taken);
        let errors = found.outcome.as_ref().err().map(Vec::as_slice).unwrap_or_default();
        Self {
            workflow_id: found.id.clone(),
            id_status: status.name(),
            canonical_id: found.alias.as_ref().map(|_| found.id.clone()),
            suggested_id: (status == IdStatus::Legacy).then(suggested),
            name: plan.map(|plan| plan.name.clone()).unwrap_or_default(),
            description: plan.map(|plan| plan.description.clone()).unwrap_or_default(),
            source_kind: found.kind.name(),
            path: found.path.display().to_string(),
            steps: plan.map(|plan| plan.steps.len()).unwrap_or_default(),
            workflow_hash: plan.and_then(|plan| plan.hash().ok()).map(|hash| hash.to_string()),
            errors: errors.iter().filter(|found| found.severity == Severity::Error).count(),
        }
    }
}
