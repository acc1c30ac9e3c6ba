//! Old ids of workflows that are built in under another name.

/// An id that people and scripts may still use, and the one that it stands for now.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Alias {
    pub legacy: &'static str,
    pub canonical: &'static str,
}

const fn alias(legacy: &'static str, canonical: &'static str) -> Alias {
    Alias { legacy, canonical }
}

/// Every old id, in alphabetical order. Nothing is added for workflows that never had one.
pub const ALIASES: &[Alias] = &[
    alias("bug-investigation", "wr.bug-investigation"),
    alias("bug-investigation-agentic", "wr.bug-investigation"),
    alias("code-review", "wr.code-review"),
    alias("coding-task-workflow", "wr.feature-implementation"),
    alias("coding-task-workflow-agentic", "wr.feature-implementation"),
    alias("documentation-update-workflow", "wr.documentation"),
    alias("mr-review-workflow", "wr.code-review"),
    alias("mr-review-workflow-agentic", "wr.code-review"),
];

/// What an old id stands for now, if it is one.
#[must_use]
pub fn canonical(id: &str) -> Option<&'static str> {
    ALIASES.iter().find(|alias| alias.legacy == id).map(|alias| alias.canonical)
}
