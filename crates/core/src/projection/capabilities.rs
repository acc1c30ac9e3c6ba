//! What was last observed of each capability, at each node.

use std::collections::BTreeMap;

use super::dag::RunDag;
use crate::event::guided::{Capability, CapabilityStatus, EnforcementGrade};
use crate::event::{Event, EventData};
use crate::id::{EventIndex, NodeId};

/// The latest observation of each capability at each node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Capabilities {
    latest: BTreeMap<(NodeId, Capability), Observed>,
    /// The same of strong observations alone: a mere claim takes nothing back.
    strong: BTreeMap<(NodeId, Capability), Observed>,
}

/// One observation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observed {
    /// What was observed.
    pub status: CapabilityStatus,
    /// Whether it may unlock a path that needs the capability.
    pub grade: EnforcementGrade,
    /// The event that recorded it.
    pub index: EventIndex,
}

impl Capabilities {
    /// The observations that these events leave.
    #[must_use]
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut capabilities = Self::default();
        events.into_iter().for_each(|event| capabilities.apply(event));
        capabilities
    }

    /// Folds one event into the observations.
    pub fn apply(&mut self, event: &Event) {
        let (EventData::CapabilityObserved(seen), Some(node)) = (&event.data, event.scope.node())
        else {
            return;
        };
        // The kind of provenance decides the grade; what is stored is for readers.
        let grade = seen.provenance.deserved_grade();
        let observed = Observed { status: seen.status, grade, index: event.index };
        self.latest.insert((node, seen.capability), observed);
        if grade == EnforcementGrade::Strong {
            self.strong.insert((node, seen.capability), observed);
        }
    }

    /// What was last observed at a node.
    #[must_use]
    pub fn at(&self, node: NodeId, capability: Capability) -> Option<Observed> {
        self.latest.get(&(node, capability)).copied()
    }

    /// What may be relied on at a node: the latest strong observation on the way to it.
    #[must_use]
    pub fn known(&self, dag: &RunDag, node: NodeId) -> BTreeMap<Capability, CapabilityStatus> {
        let mut latest: BTreeMap<Capability, Observed> = BTreeMap::new();
        for ((seen_at, capability), seen) in &self.strong {
            let counts = dag.is_on_path(*seen_at, node);
            if counts && latest.get(capability).is_none_or(|known| known.index < seen.index) {
                latest.insert(*capability, *seen);
            }
        }
        latest.into_iter().map(|(capability, seen)| (capability, seen.status)).collect()
    }
}
