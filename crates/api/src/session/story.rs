//! What the nodes of guided runs tell, gathered from the log, the snapshots and the plans.

use std::collections::BTreeMap;

use cairn_core::digest::Digest;
use cairn_core::event::guided::{
    AdvanceOutcome, CapabilityObserved, DecisionTraceAppended, DivergenceRecorded, EdgeCauseKind,
    GapRecorded, Preferences, Resolution,
};
use cairn_core::event::{Event, EventData};
use cairn_core::id::{NodeId, RunId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::pin::BlobKind;
use cairn_core::plan::Plan;
use cairn_core::projection::dag::{Node, RunDag};
use cairn_core::projection::session::{RunView, SessionView};
use cairn_core::reason::Blocker;
use cairn_core::snapshot::ExecutionSnapshot;
use serde::Serialize;
use serde_json::Value;

/// Blobs that were at hand. One that is not here could not be read.
pub(super) type Shelf = BTreeMap<(BlobKind, Digest), Vec<u8>>;

/// What was recorded at one node beside its outputs.
#[derive(Default)]
pub(super) struct Told<'e> {
    /// The gaps that were disclosed, and whether each is still open.
    pub(super) gaps: Vec<(&'e GapRecorded, bool)>,
    pub(super) divergences: Vec<&'e DivergenceRecorded>,
    pub(super) capabilities: Vec<&'e CapabilityObserved>,
    pub(super) traces: Vec<&'e DecisionTraceAppended>,
    /// What the preferences were changed to.
    pub(super) preferences: Option<Preferences>,
    /// What kept the last attempt to leave it from doing so.
    pub(super) blockers: &'e [Blocker],
    /// When the event was minted that created it.
    pub(super) created_ms: Option<u64>,
    /// Why it was made where it is.
    pub(super) cause: Option<EdgeCauseKind>,
}

/// What was recorded at each node.
pub(super) fn told<'e>(events: &'e [Event], view: &SessionView) -> BTreeMap<NodeId, Told<'e>> {
    let mut nodes: BTreeMap<NodeId, Told<'e>> = BTreeMap::new();
    for event in events {
        if let EventData::EdgeCreated(edge) = &event.data {
            nodes.entry(edge.to_node_id).or_default().cause = Some(edge.cause.kind);
        }
        let (Some(run), Some(node)) = (event.scope.run(), event.scope.node()) else { continue };
        let told = nodes.entry(node).or_default();
        match &event.data {
            EventData::NodeCreated(_) => told.created_ms = Some(event.id.minted_ms()),
            EventData::GapRecorded(gap) if gap.resolution == (Resolution::Unresolved {}) => {
                let open = view.gaps.at_node(run, node).any(|open| open.id == gap.gap_id);
                told.gaps.push((gap, open));
            }
            EventData::DivergenceRecorded(divergence) => told.divergences.push(divergence),
            EventData::CapabilityObserved(seen) => told.capabilities.push(seen),
            EventData::DecisionTraceAppended(trace) => told.traces.push(trace),
            EventData::PreferencesChanged(change) => told.preferences = Some(change.effective),
            EventData::AdvanceRecorded(advance) => {
                told.blockers = match &advance.outcome {
                    AdvanceOutcome::Blocked { blockers } => blockers.blockers(),
                    AdvanceOutcome::Advanced { .. } => &[],
                };
            }
            _ => {}
        }
    }
    nodes
}

/// A guided run, with what of its plan and its snapshots was at hand.
pub(super) struct Guided<'a> {
    pub(super) id: RunId,
    pub(super) run: &'a RunView,
    pub(super) dag: &'a RunDag,
    pub(super) plan: Option<Plan>,
    shelf: &'a Shelf,
}

impl<'a> Guided<'a> {
    /// The run, when it is a guided one.
    pub(super) fn of(id: RunId, run: &'a RunView, shelf: &'a Shelf) -> Option<Self> {
        let hash = run.workflow_hash.map(|hash| (BlobKind::Plan, hash.0));
        let plan = hash.and_then(|plan| shelf.get(&plan));
        let plan = plan.and_then(|bytes| Plan::decode(bytes).ok());
        Some(Self { id, run, dag: run.dag()?, plan, shelf })
    }

    /// How it is doing; none when the snapshot at its tip cannot be read.
    pub(super) fn status(&self, view: &SessionView) -> Option<&'static str> {
        let complete = match self.dag.preferred_tip() {
            Some(tip) => self.snapshot(tip)?.state.is_complete(),
            None => false,
        };
        Some(view.status(self.id, |_| complete)?.name())
    }

    /// The step that led to a node: the one that was to be done at the node before.
    pub(super) fn step(&self, node: &Node) -> Option<StepInstanceKey> {
        self.pending(self.dag.node(node.parent?)?)
    }

    /// The step that is to be done at a node.
    pub(super) fn pending(&self, node: &Node) -> Option<StepInstanceKey> {
        self.snapshot(node)?.state.pending()
    }

    /// A step's name for people; its id when the plan is not at hand.
    pub(super) fn title(&self, step: &StepInstanceKey) -> String {
        let found = self.plan.as_ref().and_then(|plan| plan.step(&step.step));
        found.map_or_else(|| step.step.to_string(), |step| step.title.clone())
    }

    fn snapshot(&self, node: &Node) -> Option<ExecutionSnapshot> {
        let bytes = self.shelf.get(&(BlobKind::Snapshot, node.snapshot.0))?;
        ExecutionSnapshot::decode(bytes).ok()
    }
}

/// The name that a value without particulars has on the wire.
pub(super) fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The names of a reason: what is missing, and what of it.
pub(super) fn names(reason: &impl Serialize) -> String {
    let value = serde_json::to_value(reason).unwrap_or_default();
    let part = |key| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    format!("{}: {}", part("category"), part("detail"))
}

/// How many characters of a line are shown where there is room for a line.
const LINE_MAX: usize = 120;

/// The first line that says something, cut to a readable length.
pub(super) fn first_line(notes: &str) -> String {
    // A heading's marks say nothing where it stands alone.
    let mut lines = notes.lines().map(|line| line.trim().trim_start_matches('#').trim_start());
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let mut words = line.chars();
    let short: String = words.by_ref().take(LINE_MAX).collect();
    if words.next().is_some() { format!("{}…", short.trim_end()) } else { short }
}
