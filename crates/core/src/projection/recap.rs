//! What happened on the way to a node, within a byte budget.

use super::dag::RunDag;
use super::outputs::Outputs;
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
    let noted = |node: &super::dag::Node| Some((node.id, outputs.notes(node.id)?));
    let latest_first: Vec<(NodeId, &str)> = dag.path_back(node).filter_map(noted).collect();
    let total = latest_first.len();
    let room = |kept: usize| budget.saturating_sub(opening(total - kept).len());

    let mut kept = 0;
    let mut size = 0;
    for (place, (_, notes)) in latest_first.iter().enumerate() {
        size += notes.len() + if place > 0 { BETWEEN.len() } else { 0 };
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
        entries.push(Entry { node: *node, notes: text::truncate(notes, room(1)) });
    }
    let omitted = total - entries.len();
    let body: Vec<&str> = entries.iter().map(|entry| entry.notes.as_str()).collect();
    let whole = opening(omitted) + &body.join(BETWEEN);
    Recap { entries, omitted, text: text::truncate(&whole, budget) }
}

/// What stands first when something is left out.
fn opening(omitted: usize) -> String {
    match omitted {
        0 => String::new(),
        1 => format!("[TRUNCATED] 1 earlier entry left out, the latest kept{BETWEEN}"),
        n => format!("[TRUNCATED] {n} earlier entries left out, the latest kept{BETWEEN}"),
    }
}
