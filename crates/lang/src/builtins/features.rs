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
            "Try web browsing and subagents before you rely on them; where one is missing, take the slower way and note it.",
        ],
        verify: &[],
    },
    Feature {
        id: "wr.features.memory_context",
        purpose: "the agent uses the memory tools it has",
        constraints: &[
            "With tools for long-term memory, look up earlier decisions first, and keep what a later run needs.",
        ],
        verify: &[],
    },
    Feature {
        id: "wr.features.subagent_guidance",
        purpose: "the agent hands out work without handing over the decision",
        constraints: &[
            "Hand out work with your own tool for subagents, never by starting a run; what is independent, in one go.",
            "A subagent sees nothing of this run: its instructions hold all it needs.",
            "What a subagent reports is evidence; check it, and conclude yourself.",
        ],
        verify: &["Each claim of a subagent's that you rely on was checked at its source."],
    },
];
