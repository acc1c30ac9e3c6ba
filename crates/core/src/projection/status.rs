//! How a guided run is doing.

use std::collections::BTreeMap;

use super::dag::RunDag;
use super::gaps::Gaps;
use crate::digest::Digest;
use crate::event::guided::{AdvanceOutcome, Autonomy, NodeKind};
use crate::event::{Event, EventData};
use crate::id::{AttemptId, EventIndex, NodeId};
use crate::reason::{Blocker, Severity};

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

/// The end of a branch, with what the log alone does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tip {
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
pub fn status(tip: Tip, dag: &RunDag, gaps: &Gaps, attempts: &Attempts) -> GuidedStatus {
    let open = gaps.open_at(dag, tip.node);
    let critical = || open.iter().any(|gap| gap.severity == Severity::Critical);
    let held = || {
        open.iter().any(|gap| gap.node == tip.node && gap.blocks())
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

/// What came of every attempt, and what blocked the last attempt to leave a node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Attempts {
    recorded: BTreeMap<(NodeId, AttemptId), Attempt>,
    blocked: BTreeMap<NodeId, Vec<Blocker>>,
}

/// One attempt to leave a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt {
    /// What came of it.
    pub outcome: AdvanceOutcome,
    /// What was said, in short.
    pub input_digest: Option<Digest>,
    /// The event that recorded it.
    pub index: EventIndex,
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
        let Some(node) = event.scope.node() else { return };
        match &event.data {
            EventData::AdvanceRecorded(advance) => {
                match &advance.outcome {
                    AdvanceOutcome::Blocked { blockers } => {
                        self.blocked.insert(node, blockers.blockers().to_vec());
                    }
                    AdvanceOutcome::Advanced { .. } => {
                        self.blocked.remove(&node);
                    }
                }
                let (outcome, input_digest) = (advance.outcome.clone(), advance.input_digest);
                let attempt = Attempt { outcome, input_digest, index: event.index };
                self.recorded.insert((node, advance.attempt_id), attempt);
            }
            // The node that keeps what a blocked attempt sent is blocked for the same reasons.
            EventData::NodeCreated(created) if created.node_kind == NodeKind::BlockedAttempt => {
                let why = created.parent_node_id.and_then(|parent| self.blocked.get(&parent));
                self.blocked.insert(node, why.cloned().unwrap_or_default());
            }
            _ => {}
        }
    }

    /// What came of an attempt, if it was made.
    #[must_use]
    pub fn of(&self, node: NodeId, attempt: AttemptId) -> Option<&Attempt> {
        self.recorded.get(&(node, attempt))
    }

    /// The attempts that were made at a node, oldest first.
    #[must_use]
    pub fn at(&self, node: NodeId) -> Vec<AttemptId> {
        let (first, last) = (AttemptId::from_bits(0), AttemptId::from_bits(u128::MAX));
        let made = self.recorded.range((node, first)..=(node, last));
        let mut made: Vec<(EventIndex, AttemptId)> =
            made.map(|((_, id), attempt)| (attempt.index, *id)).collect();
        made.sort_unstable();
        made.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether the last attempt to leave a node was blocked.
    #[must_use]
    pub fn was_blocked(&self, node: NodeId) -> bool {
        self.blocked.contains_key(&node)
    }

    /// What blocked the last attempt to leave a node; empty when it was not blocked.
    #[must_use]
    pub fn blockers(&self, node: NodeId) -> &[Blocker] {
        self.blocked.get(&node).map(Vec::as_slice).unwrap_or_default()
    }
}
