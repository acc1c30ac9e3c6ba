//! Gaps that were disclosed and not yet closed.

use std::collections::BTreeMap;

use super::dag::RunDag;
use crate::event::guided::Resolution;
use crate::event::{Event, EventData};
use crate::id::{EventIndex, GapId, NodeId, RunId};
use crate::reason::{GapReason, Severity};

/// The gaps of every run, and where they were closed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Gaps {
    open: BTreeMap<(RunId, GapId), Gap>,
    told: BTreeMap<NodeId, Vec<Gap>>,
    closed: BTreeMap<GapId, Vec<NodeId>>,
}

/// One gap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Which gap.
    pub id: GapId,
    /// The node that disclosed it.
    pub node: NodeId,
    /// What is missing.
    pub reason: GapReason,
    /// How bad it is.
    pub severity: Severity,
    /// In words.
    pub summary: String,
    /// The event that disclosed it.
    pub index: EventIndex,
}

impl Gap {
    /// Whether a run that may stop has to stop for it.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.severity == Severity::Critical && !matches!(self.reason, GapReason::Unexpected(_))
    }
}

impl Gaps {
    /// The gaps that these events leave open.
    #[must_use]
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut gaps = Self::default();
        events.into_iter().for_each(|event| gaps.apply(event));
        gaps
    }

    /// Folds one event into the gaps.
    pub fn apply(&mut self, event: &Event) {
        let (EventData::GapRecorded(gap), Some(run), Some(node)) =
            (&event.data, event.scope.run(), event.scope.node())
        else {
            return;
        };
        match gap.resolution {
            Resolution::Unresolved {} => {
                let opened = Gap {
                    id: gap.gap_id,
                    node,
                    reason: gap.reason,
                    severity: gap.severity,
                    summary: gap.summary.clone(),
                    index: event.index,
                };
                self.told.entry(node).or_default().push(opened.clone());
                self.open.insert((run, gap.gap_id), opened);
            }
            Resolution::Resolves { resolves_gap_id } => {
                self.open.remove(&(run, resolves_gap_id));
                self.closed.entry(resolves_gap_id).or_default().push(node);
            }
        }
    }

    /// Every gap that a node disclosed, closed since or not, oldest first.
    #[must_use]
    pub fn told_at(&self, node: NodeId) -> &[Gap] {
        self.told.get(&node).map(Vec::as_slice).unwrap_or_default()
    }

    /// The gaps that a node closed, oldest first.
    #[must_use]
    pub fn closed_at(&self, node: NodeId) -> Vec<&Gap> {
        let is_closed = |gap: &&Gap| self.closed.get(&gap.id).is_some_and(|at| at.contains(&node));
        let mut closed: Vec<&Gap> = self.told.values().flatten().filter(is_closed).collect();
        closed.sort_by_key(|gap| gap.index);
        closed
    }

    /// The gaps that were disclosed on the way to a node and not closed on it, oldest first.
    #[must_use]
    pub fn open_at(&self, dag: &RunDag, node: NodeId) -> Vec<&Gap> {
        let is_closed = |gap: &&Gap| {
            let closed = self.closed.get(&gap.id).into_iter().flatten();
            closed.into_iter().any(|at| dag.is_on_path(*at, node))
        };
        let told = self.told.iter().filter(|(at, _)| dag.is_on_path(**at, node));
        let mut open: Vec<&Gap> =
            told.flat_map(|(_, gaps)| gaps).filter(|gap| !is_closed(gap)).collect();
        open.sort_by_key(|gap| gap.index);
        open
    }

    /// The open gaps of a run, by id.
    pub fn of_run(&self, run: RunId) -> impl Iterator<Item = &Gap> {
        let (first, last) = (GapId::from_bits(0), GapId::from_bits(u128::MAX));
        self.open.range((run, first)..=(run, last)).map(|(_, gap)| gap)
    }

    /// The open gaps that a node disclosed, by id.
    pub fn at_node(&self, run: RunId, node: NodeId) -> impl Iterator<Item = &Gap> {
        self.of_run(run).filter(move |gap| gap.node == node)
    }
}
