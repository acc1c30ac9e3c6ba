//! The context at a node: what its own path was given, and nothing of a sibling's.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::dag::RunDag;
use crate::event::{Event, EventData};
use crate::id::{EventIndex, NodeId, RunId};

/// The context changes of every run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Contexts {
    changes: BTreeMap<RunId, Vec<Change>>,
}

/// One change of a run's context.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The node at which it was made; none when it holds for the whole run.
    pub node: Option<NodeId>,
    /// What was given; `null` removes a key.
    pub members: Map<String, Value>,
    /// The event that recorded it.
    pub index: EventIndex,
}

impl Contexts {
    /// The changes that these events leave.
    #[must_use]
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut contexts = Self::default();
        events.into_iter().for_each(|event| contexts.apply(event));
        contexts
    }

    /// Folds one event into the changes.
    pub fn apply(&mut self, event: &Event) {
        let (EventData::ContextSet(set), Some(run)) = (&event.data, event.scope.run()) else {
            return;
        };
        let Value::Object(members) = &set.context.0 else {
            return;
        };
        let change = Change { node: set.node_id, members: members.clone(), index: event.index };
        self.changes.entry(run).or_default().push(change);
    }

    /// The context at a node: the changes on its path, in order, merged key by key.
    #[must_use]
    pub fn at(&self, dag: &RunDag, node: NodeId) -> Map<String, Value> {
        let mut context = Map::new();
        for change in self.changes.get(&dag.run()).into_iter().flatten() {
            if change.node.is_none_or(|made_at| dag.is_on_path(made_at, node)) {
                merge(&mut context, &change.members);
            }
        }
        context
    }
}

/// The names and values of a context as text, for whoever looks for a run by them.
#[must_use]
pub fn text(context: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in context {
        text.push_str(name);
        text.push(' ');
        match value {
            Value::String(value) => text.push_str(value),
            other => text.push_str(&other.to_string()),
        }
        text.push('\n');
    }
    text
}

/// Puts members over a context: a value replaces, `null` removes.
pub fn merge(context: &mut Map<String, Value>, members: &Map<String, Value>) {
    for (key, value) in members {
        if value.is_null() {
            context.remove(key);
        } else {
            context.insert(key.clone(), value.clone());
        }
    }
}
