//! Guided runs as graphs on the wire, for whoever draws them.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::digest::Digest;
use cairn_core::event::guided::Preferences;
use cairn_core::id::{GapId, NodeId, RunId, SessionId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::pin::BlobKind;
use cairn_core::projection::dag::Node;
use cairn_core::projection::session::{RunView, SessionView};
use cairn_store::Store;
use serde::{Deserialize, Serialize};

use super::read::{count, instant, latest_first};
use super::story::{self, Guided, Shelf, Told};
use super::{Detail, read};
use crate::error::Result;

/// How many nodes are drawn when nobody says.
pub const NODES_DEFAULT: usize = 200;

/// A session with its guided runs as graphs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drawn {
    /// The session at a glance.
    #[serde(flatten)]
    pub detail: Detail,
    /// Its guided runs, the one that something happened to last first.
    pub graphs: Vec<Graph>,
}

/// A guided run as a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// The run.
    pub run_id: RunId,
    /// The workflow.
    pub workflow_id: Option<String>,
    /// The workflow's name for people, when its plan can be read.
    pub workflow_name: Option<String>,
    /// Where it stands, in one word; `unknown` when its state cannot be read.
    pub status: String,
    /// The node to go on from.
    pub preferred_tip: Option<NodeId>,
    /// Its nodes, oldest first, a parent before its children.
    pub nodes: Vec<GraphNode>,
    /// How many older nodes are left out.
    pub nodes_left_out: u64,
}

/// A node of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphNode {
    /// The node.
    pub node_id: NodeId,
    /// The node before.
    pub parent_node_id: Option<NodeId>,
    /// What kind of node.
    pub kind: String,
    /// When it was created, as far as that event's id says.
    pub at: Option<String>,
    /// Why it was made where it is.
    pub cause: Option<String>,
    /// The step that led to it.
    pub step: Option<GraphStep>,
    /// The step that is to be done next.
    pub pending: Option<GraphStep>,
    /// The first line of its notes.
    pub notes: Option<String>,
    /// The gaps that were disclosed at it.
    pub gaps: Vec<GraphGap>,
    /// What kept the last attempt to leave it from doing so.
    pub blockers: Vec<String>,
    /// How the work left the procedure there.
    pub divergences: Vec<String>,
    /// What the preferences were changed to.
    pub preferences: Option<Preferences>,
}

/// A step of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphStep {
    /// Which step, in which turn of which loops.
    pub instance: StepInstanceKey,
    /// Its name for people.
    pub title: String,
}

/// A gap of a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphGap {
    /// The gap.
    pub gap_id: GapId,
    /// How bad it is.
    pub severity: String,
    /// In words.
    pub summary: String,
    /// Whether nothing has closed it since.
    pub open: bool,
}

/// One session as [`show`](super::show) gives it, with its guided runs as graphs of at most
/// `nodes` nodes together; the newest are kept.
pub async fn draw(
    store: &Store,
    session: SessionId,
    moments: usize,
    nodes: usize,
) -> Result<Drawn> {
    let detail = read::show(store, session, moments).await?;
    let events = store.log.read_prefix(session).await?.events;
    let view = SessionView::fold(&events);
    let told = story::told(&events, &view);
    let mut room = nodes;
    let mut graphs = Vec::new();
    for id in latest_first(&view) {
        let Some(run) = view.runs.get(&id) else { continue };
        let graph = graph(store, &view, (id, run), &told, room).await;
        room -= graph.as_ref().map_or(0, |graph| graph.nodes.len());
        graphs.extend(graph);
    }
    Ok(Drawn { detail, graphs })
}

async fn graph(
    store: &Store,
    view: &SessionView,
    (id, run): (RunId, &RunView),
    told: &BTreeMap<NodeId, Told<'_>>,
    room: usize,
) -> Option<Graph> {
    let dag = run.dag()?;
    let left_out = dag.nodes().len().saturating_sub(room);
    let drawn = dag.nodes().get(left_out..).unwrap_or_default();
    let parents = drawn.iter().filter_map(|node| dag.node(node.parent?));
    let snapshots = drawn.iter().chain(parents).chain(dag.preferred_tip());
    let mut wanted: BTreeSet<_> =
        snapshots.map(|node| (BlobKind::Snapshot, node.snapshot.0)).collect();
    wanted.extend(run.workflow_hash.map(|hash| (BlobKind::Plan, hash.0)));
    let shelf = fetch(store, wanted).await;
    let guided = Guided::of(id, run, &shelf)?;
    let nothing = Told::default();
    let nodes = drawn.iter().map(|node| {
        let told = told.get(&node.id).unwrap_or(&nothing);
        describe(&guided, node, told, view.outputs.notes(node.id))
    });
    Some(Graph {
        run_id: id,
        workflow_id: run.workflow_id.clone(),
        workflow_name: guided.plan.as_ref().map(|plan| plan.name.clone()),
        status: guided.status(view).unwrap_or("unknown").to_owned(),
        preferred_tip: dag.preferred_tip().map(|tip| tip.id),
        nodes: nodes.collect(),
        nodes_left_out: count(left_out),
    })
}

fn describe(guided: &Guided<'_>, node: &Node, told: &Told<'_>, notes: Option<&str>) -> GraphNode {
    let named = |instance: StepInstanceKey| GraphStep { title: guided.title(&instance), instance };
    let gaps = told.gaps.iter().map(|(gap, open)| GraphGap {
        gap_id: gap.gap_id,
        severity: story::name(&gap.severity),
        summary: gap.summary.clone(),
        open: *open,
    });
    GraphNode {
        node_id: node.id,
        parent_node_id: node.parent,
        kind: story::name(&node.kind),
        at: told.created_ms.and_then(instant),
        cause: told.cause.as_ref().map(story::name),
        step: guided.step(node).map(named),
        pending: guided.pending(node).map(named),
        notes: notes.map(story::first_line),
        gaps: gaps.collect(),
        blockers: told.blockers.iter().map(|blocker| blocker.message.clone()).collect(),
        divergences: told.divergences.iter().map(|left| left.summary.clone()).collect(),
        preferences: told.preferences,
    }
}

/// Reads the blobs that can be read.
async fn fetch(store: &Store, wanted: BTreeSet<(BlobKind, Digest)>) -> Shelf {
    let mut shelf = Shelf::new();
    for (kind, digest) in wanted {
        if let Ok(bytes) = store.blobs.get(kind, digest).await {
            shelf.insert((kind, digest), bytes);
        }
    }
    shelf
}

#[cfg(test)]
mod tests;
