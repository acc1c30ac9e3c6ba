//! Texts that prompts can take in.

/// A text with a name.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Ref {
    pub id: &'static str,
    pub text: &'static str,
}

/// Every text, in alphabetical order.
pub const REFS: &[Ref] = &[
    Ref {
        id: "wr.refs.adversarial_challenge_rules",
        text: "Argue against your own conclusion as somebody who wants it to be wrong: name the strongest objection, the evidence that would prove it, and go and look for that evidence. Keep the conclusion only if it survives, and write down what it survived.",
    },
    Ref {
        id: "wr.refs.autonomy_modes",
        text: "Under `guided`, ask the user where a step says so. Under `full_auto_stop_on_user_deps`, go on alone and stop only for what nobody but the user can give. Under `full_auto_never_stop`, never wait: decide, and state each assumption and gap.",
    },
    Ref {
        id: "wr.refs.evidence_before_claims",
        text: "Every claim names what it rests on: a file and line, a command and its output, or a quoted passage. A claim without that is marked as an assumption.",
    },
    Ref {
        id: "wr.refs.memory_query",
        text: "If you have a tool for long-term memory, ask it what is known about this subject before you begin: earlier decisions, conventions, and what went wrong last time. Treat the answers as leads to check, not as facts.",
    },
    Ref {
        id: "wr.refs.memory_store",
        text: "If you have a tool for long-term memory, keep what a later run would otherwise have to find out again: decisions with their reasons, conventions, and traps. Keep no secrets and nothing that only matters today.",
    },
    Ref {
        id: "wr.refs.notes_first_durability",
        text: "Your notes for this step are what lasts. Write them so that somebody who sees nothing else of this conversation can go on: what was found, what was decided and why, what is still open. Files you create are companions to the notes, not a substitute.",
    },
    Ref {
        id: "wr.refs.parallelize_cognition_serialize_synthesis",
        text: "Let independent questions be looked into side by side, but draw the conclusion in one place: gather all answers first, then weigh them together yourself. Do not let one answer steer another that should be independent of it.",
    },
    Ref {
        id: "wr.refs.synthesis_under_disagreement",
        text: "Where sources disagree, do not average and do not count votes. State each position with its evidence, say which evidence decides and why, and lower your confidence when nothing does.",
    },
];
