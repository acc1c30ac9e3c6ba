//! What outputs can be held to.

use super::shape::{ContractPack, Field, Shape};

const fn must(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, about, required: true, shape, example: None }
}

const fn may(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, about, required: false, shape, example: None }
}

/// What the version of an artifact's shape is for.
const VERSION: &str = "the version of this shape: 1";

const CONFIDENCE: Shape = Shape::OneOf(&["high", "medium", "low"]);

/// Every contract, in alphabetical order.
pub const CONTRACTS: &[ContractPack] = &[
    ContractPack {
        id: "wr.contracts.assessment",
        kind: "wr.assessment",
        purpose: "your judgement, dimension by dimension",
        fields: &[
            must("assessmentId", Shape::Text, "the assessment that is answered"),
            must(
                "dimensions",
                Shape::Open,
                "for each dimension its level, or `{level, rationale}`",
            )
            .such_as(r#"{"<dimension>": "<one of its levels>"}"#),
            may("summary", Shape::Text, "the judgement in a sentence"),
            may(
                "acceptedByUser",
                Shape::Text,
                "what the user said, when they accept a level that asks for more work",
            ),
        ],
    },
    ContractPack {
        id: "wr.contracts.capability_observation",
        kind: "wr.capability_observation",
        purpose: "whether a capability is there, as you found by trying it",
        fields: &[
            must("capability", Shape::OneOf(&["delegation", "web_browsing"]), "what was tried"),
            must("status", Shape::OneOf(&["available", "unavailable"]), "what came of it"),
            may("detail", Shape::Text, "what you did and saw"),
            may("remediation", Shape::Text, "what would make it available"),
        ],
    },
    ContractPack {
        id: "wr.contracts.coding_handoff",
        kind: "wr.coding_handoff",
        purpose: "what was built, for whoever goes on from here",
        fields: &[
            must("keyDecisions", Shape::Texts, "a decision and its reason"),
            must("knownLimitations", Shape::Texts, "something left undone"),
            must("testsAdded", Shape::Texts, "a test"),
            must("filesChanged", Shape::Texts, "a path"),
            may("branchName", Shape::Text, "the branch it is on"),
            may(
                "correctedAssumptions",
                Shape::Maps(&[
                    must("assumed", Shape::Text, "what was assumed"),
                    must("actual", Shape::Text, "what turned out to be so"),
                ]),
                "what turned out to be otherwise",
            ),
            may("version", Shape::Whole, VERSION),
        ],
    },
    ContractPack {
        id: "wr.contracts.discovery_handoff",
        kind: "wr.discovery_handoff",
        purpose: "what was found out, for whoever goes on from here",
        fields: &[
            must("selectedDirection", Shape::Text, "the direction that was chosen"),
            must("designDocPath", Shape::Text, "where it is written down"),
            must("confidenceBand", CONFIDENCE, "how sure you are"),
            must("keyInvariants", Shape::Texts, "something that must stay true"),
            may(
                "rejectedDirections",
                Shape::Maps(&[
                    must("direction", Shape::Text, "a direction"),
                    must("reason", Shape::Text, "why not"),
                ]),
                "what was not chosen",
            ),
            may("implementationConstraints", Shape::Texts, "something the builder must respect"),
            may(
                "keyCodebaseLocations",
                Shape::Maps(&[
                    must("path", Shape::Text, "a path"),
                    must("relevance", Shape::Text, "why it matters"),
                ]),
                "where to look",
            ),
            may("selectionTier", Shape::Text, "how the direction was chosen"),
            may("version", Shape::Whole, VERSION),
        ],
    },
    ContractPack {
        id: "wr.contracts.gap_resolution",
        kind: "wr.gap_resolution",
        purpose: "that a gap on record is closed, and what shows it",
        fields: &[
            must("gapId", Shape::Text, "the gap, as its warning names it"),
            must("evidence", Shape::Text, "what shows that it is closed"),
        ],
    },
    ContractPack {
        id: "wr.contracts.gate_verdict",
        kind: "wr.gate_verdict",
        purpose: "whether the work may pass",
        fields: &[
            must("verdict", Shape::OneOf(&["approved", "rejected", "uncertain"]), "the answer"),
            must("rationale", Shape::LongText(20), "why, with the evidence"),
            must("confidence", CONFIDENCE, "how sure you are"),
            may("stepId", Shape::Text, "the step that was judged"),
            may("version", Shape::Whole, VERSION),
        ],
    },
    ContractPack {
        id: "wr.contracts.loop_control",
        kind: "wr.loop_control",
        purpose: "whether the loop goes round again",
        fields: &[
            must("decision", Shape::OneOf(&["continue", "stop"]), "the answer"),
            may("loopId", Shape::Text, "the loop that is meant"),
            may("summary", Shape::Text, "why"),
            may("metadata", Shape::Open, "figures behind the answer"),
        ],
    },
    ContractPack {
        id: "wr.contracts.review_verdict",
        kind: "wr.review_verdict",
        purpose: "the outcome of a review",
        fields: &[
            must(
                "verdict",
                Shape::OneOf(&["clean", "minor", "blocking"]),
                "the gravest finding decides: blocking when it is critical or major, minor when \
                 it is minor, clean when there are only nits or none",
            )
            .such_as("\"blocking\""),
            must("confidence", CONFIDENCE, "how sure you are"),
            must("findings", Shape::Maps(FINDING), "what was found, or nothing"),
            must("summary", Shape::Text, "the outcome in a sentence"),
        ],
    },
    ContractPack {
        id: "wr.contracts.shaping_handoff",
        kind: "wr.shaping_handoff",
        purpose: "the shape of a piece of work, for whoever builds and reviews it",
        fields: &[
            must("pitchPath", Shape::Text, "where it is written down"),
            must("selectedShape", Shape::Text, "the solution in a sentence"),
            must("appetite", Shape::Text, "how much time it is worth"),
            must("keyConstraints", Shape::Texts, "something the builder must respect"),
            must("rabbitHoles", Shape::Texts, "a trap to stay out of"),
            must("outOfScope", Shape::Texts, "something that is ruled out"),
            must("validationChecklist", Shape::Texts, "something a reviewer can verify"),
            may("version", Shape::Whole, VERSION),
        ],
    },
    ContractPack {
        id: USER_DEPENDENCY,
        kind: "wr.user_dependency",
        purpose: "what nobody but the user can give or decide",
        fields: &[
            must("dependency", Shape::OneOf(DEPENDENCY), "what is needed"),
            must("summary", Shape::Text, "what exactly, and what it is needed for"),
            may("choiceKind", Shape::OneOf(CHOICE), "for a choice, of which kind it is"),
            may("key", Shape::Name, "the key of the context that is missing"),
        ],
    },
    ContractPack {
        id: "wr.contracts.workflow_divergence",
        kind: "wr.workflow_divergence",
        purpose: "where you left the procedure on purpose",
        fields: &[
            must("reason", Shape::OneOf(DIVERGENCE), "what made you"),
            must("summary", Shape::Text, "what you did instead"),
            may("relatedStepId", Shape::Text, "the step that is meant"),
        ],
    },
];

/// The contract under which an agent says what it needs of the user.
pub const USER_DEPENDENCY: &str = "wr.contracts.user_dependency";

const DEPENDENCY: &[&str] = &[
    "needs_user_secret_or_token",
    "needs_user_account_access",
    "needs_user_artifact",
    "needs_user_choice",
    "needs_user_approval",
    "needs_user_environment_action",
];

const CHOICE: &[&str] = &[
    "preference_tradeoff",
    "scope_boundary",
    "irreversible_action",
    "external_side_effect",
    "policy_or_compliance",
];

const DIVERGENCE: &[&str] = &[
    "missing_user_context",
    "capability_unavailable",
    "efficiency_skip",
    "safety_stop",
    "policy_constraint",
];

const FINDING: &[Field] = &[
    must("severity", Shape::OneOf(&["critical", "major", "minor", "nit"]), "how grave it is"),
    must("summary", Shape::Text, "the finding in a line"),
    may("findingCategory", Shape::Text, "such as correctness, security or testing"),
    may("file", Shape::Text, "where it is"),
    may("startLine", Shape::Whole, "its first line"),
    may("endLine", Shape::Whole, "its last line"),
    may("causalLink", Shape::Text, "how the change brought it about"),
    may("remediation", Shape::Text, "the smallest fix"),
];
