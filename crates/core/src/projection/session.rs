//! A session at a glance: its runs, how they are doing, and where the work happened.

use std::collections::{BTreeMap, BTreeSet};

use super::capabilities::Capabilities;
use super::context::{self, Contexts};
use super::dag::RunDag;
use super::gaps::Gaps;
use super::outputs::Outputs;
use super::preferences::PreferencesSet;
use super::recap::noted;
use super::resume::{Candidate, searchable};
use super::run::{RunState, RunStatus};
use super::status::{Attempts, GuidedStatus, Tip, status};
use crate::digest::{SnapshotRef, WorkflowHash};
use crate::event::guided::{Confidence, ObservationKey, ObservationRecorded, ObservedValue};
use crate::event::{Event, EventData};
use crate::id::{EventIndex, NodeId, RunId, SessionId};

/// Everything that lists and overviews of a session need.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionView {
    /// The session, once an event has named it.
    pub session: Option<SessionId>,
    /// How many events it has.
    pub events: u64,
    /// When its first and last events were minted.
    pub times: Option<Times>,
    /// The latest observation of each kind.
    pub observations: BTreeMap<ObservationKey, Observation>,
    /// Everything that was ever observed: a fact is recorded once, also when it holds again.
    pub observed: BTreeSet<(ObservationKey, String)>,
    /// The project that a run was started in.
    pub workspaces: BTreeMap<RunId, String>,
    /// Its runs.
    pub runs: BTreeMap<RunId, RunView>,
    /// What its guided nodes have put out.
    pub outputs: Outputs,
    /// The gaps that its guided runs have left open.
    pub gaps: Gaps,
    /// What its guided nodes have observed of capabilities.
    pub capabilities: Capabilities,
    /// The preferences that were set at its guided nodes.
    pub preferences: PreferencesSet,
    /// The context that its guided runs were given.
    pub contexts: Contexts,
    /// Which guided nodes were last left blocked.
    pub attempts: Attempts,
}

/// When the first and the last event were minted, in milliseconds since 1970; for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Times {
    pub first_ms: u64,
    pub last_ms: u64,
}

/// What was last observed of a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Observation {
    pub value: ObservedValue,
    pub confidence: Confidence,
    pub index: EventIndex,
}

/// One run of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct RunView {
    /// The workflow's id, once an event has named it.
    pub workflow_id: Option<String>,
    /// The plan, once the run has begun.
    pub workflow_hash: Option<WorkflowHash>,
    /// What the run is for, as whoever started it said.
    pub goal: Option<String>,
    /// How many nodes it has.
    pub nodes: u64,
    /// How many events are about it.
    pub events: u64,
    /// The last of them.
    pub last_index: EventIndex,
    /// When its first and last events were minted.
    pub times: Times,
    /// Its state, by who performs it.
    pub progress: Progress,
}

/// The state of a run, by who performs it.
#[derive(Clone, PartialEq, Debug)]
pub enum Progress {
    /// An agent is led through it.
    Guided(RunDag),
    /// The engine performs it.
    Engine(Box<RunState>),
}

/// How a run of either kind is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Status {
    Guided(GuidedStatus),
    Engine(RunStatus),
}

impl Status {
    /// The name that people and clients see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guided(status) => status.name(),
            Self::Engine(status) => status.name(),
        }
    }
}

impl RunView {
    /// The kind of run, as people and clients see it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.progress {
            Progress::Guided(_) => "guided",
            Progress::Engine(_) => "engine",
        }
    }

    /// The nodes and edges, when the run is guided.
    #[must_use]
    pub const fn dag(&self) -> Option<&RunDag> {
        match &self.progress {
            Progress::Guided(dag) => Some(dag),
            Progress::Engine(_) => None,
        }
    }
}

