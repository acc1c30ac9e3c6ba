//! What guided nodes have put out, and what of it still holds.

use std::collections::BTreeMap;

use crate::event::guided::{OutputChannel, OutputPayload};
use crate::event::{Event, EventData};
use crate::id::{EventIndex, NodeId, OutputId};

/// The outputs of every node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outputs {
    by_node: BTreeMap<NodeId, Vec<Output>>,
}

/// One output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// Which output.
    pub id: OutputId,
    /// What kind of output.
    pub channel: OutputChannel,
    /// The output.
    pub payload: OutputPayload,
    /// The event that appended it.
    pub index: EventIndex,
    /// Whether a later output of its node and channel corrects it.
    pub superseded: bool,
}

impl Outputs {
    /// The outputs that these events leave.
    #[must_use]
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut outputs = Self::default();
        events.into_iter().for_each(|event| outputs.apply(event));
        outputs
    }

    /// Folds one event into the outputs.
    pub fn apply(&mut self, event: &Event) {
        let (EventData::NodeOutputAppended(output), Some(node)) = (&event.data, event.scope.node())
        else {
            return;
        };
        let outputs = self.by_node.entry(node).or_default();
        for earlier in outputs.iter_mut() {
            // A correction of another node or channel corrects nothing.
            earlier.superseded |= earlier.channel == output.output_channel
                && Some(earlier.id) == output.supersedes_output_id;
        }
        outputs.push(Output {
            id: output.output_id,
            channel: output.output_channel,
            payload: output.payload.clone(),
            index: event.index,
            superseded: false,
        });
    }

    /// Everything that a node put out, oldest first.
    #[must_use]
    pub fn history(&self, node: NodeId) -> &[Output] {
        self.by_node.get(&node).map(Vec::as_slice).unwrap_or_default()
    }

    /// The latest output of a node and channel that still holds.
    #[must_use]
    pub fn current(&self, node: NodeId, channel: OutputChannel) -> Option<&Output> {
        self.standing(node).rfind(|output| output.channel == channel)
    }

    /// Everything of a node that still holds, oldest first.
    pub fn standing(&self, node: NodeId) -> impl DoubleEndedIterator<Item = &Output> {
        self.history(node).iter().filter(|output| !output.superseded)
    }

    /// The notes of a node that still hold.
    #[must_use]
    pub fn notes(&self, node: NodeId) -> Option<&str> {
        match &self.current(node, OutputChannel::Recap)?.payload {
            OutputPayload::Notes { notes_markdown } => Some(notes_markdown),
            OutputPayload::ArtifactRef { .. } => None,
        }
    }
}
