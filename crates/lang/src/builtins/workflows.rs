//! Workflows that come with the program.

use crate::ids::SourceKind;
use crate::source::SourceTree;

/// A workflow that comes with the program.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Bundled {
    pub path: &'static str,
    pub text: &'static str,
}

/// Every such workflow, in alphabetical order.
pub const WORKFLOWS: &[Bundled] = &[
    Bundled {
        path: "bug-investigation.yaml",
        text: include_str!("workflows/bug-investigation.yaml"),
    },
    Bundled { path: "code-review.yaml", text: include_str!("workflows/code-review.yaml") },
    Bundled { path: "documentation.yaml", text: include_str!("workflows/documentation.yaml") },
    Bundled {
        path: "feature-implementation.yaml",
        text: include_str!("workflows/feature-implementation.yaml"),
    },
    Bundled { path: "incident-review.yaml", text: include_str!("workflows/incident-review.yaml") },
    Bundled { path: "quick-task.yaml", text: include_str!("workflows/quick-task.yaml") },
];

/// The workflows that come with the program, as a source.
#[must_use]
pub fn bundled() -> SourceTree {
    let file = |file: &Bundled| (file.path.to_owned(), file.text.as_bytes().to_vec());
    SourceTree {
        kind: SourceKind::Bundled,
        files: WORKFLOWS.iter().map(file).collect(),
        library: Default::default(),
    }
}

#[cfg(test)]
mod tests;
