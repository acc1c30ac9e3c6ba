//! What an agent is answered. Doors render it; nothing here is a wire format.

use cairn_core::event::guided::Preferences;
pub use cairn_core::guided::judge::{Accepted, AcceptedDimension};
use cairn_core::id::{NodeId, RunId, SessionId, TaskId};
use cairn_core::projection::resume::WhyMatched;
use cairn_core::reason::Blocker;
use serde_json::Value;

/// The answer to a call that starts, continues or comes back.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Which kind of call it answers; references come with some of them.
    pub lifecycle: Lifecycle,
    /// Why the run did not move; empty when it did, or was not asked to.
    pub blockers: Vec<Blocker>,
    /// The token for another try, when it did not move.
    pub retry_continue_token: Option<String>,
    /// The tokens for the step that is now pending.
    pub tokens: TokenSet,
    /// The run's readable label.
    pub label: String,
    /// The step to do; none when the run is over.
    pub pending: Option<Pending>,
    /// Whether the run is over.
    pub is_complete: bool,
    /// The only safe thing to do next.
    pub next_intent: NextIntent,
    /// Which run it is; on start and when coming back.
    pub session: Option<RunRef>,
    /// What holds now; on start, when coming back, and when it changed.
    pub preferences: Option<Preferences>,
    /// Facts about the step that was just done.
    pub step_context: Option<StepContext>,
    /// What is worth knowing and stops nothing.
    pub warnings: Vec<Warning>,
    /// What happened so far; when coming back.
    pub recap: Option<Recap>,
    /// What follows from the node already; when it is not a tip.
    pub branches: Vec<BranchSummary>,
    /// Documents that the workflow points at; on start and when coming back.
    pub references: Vec<Reference>,
    /// How the run goes, when the engine performs it and only hands over single steps.
    pub standing: Option<Standing>,
}

/// How a run goes that the engine performs.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// Where it stands, in one word.
    pub status: &'static str,
    /// What came out, once it has ended well.
    pub result: Option<Value>,
    /// What went wrong, when it failed.
    pub error: Option<RunError>,
    /// What it asks people.
    pub asks: Vec<Question>,
    /// How many steps wait for the agent beside the pending one.
    pub more: usize,
    /// The steps that the engine performs.
    pub doing: Vec<String>,
    /// The steps that were cut off and of which somebody has to decide.
    pub cut_off: Vec<String>,
}

/// Why a run failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RunError {
    pub code: String,
    pub message: String,
    /// The step at which it did.
    pub step: Option<String>,
}

/// What a run asks people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The step that asks.
    pub step: String,
    /// The question's own id.
    pub task: TaskId,
    /// What is asked.
    pub prompt: String,
    /// Who may answer; anybody who may run the workflow when it is empty.
    pub who: Vec<String>,
    /// The JSON schema of what is asked for besides yes or no.
    pub form: Option<Value>,
}

/// Which kind of call is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Lifecycle {
    Start,
    Advance,
    Rehydrate,
}

/// The tokens of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct TokenSet {
    pub continue_token: String,
    /// Of the long form where the long pair was asked for; none where no checkpoints are kept.
    pub checkpoint_token: Option<String>,
    /// `stateToken` and `ackToken`, when they were asked for.
    pub pair: Option<(String, String)>,
}

/// A step to do.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Pending {
    pub step_id: String,
    pub title: String,
    pub prompt: String,
    pub require_confirmation: bool,
    /// What the answer brings.
    pub asks: Asks,
    /// Whether the engine does it as soon as the run goes on, and nobody need say anything.
    pub is_owed: bool,
}

/// What the answer to a step brings, as the call is shown that says it is done.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Asks {
    /// What becomes of notes.
    pub notes: NotesAsked,
    /// One to fill in for each artifact that must come.
    pub artifacts: Vec<Value>,
    /// The keys of the context that the step sets, each with something that says what it may be.
    pub context: Vec<(String, String)>,
}

/// What becomes of notes that come with an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NotesAsked {
    /// There must be some.
    #[default]
    Required,
    /// They are recorded when they come.
    Optional,
    /// They are not recorded, so nobody is asked for some.
    NotRecorded,
}

/// The only safe thing to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub enum NextIntent {
    PerformPendingThenContinue,
    AwaitUserConfirmation,
    RehydrateOnly,
    Complete,
    /// The run is over, and did not succeed.
    Ended,
}

impl NextIntent {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerformPendingThenContinue => "perform_pending_then_continue",
            Self::AwaitUserConfirmation => "await_user_confirmation",
            Self::RehydrateOnly => "rehydrate_only",
            Self::Complete => "complete",
            Self::Ended => "ended",
        }
    }
}

/// Which run an answer is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RunRef {
    pub session: SessionId,
    pub run: RunId,
}

/// Facts about the step that was just done.
#[derive(Clone, PartialEq, Debug)]
pub struct StepContext {
    /// The judgements that were accepted, in order.
    pub assessments: Vec<Accepted>,
}

