//! Ways that were gone from a node already.

use cairn_core::id::NodeId;
use cairn_core::keyring::Keyring;
use cairn_core::projection::dag::{Node, RunDag};
use cairn_core::projection::recap::recap;
use cairn_core::token::compact::{Attempt, Kind};

use super::super::Inner;
use super::super::answer::BranchSummary;
use super::super::position::Position;
use super::super::session::Session;
use super::super::tokens::Spot;
use crate::error::Result;

/// How many branches are told of, and how long each may be.
const BRANCHES_MAX: usize = 5;
const BRANCH_MAX: usize = 1024;

/// What follows from the node already, the preferred branch first.
pub(super) async fn branches(
    inner: &Inner,
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
        let spot = Spot::new(session, position.run, end);
        let (is_complete, at) = stands(inner, session, position, end).await?;
        found.push(BranchSummary {
            node: child,
            preferred: is_preferred(child),
            nodes,
            is_complete,
            at,
            summary: summary(session, dag, child, end),
            continue_token: spot.token(session, Kind::Continue, inner.fresh()?, keys)?,
        });
    }
    Ok(found)
}

/// The other branches of a run that is over, the one that moved last first. An answer that may
/// be asked for again tells those that were there when it was first given.
pub(super) async fn others(
    inner: &Inner,
    session: &Session,
    position: &Position,
    keys: &Keyring,
    coming_back: bool,
) -> Result<Vec<BranchSummary>> {
    let dag = session.dag(position.run)?;
    let here = dag.node(position.node).ok_or_else(|| session.broken("a node is missing"))?;
    let told = |node: &Node| coming_back || node.created < here.created;
    let mut ends: Vec<&Node> = dag
        .nodes()
        .iter()
        .filter(|node| told(node) && !dag.is_on_path(node.id, here.id))
        .filter(|node| !dag.children(node.id).any(told))
        .collect();
    ends.sort_by_key(|node| std::cmp::Reverse((node.touched, node.created)));
    ends.truncate(BRANCHES_MAX);
    let mut found = Vec::new();
    for end in ends {
        let own = |node: &&Node| !dag.is_on_path(node.id, here.id);
        let own: Vec<&Node> = dag.path_back(end.id).take_while(own).collect();
        let child = own.last().map_or(end.id, |node| node.id);
        let attempt = if coming_back { inner.fresh()? } else { Attempt::FIRST };
        let spot = Spot::new(session, position.run, end.id);
        let (is_complete, at) = stands(inner, session, position, end.id).await?;
        found.push(BranchSummary {
            node: child,
            preferred: false,
            nodes: own.len(),
            is_complete,
            at,
            summary: summary(session, dag, child, end.id),
            continue_token: spot.token(session, Kind::Continue, attempt, keys)?,
        });
    }
    Ok(found)
}

/// Whether the run is over at a node, and the step that is pending there.
async fn stands(
    inner: &Inner,
    session: &Session,
    position: &Position,
    end: NodeId,
) -> Result<(bool, Option<String>)> {
    let pending = position.pending_at(inner, session, end).await?;
    Ok((pending.is_none(), pending.map(|key| key.step.to_string())))
}

/// What was noted on the way from a node to the end of its branch.
fn summary(session: &Session, dag: &RunDag, from: NodeId, end: NodeId) -> String {
    let way = recap(dag, &session.view.outputs, end, BRANCH_MAX);
    let behind = way.entries.iter().filter(|entry| dag.is_on_path(from, entry.node));
    let notes: Vec<&str> = behind.map(|entry| entry.notes.as_str()).collect();
    notes.join("\n\n")
}
