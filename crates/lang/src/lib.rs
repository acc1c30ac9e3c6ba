//! Workflow sources in, plans and diagnostics out.
//!
//! Compiling is a function of its arguments: nothing here reads a file, a clock or a
//! random number. What is wrong with a source is data, with a line and a remedy.
//!
//! In reading order: texts with positions ([`source`]), what is said about them
//! ([`diagnostic`]), names ([`ids`]), what every workflow may use ([`builtins`]), and the
//! dialects: [`guided`] and [`graph`]. [`edit`] changes a source and keeps what it does not name.

pub mod builtins;
pub mod diagnostic;
pub mod edit;
pub mod graph;
pub mod guided;
pub mod ids;
mod read;
pub mod source;

use cairn_core::plan::Plan;

use crate::diagnostic::Diagnostic;

/// A workflow that compiled.
#[derive(Clone, PartialEq, Debug)]
pub struct Compiled {
    /// What it compiled to.
    pub plan: Plan,
    /// What is worth a look all the same, in order of the source.
    pub warnings: Vec<Diagnostic>,
}
