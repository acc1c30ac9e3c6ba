//! The nodes of a guided run, how they follow one another, and which one to go on from.

use std::collections::BTreeMap;

use crate::digest::SnapshotRef;
use crate::event::guided::{EdgeCause, EdgeKind, NodeKind};
use crate::event::{Event, EventData};
use crate::id::{EventIndex, NodeId, RunId};

/// A guided run's nodes and edges.
///
/// Nodes lie in the order in which they were created, a parent before its children.
#[derive(Clone, PartialEq, Debug)]
pub struct RunDag {
    run: RunId,
    nodes: Vec<Node>,
    places: BTreeMap<NodeId, usize>,
    edges: Vec<Edge>,
    tip: Option<usize>,
    last_activity: Option<EventIndex>,
}

/// A durable point of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Which node.
    pub id: NodeId,
    /// What kind of node.
    pub kind: NodeKind,
    /// The node before.
    pub parent: Option<NodeId>,
    /// The state to go on from.
    pub snapshot: SnapshotRef,
    /// The event that created it.
    pub created: EventIndex,
    /// The last event that counts as activity of this node itself.
    pub touched: EventIndex,
    /// How many nodes come before it.
    pub depth: usize,
    up: Option<usize>,
    jump: usize,
    children: Vec<usize>,
}

/// One node follows another.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Edge {
    pub from: NodeId,
    pub to: NodeId,
    pub kind: EdgeKind,
    pub cause: EdgeCause,
    pub index: EventIndex,
}

/// A way through a run, named by the leaf where it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch {
    /// The leaf.
    pub tip: NodeId,
    /// The last event that touched anything on the way to it.
    pub last_activity: EventIndex,
    /// The event that created it.
    pub created: EventIndex,
}

impl RunDag {
    /// A run without nodes.
    #[must_use]
    pub const fn new(run: RunId) -> Self {
        Self {
            run,
            nodes: Vec::new(),
            places: BTreeMap::new(),
            edges: Vec::new(),
            tip: None,
            last_activity: None,
        }
    }