impl SessionView {
    /// The session as these events leave it.
    #[must_use]
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut session = Self::default();
        events.into_iter().for_each(|event| session.apply(event));
        session
    }

    /// Folds one event into the session.
    pub fn apply(&mut self, event: &Event) {
        self.session.get_or_insert(event.session);
        self.events += 1;
        let at_ms = event.id.minted_ms();
        self.times.get_or_insert(Times { first_ms: at_ms, last_ms: at_ms }).last_ms = at_ms;
        if let EventData::ObservationRecorded(seen) = &event.data {
            self.observe(event, seen);
        }
        self.outputs.apply(event);
        self.gaps.apply(event);
        self.capabilities.apply(event);
        self.preferences.apply(event);
        self.contexts.apply(event);
        self.attempts.apply(event);
        if let Some(run) = event.scope.run() {
            self.runs.entry(run).or_insert_with(|| RunView::new(run, event)).apply(event);
        }
    }

    /// What is observed at a run's node is about that run, the rest about the session.
    fn observe(&mut self, event: &Event, seen: &ObservationRecorded) {
        if let Some(run) = event.scope.run() {
            if seen.key == ObservationKey::RepoRoot {
                self.workspaces.insert(run, seen.value.as_str().to_owned());
            }
            return;
        }
        self.observed.insert((seen.key, seen.value.as_str().to_owned()));
        let (value, confidence) = (seen.value.clone(), seen.confidence);
        let observation = Observation { value, confidence, index: event.index };
        self.observations.insert(seen.key, observation);
    }

    /// How a run is doing. `is_complete` looks into the tip's snapshot of a guided run.
    pub fn status(
        &self,
        run: RunId,
        is_complete: impl FnOnce(SnapshotRef) -> bool,
    ) -> Option<Status> {
        match &self.runs.get(&run)?.progress {
            Progress::Engine(state) => Some(Status::Engine(state.status())),
            Progress::Guided(dag) => {
                let Some(tip) = dag.preferred_tip() else {
                    return Some(Status::Guided(GuidedStatus::InProgress));
                };
                let complete = is_complete(tip.snapshot);
                Some(Status::Guided(self.status_at(dag, tip.id, complete)))
            }
        }
    }

    /// How a guided run is doing on the branch that ends at a node.
    #[must_use]
    pub fn status_at(&self, dag: &RunDag, node: NodeId, complete: bool) -> GuidedStatus {
        let autonomy = self.preferences.at(dag, node).autonomy;
        status(Tip { node, complete, autonomy }, dag, &self.gaps, &self.attempts)
    }

    /// The guided runs and their other branches, as candidates for being resumed. Whether they
    /// are over, and what their workflows are called, the log alone does not say.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> {
        self.runs.iter().flat_map(|(run, view)| self.candidates_of(*run, view))
    }

    fn candidates_of(&self, run: RunId, view: &RunView) -> Vec<Candidate> {
        let observed = |key| self.observations.get(&key).map(|seen| seen.value.as_str().to_owned());
        let Some((session, dag)) = self.session.zip(view.dag()) else { return Vec::new() };
        let Some((tip, last_activity)) = dag.preferred_tip().zip(dag.last_activity()) else {
            return Vec::new();
        };
        let given = self.contexts.at(dag, tip.id);
        let notes = noted(dag, &self.outputs, tip.id).map(|(_, notes)| notes);
        let whole = Candidate {
            session,
            run,
            tip: tip.id,
            branch: false,
            finished: false,
            last_ms: view.times.last_ms,
            last_activity,
            git_head_sha: observed(ObservationKey::GitHeadSha),
            git_branch: observed(ObservationKey::GitBranch),
            goal: view.goal.clone(),
            notes: self.outputs.notes(tip.id).map(str::to_owned),
            texts: searchable(notes),
            context: searchable([context::text(&given).as_str()]),
            workflow_id: view.workflow_id.clone().unwrap_or_default(),
            workflow_name: None,
        };
        let others = dag.other_branches(tip.id).into_iter().take(BRANCHES_MAX);
        let others = others.map(|end| {
            let own = |(id, _): &(NodeId, &str)| !dag.is_on_path(*id, tip.id);
            let notes = noted(dag, &self.outputs, end.id).filter(own).map(|(_, notes)| notes);
            let mut own = self.contexts.at(dag, end.id);
            own.retain(|key, value| given.get(key) != Some(value));
            Candidate {
                tip: end.id,
                branch: true,
                last_activity: dag.last_activity_at(end.id).unwrap_or(last_activity),
                goal: None,
                notes: self.outputs.notes(end.id).map(str::to_owned),
                texts: searchable(notes),
                context: searchable([context::text(&own).as_str()]),
                ..whole.clone()
            }
        });
        let others: Vec<Candidate> = others.collect();
        std::iter::once(whole).chain(others).collect()
    }
}

/// How many branches of a run are searched beside the preferred one.
const BRANCHES_MAX: usize = 16;

impl RunView {
    fn new(run: RunId, event: &Event) -> Self {
        let at_ms = event.id.minted_ms();
        Self {
            workflow_id: None,
            workflow_hash: None,
            goal: None,
            nodes: 0,
            events: 0,
            last_index: event.index,
            times: Times { first_ms: at_ms, last_ms: at_ms },
            // An engine-performed run is queued before anything else happens to it.
            progress: match event.data {
                EventData::RunQueued(_) => Progress::Engine(Box::new(RunState::new(run))),
                _ => Progress::Guided(RunDag::new(run)),
            },
        }
    }

    fn apply(&mut self, event: &Event) {
        self.events += 1;
        self.last_index = event.index;
        self.times.last_ms = event.id.minted_ms();
        match &event.data {
            EventData::RunQueued(queued) => self.workflow_id = Some(queued.workflow_id.clone()),
            EventData::RunStarted(started) => {
                self.workflow_id = Some(started.workflow_id.clone());
                self.workflow_hash = Some(started.workflow_hash);
                self.goal.clone_from(&started.goal);
            }
            EventData::NodeCreated(_) | EventData::StepCompleted(_) => self.nodes += 1,
            _ => {}
        }
        match &mut self.progress {
            Progress::Guided(dag) => dag.apply(event),
            Progress::Engine(state) => state.apply(event),
        }
    }
}
