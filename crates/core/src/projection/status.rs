//! How a guided run is doing.

use std::collections::{BTreeMap, BTreeSet};

use super::gaps::Gaps;
use crate::digest::Digest;
use crate::event::guided::{AdvanceOutcome, Autonomy};
use crate::event::{Event, EventData};
use crate::id::{AttemptId, NodeId, RunId};
use crate::reason::Severity;

/// How a guided run is doing, judged at its preferred tip.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum GuidedStatus {
    InProgress,
    Blocked,
    Complete,
    CompleteWithGaps,
}

impl GuidedStatus {
    /// The name that people and clients see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Blocked => "blocked",
            Self::Complete => "complete",
            Self::CompleteWithGaps => "complete_with_gaps",
        }
    }
}

/// The preferred tip of a run, with what the log alone does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tip {
    /// The run.
    pub run: RunId,
    /// The node.
    pub node: NodeId,
    /// Whether its snapshot says that the run is over.
    pub complete: bool,
    /// The preference that holds there.
    pub autonomy: Autonomy,
}

/// How a guided run is doing.
///
/// A run that may stop is blocked while its tip has a gap that a person must close, or
/// while the last attempt to leave the tip was answered with blockers.
#[must_use]
pub fn status(tip: Tip, gaps: &Gaps, attempts: &Attempts) -> GuidedStatus {
    let critical = || gaps.of_run(tip.run).any(|gap| gap.severity == Severity::Critical);
    let held = || {
        gaps.at_node(tip.run, tip.node).any(super::gaps::Gap::blocks)
            || attempts.was_blocked(tip.node)
    };
    if tip.complete {
        if critical() { GuidedStatus::CompleteWithGaps } else { GuidedStatus::Complete }
    } else if tip.autonomy != Autonomy::FullAutoNeverStop && held() {
        GuidedStatus::Blocked
    } else {
        GuidedStatus::InProgress
    }
}

/// What came of every attempt, and which nodes were last left blocked.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Attempts {
    recorded: BTreeMap<(NodeId, AttemptId), Attempt>,
    blocked: BTreeSet<NodeId>,
}

/// One attempt to leave a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt {
    /// What came of it.
    pub outcome: AdvanceOutcome,
    /// What was said, in short.
    pub input_digest: Option<Digest>,
}

impl Attempts {
    /// The attempts that these events leave.
    #[must_use]
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut attempts = Self::default();
        events.into_iter().for_each(|event| attempts.apply(event));
        attempts
    }

    /// Folds one event into the attempts.
    pub fn apply(&mut self, event: &Event) {
        let (EventData::AdvanceRecorded(advance), Some(node)) = (&event.data, event.scope.node())
        else {
            return;
        };
        match advance.outcome {
            AdvanceOutcome::Blocked { .. } => self.blocked.insert(node),
            AdvanceOutcome::Advanced { .. } => self.blocked.remove(&node),
        };
        let (outcome, input_digest) = (advance.outcome.clone(), advance.input_digest);
        self.recorded.insert((node, advance.attempt_id), Attempt { outcome, input_digest });
    }

    /// What came of an attempt, if it was made.
    #[must_use]
    pub fn of(&self, node: NodeId, attempt: AttemptId) -> Option<&Attempt> {
        self.recorded.get(&(node, attempt))
    }

    /// Whether the last attempt to leave a node was blocked.
    #[must_use]
    pub fn was_blocked(&self, node: NodeId) -> bool {
        self.blocked.contains(&node)
    }
}
