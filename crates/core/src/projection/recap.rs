//! What happened on the way to a node, within a byte budget.

use super::dag::{Node, RunDag};
use super::outputs::Outputs;
use crate::event::guided::NodeKind;
use crate::id::NodeId;
use crate::text;

/// The notes on the way to a node, oldest first, as many of the latest as fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recap {
    /// The notes that fit.
    pub entries: Vec<Entry>,
    /// How many earlier ones did not.
    pub omitted: usize,
    /// The whole, ready to show; never longer than the budget.
    pub text: String,
}

/// The notes of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The node.
    pub node: NodeId,
    /// Its notes; cut with the marker when a single node's notes are over the budget.
    pub notes: String,
}

impl Recap {
    /// What stands first when something is left out; empty when nothing is.
    #[must_use]
    pub fn opening(&self) -> String {
        opening(self.omitted).trim_end().to_owned()
    }

    /// Whether something was left out.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.omitted > 0
    }
}

const BETWEEN: &str = "\n\n";

/// The recap of the path to a node, in at most `budget` bytes of UTF-8.
#[must_use]
pub fn recap(dag: &RunDag, outputs: &Outputs, node: NodeId, budget: usize) -> Recap {
    recap_with(dag, outputs, node, budget, 0)
}

/// The same, with room left for a heading over each entry.
#[must_use]
pub fn recap_with(
    dag: &RunDag,
    outputs: &Outputs,
    node: NodeId,
    budget: usize,
    heading: usize,
) -> Recap {
    let latest_first: Vec<(NodeId, &str)> = recalled(dag, outputs, node).collect();
    let total = latest_first.len();
    let room = |kept: usize| budget.saturating_sub(opening(total - kept).len());

    let mut kept = 0;
    let mut size = 0;
    for (place, (_, notes)) in latest_first.iter().enumerate() {
        size += heading + notes.len() + if place > 0 { BETWEEN.len() } else { 0 };
        if size > budget {
            break;
        }
        // The last entry may fit where the one before did not: then nothing is left out.
        if size <= room(place + 1) {
            kept = place + 1;
        }
    }
    let mut entries: Vec<Entry> = latest_first
        .iter()
        .take(kept)
        .rev()
        .map(|(node, notes)| Entry { node: *node, notes: (*notes).to_owned() })
        .collect();
    if let (0, Some((node, notes))) = (kept, latest_first.first()) {
        // Even the latest alone is too long: its beginning says more than nothing.
        entries.push(Entry {
            node: *node,
            notes: text::truncate(notes, room(1).saturating_sub(heading)),
        });
    }
    let omitted = total - entries.len();
    let body: Vec<&str> = entries.iter().map(|entry| entry.notes.as_str()).collect();
    let whole = opening(omitted) + &body.join(BETWEEN);
    Recap { entries, omitted, text: text::truncate(&whole, budget) }
}

/// The notes that a recap tells, latest first. Those of a blocked attempt are told while nothing
/// came of it: the notes of the step that was done say it all.
fn recalled<'d>(
    dag: &'d RunDag,
    outputs: &'d Outputs,
    node: NodeId,
) -> impl Iterator<Item = (NodeId, &'d str)> {
    let mut done = false;
    noted(dag, outputs, node).filter(move |(id, _)| {
        let blocked = dag.node(*id).is_some_and(|node| node.kind == NodeKind::BlockedAttempt);
        let told = !(blocked && done);
        done = true;
        told
    })
}

/// The notes on the way to a node, latest first.
pub(super) fn noted<'d>(
    dag: &'d RunDag,
    outputs: &'d Outputs,
    node: NodeId,
) -> impl Iterator<Item = (NodeId, &'d str)> {
    way_back(dag, node).filter_map(|node| Some((node.id, outputs.notes(node.id)?)))
}

/// The nodes whose outputs a recap tells of, latest first: those of a blocked attempt while
/// nothing came of it.
#[must_use]
pub fn told_nodes(dag: &RunDag, node: NodeId) -> Vec<NodeId> {
    let mut done = false;
    let told = way_back(dag, node).filter(move |at| {
        let told = !(at.kind == NodeKind::BlockedAttempt && done);
        done |= at.kind == NodeKind::Step;
        told
    });
    told.map(|node| node.id).collect()
}

/// The nodes on the way to a node, latest first, each behind the checkpoints that were left at
/// it before the run went on: a checkpoint goes nowhere, so it counts whichever token of its
/// step the run went on with.
fn way_back(dag: &RunDag, node: NodeId) -> impl Iterator<Item = &Node> {
    let mut next: Option<&Node> = None;
    dag.path_back(node).flat_map(move |at| {
        let gone = next.replace(at);
        let mut left: Vec<&Node> = Vec::new();
        checkpoints(dag, at, gone, &mut left);
        left.sort_by_key(|node| std::cmp::Reverse(node.created));
        left.into_iter().chain(std::iter::once(at))
    })
}

/// Collects the checkpoints behind a node that are not on the way, as they were when the run
/// went on to `gone`.
fn checkpoints<'d>(dag: &'d RunDag, at: &Node, gone: Option<&Node>, left: &mut Vec<&'d Node>) {
    let mut behind: Vec<&'d Node> = dag.children(at.id).collect();
    while let Some(node) = behind.pop() {
        let in_time = gone.is_none_or(|gone| node.created < gone.created);
        if node.kind == NodeKind::Checkpoint && in_time && gone.is_none_or(|g| g.id != node.id) {
            left.push(node);
            behind.extend(dag.children(node.id));
        }
    }
}

/// What stands first when something is left out.
fn opening(omitted: usize) -> String {
    match omitted {
        0 => String::new(),
        1 => format!("[TRUNCATED] 1 earlier entry left out, the latest kept{BETWEEN}"),
        n => format!("[TRUNCATED] {n} earlier entries left out, the latest kept{BETWEEN}"),
    }
}
