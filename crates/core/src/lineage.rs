//! What must hold between the events of one log, beyond what each must keep by itself.
//!
//! Whoever makes plans keeps these rules. They are checked where a log comes from elsewhere
//! or is looked at as a whole.

use std::collections::{HashMap, HashSet};

use crate::digest::WorkflowHash;
use crate::event::guided::{
    AdvanceOutcome, EdgeCreated, EdgeKind, NodeCreated, NodeKind, NodeOutputAppended,
    OutputChannel, Resolution,
};
use crate::event::{Event, EventData};
use crate::id::{EventId, EventIndex, GapId, NodeId, OutputId, RunId};

/// The first event that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {index}: {rule}")]
pub struct Broken {
    /// The event.
    pub index: EventIndex,
    /// The rule.
    pub rule: &'static str,
}

/// Whether the events of a log fit together.
pub fn check(events: &[Event]) -> Result<(), Broken> {
    let known = Known::of(events);
    for event in events {
        known.check(event).map_err(|rule| Broken { index: event.index, rule })?;
    }
    Ok(())
}

struct Node {
    run: RunId,
    parent: Option<NodeId>,
    kind: NodeKind,
}

/// Everything that events can refer to.
#[derive(Default)]
struct Known {
    ids: HashSet<EventId>,
    runs: HashMap<RunId, WorkflowHash>,
    roots: HashMap<RunId, NodeId>,
    nodes: HashMap<NodeId, Node>,
    outputs: HashMap<OutputId, (EventIndex, Option<NodeId>, OutputChannel)>,
    gaps: HashMap<GapId, EventIndex>,
}

impl Known {
    fn of(events: &[Event]) -> Self {
        let mut known = Self::default();
        for event in events {
            known.ids.insert(event.id);
            known.learn(event);
        }
        known
    }

    fn learn(&mut self, event: &Event) {
        match (&event.data, event.scope.run(), event.scope.node()) {
            (EventData::RunStarted(started), Some(run), _) => {
                self.runs.insert(run, started.workflow_hash);
            }
            (EventData::NodeCreated(created), Some(run), Some(node)) => {
                let parent = created.parent_node_id;
                if parent.is_none() {
                    self.roots.entry(run).or_insert(node);
                }
                self.nodes.insert(node, Node { run, parent, kind: created.node_kind });
            }
            (EventData::NodeOutputAppended(output), _, node) => {
                let told = (event.index, node, output.output_channel);
                self.outputs.insert(output.output_id, told);
            }
            (EventData::GapRecorded(gap), ..) => {
                self.gaps.insert(gap.gap_id, event.index);
            }
            _ => {}
        }
    }

    fn is_of(&self, node: NodeId, run: RunId) -> bool {
        self.nodes.get(&node).is_some_and(|known| known.run == run)
    }

    fn check(&self, event: &Event) -> Result<(), &'static str> {
        let (run, node) = (event.scope.run(), event.scope.node());
        match &event.data {
            EventData::NodeCreated(created) => self.node(created, run, node)?,
            EventData::EdgeCreated(edge) => self.edge(edge, run)?,
            EventData::AdvanceRecorded(advance) => {
                if let AdvanceOutcome::Advanced { to_node_id } = &advance.outcome {
                    let led = self.nodes.get(to_node_id).is_some_and(|to| to.parent == node);
                    require(led, "an advance leads to a node that does not follow")?;
                }
            }
            EventData::NodeOutputAppended(output) => self.output(output, event.index, node)?,
            EventData::GapRecorded(gap) => {
                if let Resolution::Resolves { resolves_gap_id } = &gap.resolution {
                    let earlier = self.gaps.get(resolves_gap_id);
                    let earlier = earlier.is_some_and(|index| *index < event.index);
                    require(earlier, "it closes a gap that was not recorded before")?;
                }
            }
            EventData::ContextSet(set) => {
                let there = set.node_id.zip(run).is_none_or(|(node, run)| self.is_of(node, run));
                return require(there, "its context was changed at a node that is not there");
            }
            // A step of an engine-performed run makes its own node.
            EventData::StepCompleted(_) => return Ok(()),
            _ => {}
        }
        let there = node.zip(run).is_none_or(|(node, run)| self.is_of(node, run));
        require(there, "it is about a node that is not in its run")
    }

    fn node(
        &self,
        created: &NodeCreated,
        run: Option<RunId>,
        node: Option<NodeId>,
    ) -> Result<(), &'static str> {
        let Some(run) = run else { return Ok(()) };
        let hash = self.runs.get(&run);
        require(hash.is_some(), "it is about a run that was not started")?;
        require(hash == Some(&created.workflow_hash), "its plan is not the run's")?;
        match created.parent_node_id {
            Some(parent) => require(self.is_of(parent, run), "its parent is not in its run"),
            None => require(self.roots.get(&run) == node.as_ref(), "its run has two roots"),
        }
    }

    fn edge(&self, edge: &EdgeCreated, run: Option<RunId>) -> Result<(), &'static str> {
        let Some(run) = run else { return Ok(()) };
        require(self.is_of(edge.from_node_id, run), "an edge begins outside its run")?;
        require(self.is_of(edge.to_node_id, run), "an edge ends outside its run")?;
        let to = self.nodes.get(&edge.to_node_id);
        let follows = to.is_some_and(|to| to.parent == Some(edge.from_node_id));
        require(follows, "an edge leads to a node with another parent")?;
        let checkpoint = to.is_some_and(|to| to.kind == NodeKind::Checkpoint);
        let fits = edge.edge_kind != EdgeKind::Checkpoint || checkpoint;
        require(fits, "a checkpoint edge leads to another kind of node")?;
        require(self.ids.contains(&edge.cause.event_id), "an edge's cause is not in the log")
    }

    fn output(
        &self,
        output: &NodeOutputAppended,
        index: EventIndex,
        node: Option<NodeId>,
    ) -> Result<(), &'static str> {
        let Some(earlier) = output.supersedes_output_id else { return Ok(()) };
        let fits = self.outputs.get(&earlier).is_some_and(|(at, of, channel)| {
            *at < index && *of == node && *channel == output.output_channel
        });
        require(fits, "it corrects an output that is not an earlier one of its node and channel")
    }
}

