//! What the compiler knows of the step types.

use cairn_core::catalog::StepType;
use cairn_lang::graph;

/// The step type with this name.
#[expect(clippy::expect_used, reason = "a test goes through all of them")]
pub(crate) fn of(name: &str) -> StepType {
    graph::standard().get(name).cloned().expect("a step type that the compiler knows")
}