/// Something worth knowing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// What it is about.
    pub code: WarningCode,
    /// In words.
    pub message: String,
}

/// What a warning is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum WarningCode {
    Branched,
    CapabilityUnavailable,
    CheckpointBehind,
    CompleteWithGaps,
    ContextUnset,
    ForkRepeats,
    Forked,
    GapClosed,
    GapRecorded,
    GoalEmpty,
    LegacyWorkflowId,
    NotesNotKept,
    NotesTruncated,
    OutputUnread,
    PinnedDrift,
    PreferencesUnused,
    RecommendationExceeded,
    ReferenceUnresolved,
    ReplayedWithOtherInput,
    TokensCompactOnly,
    WorkspaceMissing,
}

impl WarningCode {
    /// The name on the wire; it never changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Branched => "branched",
            Self::CapabilityUnavailable => "capability_unavailable",
            Self::CheckpointBehind => "checkpoint_behind",
            Self::CompleteWithGaps => "complete_with_gaps",
            Self::ContextUnset => "context_unset",
            Self::ForkRepeats => "fork_repeats",
            Self::Forked => "forked",
            Self::GapClosed => "gap_closed",
            Self::GapRecorded => "gap_recorded",
            Self::GoalEmpty => "goal_empty",
            Self::LegacyWorkflowId => "legacy_workflow_id",
            Self::NotesNotKept => "notes_not_kept",
            Self::NotesTruncated => "notes_truncated",
            Self::OutputUnread => "output_unread",
            Self::PinnedDrift => "pinned_drift",
            Self::PreferencesUnused => "preferences_unused",
            Self::RecommendationExceeded => "recommendation_exceeded",
            Self::ReferenceUnresolved => "reference_unresolved",
            Self::ReplayedWithOtherInput => "replayed_with_other_input",
            Self::TokensCompactOnly => "tokens_compact_only",
            Self::WorkspaceMissing => "workspace_missing",
        }
    }
}

/// What happened so far, within a byte budget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recap {
    /// The whole, ready to show.
    pub text: String,
    /// How many earlier entries did not fit.
    pub omitted: usize,
}

/// One way that was gone from a node already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchSummary {
    /// The node that follows.
    pub node: NodeId,
    /// Whether the preferred tip lies behind it.
    pub preferred: bool,
    /// How many nodes lie behind it, itself included.
    pub nodes: usize,
    /// Whether the run is over at its end.
    pub is_complete: bool,
    /// The step that is pending at its end.
    pub at: Option<String>,
    /// The latest notes on the way to its end.
    pub summary: String,
    /// The token that continues at its end.
    pub continue_token: String,
}

/// A document that the workflow points at.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Reference {
    pub title: String,
    pub path: String,
    pub purpose: String,
    pub authoritative: bool,
    /// Whether there was such a file when the run began.
    pub resolved: bool,
}

/// The answer to a call that leaves a checkpoint.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Checkpointed {
    pub label: String,
    pub node: NodeId,
    /// The tokens to go on with; they stay at the same pending step.
    pub tokens: TokenSet,
    /// Whether what the call sent is on record; where it is not, a warning says why.
    pub recorded: bool,
    pub next: AfterCheckpoint,
    pub warnings: Vec<Warning>,
}

/// Where a run stands that has gone on from the step of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Behind {
    /// The step of the checkpoint.
    pub step: String,
    /// The step that is pending; none when the run is over.
    pub at: Option<String>,
    /// Sent alone, it shows that step.
    pub continue_token: String,
}

/// What comes next where a checkpoint was left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AfterCheckpoint {
    /// A step is pending.
    Step,
    /// The session is only there for notes.
    Notes,
    /// The run is over.
    Complete,
    /// The run has gone on from the step before.
    Behind(Behind),
}

/// A session to leave notes in.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct SessionOpened {
    pub session: SessionId,
    pub label: String,
    /// A checkpoint token; every checkpoint gives the next one.
    pub session_token: String,
}

/// A run that may be meant, at its tip.
#[derive(Clone, PartialEq, Debug)]
pub struct Resumable {
    /// Which run.
    pub run: RunRef,
    /// Its readable label.
    pub label: String,
    /// The workflow's id.
    pub workflow_id: String,
    /// What it is for.
    pub goal: Option<String>,
    /// The project that it was started in.
    pub project: Option<String>,
    /// How long ago it last moved, in seconds.
    pub idle_sec: u64,
    /// Whether it is another branch than the one that moved last.
    pub branch: bool,
    /// How it is doing, as its name on the wire.
    pub status: &'static str,
    /// What blocked the last attempt to go on; empty when nothing did.
    pub blocked_by: Vec<String>,
    /// The step that is pending there.
    pub pending_step: Option<String>,
    /// Why it is offered, the best reason first.
    pub why: Vec<WhyMatched>,
    /// The beginning of its notes.
    pub snippet: String,
    /// The token to come back with.
    pub continue_token: String,
}
