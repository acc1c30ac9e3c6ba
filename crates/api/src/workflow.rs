//! Workflows as doors show them: what there is, and what is wrong with a source.

use cairn_lang::diagnostic::{self, Severity};
use serde::Serialize;

/// One thing that is wrong with a source, or worth a look.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
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

/// How many errors there are, in words.
pub(crate) fn count(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error.name()).count();
    if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") }
}