    /// The run as these events leave it; those of other runs change nothing.
    #[must_use]
    pub fn fold<'e>(run: RunId, events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut dag = Self::new(run);
        events.into_iter().for_each(|event| dag.apply(event));
        dag
    }

    /// Folds one event into the run.
    pub fn apply(&mut self, event: &Event) {
        if event.scope.run() != Some(self.run) {
            return;
        }
        let node = match &event.data {
            EventData::NodeCreated(created) => {
                let Some(id) = event.scope.node() else { return };
                if !self.places.contains_key(&id) {
                    self.create(Node {
                        id,
                        kind: created.node_kind,
                        parent: created.parent_node_id,
                        snapshot: created.snapshot_ref,
                        created: event.index,
                        touched: event.index,
                        depth: 0,
                        up: None,
                        jump: 0,
                        children: Vec::new(),
                    });
                }
                Some(id)
            }
            EventData::EdgeCreated(edge) => {
                self.edges.push(Edge {
                    from: edge.from_node_id,
                    to: edge.to_node_id,
                    kind: edge.edge_kind,
                    cause: edge.cause.clone(),
                    index: event.index,
                });
                // An edge is on the way to the node that it leads to, and to no other child.
                Some(edge.to_node_id)
            }
            EventData::NodeOutputAppended(_)
            | EventData::GapRecorded(_)
            | EventData::CapabilityObserved(_)
            | EventData::PreferencesChanged(_)
            | EventData::DivergenceRecorded(_) => event.scope.node(),
            _ => None,
        };
        if let Some(place) = node.and_then(|id| self.places.get(&id).copied()) {
            self.touch(place, event.index);
        }
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> RunId {
        self.run
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(*self.places.get(&id)?)
    }

    /// All nodes, oldest first.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All edges, oldest first.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The nodes that follow a node, oldest first.
    pub fn children(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        let children = self.node(id).map(|node| node.children.as_slice());
        children.unwrap_or_default().iter().filter_map(|place| self.nodes.get(*place))
    }

    /// The nodes that the run went on to from where a node stands, oldest first. A checkpoint and
    /// a blocked attempt go nowhere: they stand at the step that they were made at.
    #[must_use]
    pub fn went_on(&self, id: NodeId) -> Vec<&Node> {
        let is_step = |node: &&Node| node.kind == NodeKind::Step;
        let step = self.path_back(id).find(is_step).map_or(id, |node| node.id);
        let (mut found, mut ahead) = (Vec::new(), self.children(step).collect::<Vec<_>>());
        while let Some(node) = ahead.pop() {
            match node.kind {
                NodeKind::Checkpoint | NodeKind::BlockedAttempt => {
                    ahead.extend(self.children(node.id));
                }
                NodeKind::Step => found.push(node),
            }
        }
        found.sort_by_key(|node| node.created);
        found
    }

    /// The nodes that follow no node; a sound run has one.
    pub fn roots(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.up.is_none())
    }

    /// The nodes that no node follows.
    pub fn leaves(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_leaf())
    }

    /// A node and those before it, back to the root.
    pub fn path_back(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.node(id), |node| self.nodes.get(node.up?))
    }

    /// Whether one node is the other or comes before it.
    #[must_use]
    pub fn is_on_path(&self, id: NodeId, to: NodeId) -> bool {
        let places = (self.places.get(&id), self.places.get(&to));
        matches!(places, (Some(above), Some(below)) if self.is_above(*above, *below))
    }

    /// The last event that touched the node or anything before it.
    #[must_use]
    pub fn last_activity_at(&self, id: NodeId) -> Option<EventIndex> {
        self.path_back(id).map(|node| node.touched).max()
    }

    /// The last event that touched any node; the preferred tip has seen it.
    #[must_use]
    pub const fn last_activity(&self) -> Option<EventIndex> {
        self.last_activity
    }

    /// The leaf to go on from: that with the latest activity on its way, the newest of those.
    #[must_use]
    pub fn preferred_tip(&self) -> Option<&Node> {
        self.nodes.get(self.tip?)
    }

    /// All leaves, the preferred tip first.
    #[must_use]
    pub fn branches(&self) -> Vec<Branch> {
        let mut latest: Vec<EventIndex> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let before = node.up.and_then(|up| latest.get(up).copied()).unwrap_or_default();
            latest.push(before.max(node.touched));
        }
        let mut branches: Vec<Branch> = self
            .nodes
            .iter()
            .zip(latest)
            .filter(|(node, _)| node.is_leaf())
            .map(|(node, last_activity)| Branch {
                tip: node.id,
                last_activity,
                created: node.created,
            })
            .collect();
        branches.sort_by_key(|b| (std::cmp::Reverse((b.last_activity, b.created)), b.tip));
        branches
    }

    /// The ends of the branches that do not lead to a node, the one that moved last first. What
    /// was left beside a step, such as a checkpoint, is no branch.
    #[must_use]
    pub fn other_branches(&self, node: NodeId) -> Vec<&Node> {
        let is_step = |at: &&Node| at.kind == NodeKind::Step;
        let leads_elsewhere = |leaf: &&Node| {
            let step = self.path_back(leaf.id).find(is_step);
            step.is_some_and(|step| !self.is_on_path(step.id, node))
        };
        let mut ends: Vec<&Node> = self.leaves().filter(leads_elsewhere).collect();
        ends.sort_by_key(|end| std::cmp::Reverse((end.touched, end.created)));
        ends
    }

    fn create(&mut self, mut node: Node) {
        let place = self.nodes.len();
        node.up = node.parent.and_then(|parent| self.places.get(&parent).copied());
        node.jump = place;
        if let Some(up) = node.up {
            (node.depth, node.jump) = self.below(up);
            if let Some(parent) = self.nodes.get_mut(up) {
                parent.children.push(place);
            }
        }
        self.places.insert(node.id, place);
        self.nodes.push(node);
    }

    /// The depth of a new child, and the ancestor that it can jump to.
    ///
    /// Jumps double in length where two of one length meet, as in a skew-binary number,
    /// so that any ancestor is a logarithmic number of jumps and single steps away.
    fn below(&self, up: usize) -> (usize, usize) {
        let at = |place: usize| self.nodes.get(place).map_or((0, place), |n| (n.depth, n.jump));
        let (depth, near) = at(up);
        let (near_depth, far) = at(near);
        let (far_depth, _) = at(far);
        let jump = if depth - near_depth == near_depth - far_depth { far } else { up };
        (depth + 1, jump)
    }

    fn is_above(&self, above: usize, below: usize) -> bool {
        let Some(wanted) = self.nodes.get(above).map(|node| node.depth) else {
            return false;
        };
        let mut place = below;
        while let Some(node) = self.nodes.get(place) {
            if node.depth <= wanted {
                break;
            }
            let far_enough = self.nodes.get(node.jump).is_some_and(|far| far.depth >= wanted);
            match node.up {
                Some(_) if far_enough => place = node.jump,
                Some(up) => place = up,
                None => break,
            }
        }
        place == above
    }

    /// Notes activity at a node and moves the tip.
    ///
    /// The latest event of all decides: every leaf behind the node that it touched has it
    /// on its way, and no other leaf has. Of those leaves the newest is the tip, and the
    /// newest node behind any node is always a leaf.
    fn touch(&mut self, place: usize, index: EventIndex) {
        if let Some(node) = self.nodes.get_mut(place) {
            node.touched = node.touched.max(index);
        }
        if self.last_activity.is_some_and(|last| last > index) {
            return;
        }
        self.last_activity = Some(index);
        let newest = self.nodes.len().saturating_sub(1);
        let is_leaf = self.nodes.get(place).is_some_and(Node::is_leaf);
        self.tip = if is_leaf {
            Some(place)
        } else if self.is_above(place, newest) {
            Some(newest)
        } else {
            (place..newest).rev().find(|newer| self.is_above(place, *newer))
        };
    }
}

impl Node {
    /// Whether no node follows it.
    #[must_use]
    pub const fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}

#[cfg(test)]
mod tests;