const fn require(holds: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(otherwise) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Digest, SnapshotRef};
    use crate::event::guided::{
        EdgeCause, EdgeCauseKind, OutputPayload, RunStarted, SessionCreated, SourceKind,
    };
    use crate::event::{NewEvent, Scope};
    use crate::id::SessionId;

    const RUN: RunId = RunId::from_bits(1);

    fn node(number: u128) -> NodeId {
        NodeId::from_bits(number)
    }

    fn hash(text: &str) -> WorkflowHash {
        WorkflowHash(Digest::of(text.as_bytes()))
    }

    fn created(number: u128, parent: Option<u128>) -> (Scope, EventData) {
        let data = NodeCreated {
            node_kind: NodeKind::Step,
            parent_node_id: parent.map(node),
            snapshot_ref: SnapshotRef(Digest::of(b"state")),
            workflow_hash: hash("plan"),
        };
        (Scope::Node(RUN, node(number)), data.into())
    }

    fn edge(from: u128, to: u128, edge_kind: EdgeKind) -> (Scope, EventData) {
        let kind = match edge_kind {
            EdgeKind::AckedStep => EdgeCauseKind::IntentionalFork,
            EdgeKind::Checkpoint => EdgeCauseKind::CheckpointCreated,
        };
        let cause = EdgeCause { event_id: EventId::from_bits(1), kind };
        let data = EdgeCreated { cause, edge_kind, from_node_id: node(from), to_node_id: node(to) };
        (Scope::Run(RUN), data.into())
    }

    fn output(at: u128, number: u128, corrects: Option<u128>) -> (Scope, EventData) {
        let data = NodeOutputAppended {
            output_channel: OutputChannel::Recap,
            output_id: OutputId::from_bits(number),
            payload: OutputPayload::notes("done"),
            supersedes_output_id: corrects.map(OutputId::from_bits),
        };
        (Scope::Node(RUN, node(at)), data.into())
    }

    /// What is wrong with a log that goes on like this after a run with nodes 1 and 2.
    fn after(more: Vec<(Scope, EventData)>) -> String {
        let started = RunStarted {
            assets: Vec::new(),
            goal: None,
            workflow_hash: hash("plan"),
            workflow_id: "project.demo".into(),
            workflow_source_kind: SourceKind::Project,
            workflow_source_ref: String::new(),
            workspace: None,
        };
        let mut log = vec![
            (Scope::Session, SessionCreated {}.into()),
            (Scope::Run(RUN), started.into()),
            created(1, None),
            created(2, Some(1)),
            output(1, 1, None),
        ];
        log.extend(more);
        let events: Vec<Event> = log
            .into_iter()
            .zip(0u64..)
            .map(|((scope, data), index)| {
                let id = EventId::from_bits(u128::from(index));
                NewEvent { id, scope, data }.at(SessionId::from_bits(1), EventIndex(index))
            })
            .collect();
        check(&events).map_or_else(|broken| broken.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn logs_that_fit_together() {
        assert_eq!(after(vec![]), "fine");
        assert_eq!(after(vec![created(3, Some(1)), edge(1, 3, EdgeKind::AckedStep)]), "fine");
        assert_eq!(after(vec![output(1, 2, Some(1))]), "fine");
    }

    #[test]
    fn logs_that_do_not() {
        let (_, mut other_plan) = created(3, Some(1));
        if let EventData::NodeCreated(created) = &mut other_plan {
            created.workflow_hash = hash("other");
        }
        let stranger = Scope::Node(RunId::from_bits(9), node(3));
        for (more, wrong) in [
            (created(3, Some(9)), "event 5: its parent is not in its run"),
            (created(3, None), "event 5: its run has two roots"),
            ((Scope::Node(RUN, node(3)), other_plan), "event 5: its plan is not the run's"),
            ((stranger, created(3, Some(1)).1), "event 5: it is about a run that was not started"),
            (edge(1, 9, EdgeKind::AckedStep), "event 5: an edge ends outside its run"),
            (edge(9, 2, EdgeKind::AckedStep), "event 5: an edge begins outside its run"),
            (
                edge(2, 1, EdgeKind::AckedStep),
                "event 5: an edge leads to a node with another parent",
            ),
            (
                edge(1, 2, EdgeKind::Checkpoint),
                "event 5: a checkpoint edge leads to another kind of node",
            ),
            (output(9, 2, None), "event 5: it is about a node that is not in its run"),
            (
                output(2, 2, Some(1)),
                "event 5: it corrects an output that is not an earlier one of its node and channel",
            ),
        ] {
            assert_eq!(after(vec![more]), wrong);
        }
    }
}
