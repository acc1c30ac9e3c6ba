//! Workflow sources in, plans and diagnostics out.
//!
//! Compiling is a function of its arguments: nothing here reads a file, a clock or a
//! random number. What is wrong with a source is data, with a line and a remedy.
//!
//! In reading order: texts with positions ([`source`]), what is said about them
//! ([`diagnostic`]), names ([`ids`]), what every workflow may use ([`builtins`]), and the
//! dialects: [`guided`] and [`graph`]. [`compile`] reads a workflow of any of them. [`edit`]
//! changes a source and keeps what it does not name.

pub mod builtins;
pub mod diagnostic;
pub mod edit;
pub mod graph;
pub mod guided;
pub mod ids;
mod read;
pub mod source;

use cairn_core::catalog::Catalog;
use cairn_core::plan::{Dialect, Plan};

use crate::builtins::Builtins;
use crate::diagnostic::Diagnostic;
use crate::source::{Node, SourceTree};

/// A workflow that compiled.
#[derive(Clone, PartialEq, Debug)]
pub struct Compiled {
    /// What it compiled to.
    pub plan: Plan,
    /// What is worth a look all the same, in order of the source.
    pub warnings: Vec<Diagnostic>,
}

/// What workflows are compiled against.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The types of steps and triggers.
    pub types: &'a Catalog,
    /// What every guided workflow may use.
    pub builtins: &'a Builtins,
}

/// How one dialect is told from the others, and compiled.
struct FrontEnd {
    dialect: Dialect,
    /// Whether a document looks like such a workflow, right or wrong.
    is_workflow: fn(&Node) -> bool,
    /// Whether whoever wrote a document had such a workflow in mind.
    is_meant: fn(&Node) -> bool,
    compile: fn(&SourceTree, &str, Known<'_>) -> Result<Compiled, Vec<Diagnostic>>,
}

/// Every dialect. A document is of the first that it is meant for, and else of the last.
const FRONT_ENDS: [FrontEnd; 2] = [
    FrontEnd {
        dialect: Dialect::Graph,
        is_workflow: graph::is_workflow,
        is_meant: graph::is_meant,
        compile: |tree, path, known| graph::compile(tree, path, known.types),
    },
    FrontEnd {
        dialect: Dialect::Guided,
        is_workflow: guided::is_workflow,
        is_meant: guided::is_workflow,
        compile: |tree, path, known| guided::compile(tree, path, known.builtins),
    },
];

fn front_end(document: Option<&Node>) -> &'static FrontEnd {
    let [.., last] = &FRONT_ENDS;
    let is_meant = |front: &&FrontEnd| document.is_some_and(front.is_meant);
    FRONT_ENDS.iter().find(is_meant).unwrap_or(last)
}

/// Whether a document looks like a workflow, right or wrong.
#[must_use]
pub fn is_workflow(document: &Node) -> bool {
    FRONT_ENDS.iter().any(|front| (front.is_workflow)(document))
}

/// The dialect that a document is read in; one that cannot be read is of the usual one.
#[must_use]
pub fn dialect_of(document: Option<&Node>) -> Dialect {
    front_end(document).dialect
}

/// Compiles the workflow at `path`, in the dialect that its document is meant for.
///
/// The same tree gives the same plan. When it does not compile, everything that is wrong
/// is told at once, warnings included.
pub fn compile(
    tree: &SourceTree,
    path: &str,
    known: Known<'_>,
) -> Result<Compiled, Vec<Diagnostic>> {
    let document = tree.files.get(path).and_then(|bytes| source::parse(path, bytes).ok());
    (front_end(document.as_ref()).compile)(tree, path, known)
}
