//! Ways that were gone from a node already.

use cairn_core::id::NodeId;
use cairn_core::keyring::Keyring;
use cairn_core::projection::recap::recap;
use cairn_core::token::compact::Kind;

use super::super::answer::BranchSummary;
use super::super::position::Position;
use super::super::session::Session;
use super::super::tokens::Spot;
use crate::error::Result;

/// How many branches are told of, and how long each may be.
const BRANCHES_MAX: usize = 5;
const BRANCH_MAX: usize = 1024;

/// What follows from the node already, the preferred branch first.
pub(super) fn branches(
    session: &Session,
    position: &Position,
    keys: &Keyring,
) -> Result<Vec<BranchSummary>> {
    let dag = session.dag(position.run)?;
    let tip = dag.preferred_tip().map(|tip| tip.id);
    let is_preferred = |child: NodeId| tip.is_some_and(|tip| dag.is_on_path(child, tip));
    let steps = dag.went_on(position.node).into_iter();
    let mut children: Vec<NodeId> = steps.map(|child| child.id).collect();
    children.sort_by_key(|child| !is_preferred(*child));
    children.truncate(BRANCHES_MAX);
    // The preferred of all leaves first, so the first one behind a child is its own.
    let leaves = if children.is_empty() { Vec::new() } else { dag.branches() };
    let mut found = Vec::new();
    for child in children {
        let end = leaves.iter().map(|leaf| leaf.tip).find(|leaf| dag.is_on_path(child, *leaf));
        let end = end.unwrap_or(child);
        let nodes = dag.nodes().iter().filter(|node| dag.is_on_path(child, node.id)).count();
        let way = recap(dag, &session.view.outputs, end, BRANCH_MAX);
        let behind = way.entries.iter().filter(|entry| dag.is_on_path(child, entry.node));
        let summary: Vec<&str> = behind.map(|entry| entry.notes.as_str()).collect();
        let spot = Spot::new(session, position.run, end);
        let attempt = session.unused(end);
        found.push(BranchSummary {
            node: child,
            preferred: is_preferred(child),
            nodes,
            summary: summary.join("\n\n"),
            continue_token: spot.token(session, Kind::Continue, attempt, keys)?,
        });
    }
    Ok(found)
}
