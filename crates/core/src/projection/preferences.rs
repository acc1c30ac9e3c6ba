//! Which preferences hold at a node.

use std::collections::BTreeMap;

use super::dag::RunDag;
use crate::event::guided::Preferences;
use crate::event::{Event, EventData};
use crate::id::NodeId;

/// The preferences that were set at nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PreferencesSet {
    at_node: BTreeMap<NodeId, Preferences>,
}

impl PreferencesSet {
    /// The preferences that these events leave.
    #[must_use]
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut set = Self::default();
        events.into_iter().for_each(|event| set.apply(event));
        set
    }

    /// Folds one event into the preferences.
    pub fn apply(&mut self, event: &Event) {
        if let (EventData::PreferencesChanged(change), Some(node)) =
            (&event.data, event.scope.node())
        {
            self.at_node.insert(node, change.effective);
        }
    }

    /// What holds at a node: its own, else the nearest before it, else the defaults.
    ///
    /// Few nodes set preferences, so it asks of each of those whether it is on the way.
    #[must_use]
    pub fn at(&self, dag: &RunDag, node: NodeId) -> Preferences {
        self.at_node
            .iter()
            .filter(|(set_at, _)| dag.is_on_path(**set_at, node))
            .max_by_key(|(set_at, _)| dag.node(**set_at).map(|node| node.depth))
            .map_or_else(Preferences::default, |(_, preferences)| *preferences)
    }
}
