//! Steps that a call stands for.

use cairn_core::guided::probe;

/// Templates whose steps are those of a routine: the rest of the id names it.
///
/// A routine is a workflow `<namespace>.routine-<name>` of the same source or a bundled one.
pub const ROUTINES: &str = "wr.templates.routine.";

/// A template that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// What calls name it by.
    pub id: &'static str,
    /// What it is good for.
    pub purpose: &'static str,
    /// The arguments it needs.
    pub arguments: &'static [&'static str],
    /// Its step's title; `{name}` stands for an argument here and below.
    pub title: &'static str,
    /// Its step's prompt.
    pub prompt: &'static str,
    /// The contract that its step's output is under.
    pub contract: &'static str,
}

/// Every template, in alphabetical order.
pub const TEMPLATES: &[Template] = &[
    Template {
        id: probe::TEMPLATE,
        purpose: "finds out whether a capability is there before anything relies on it",
        arguments: &["capability"],
        title: "Try {capability}",
        prompt: "Find out whether you can use the capability `{capability}` here, by the smallest real use of it: for web_browsing fetch one short page, for delegation start one subagent that answers with a word. Report what came of it; do nothing else in this step.",
        contract: "wr.contracts.capability_observation",
    },
    Template {
        id: "wr.templates.gate",
        purpose: "has somebody other than the author judge whether the work may pass",
        arguments: &["subject"],
        title: "Gate: {subject}",
        prompt: "Judge whether {subject} may pass, as somebody who did not make it. Look at the work itself and not at what was said about it, name the evidence for your verdict, and say `uncertain` when the evidence does not decide.",
        contract: "wr.contracts.gate_verdict",
    },
];
