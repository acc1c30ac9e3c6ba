//! What can be switched on for a whole workflow.

/// Lines that go into the blocks of every prompt that has blocks.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// What workflows name it by.
    pub id: &'static str,
    /// What it is good for.
    pub purpose: &'static str,
    /// Added to the constraints.
    pub constraints: &'static [&'static str],
    /// Added to what is verified.
    pub verify: &'static [&'static str],
}

/// Every feature, in alphabetical order.
pub const FEATURES: &[Feature] = &[
    Feature {
        id: "wr.features.capabilities",
        purpose: "the agent finds out what it can do before it relies on it",
        constraints: &[
            "Rely on web browsing or on subagents only after you have tried them in this run; when one is missing, take the slower way and say so in your notes.",
        ],
        verify: &[],
    },
    Feature {
        id: "wr.features.memory_context",
        purpose: "the agent uses the memory tools it has",
        constraints: &[
            "If you have tools for long-term memory, look there for earlier decisions on this subject before you begin, and keep what a later run would want to know.",
        ],
        verify: &[],
    },
    Feature {
        id: "wr.features.subagent_guidance",
        purpose: "the agent hands out work without handing over the decision",
        constraints: &[
            "To hand out work, start subagents with your own tool for that, never by starting another workflow run; start those that do not need each other in one go.",
            "Give each subagent everything it needs in its instructions: it sees nothing of this run.",
            "What a subagent reports is evidence. The conclusion is yours, and so is checking what it rests on.",
        ],
        verify: &["Each subagent's claim that you rely on was checked against its source."],
    },
];
