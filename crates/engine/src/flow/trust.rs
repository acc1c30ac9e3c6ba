//! Sessions from elsewhere: what they claim, what they would do, and who says that they may.
//!
//! A bundle carries no authority. What it says of people, secrets and places counts for nothing
//! here until a person has seen it; then the session is moved from the papers to the others, with
//! its runs at rest. Trust is given to one bundle, by the digest of everything in it: the same
//! plan with another history is another bundle.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use cairn_core::capabilities::Capabilities;
use cairn_core::digest::{Digest, WorkflowHash};
use cairn_core::event::engine::RunPaused;
use cairn_core::event::guided::RunStarted;
use cairn_core::event::{By, Event, EventData, NewEvent, Scope};
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::pin::BlobKind;
use cairn_core::projection::run::{RunState, RunStatus};
use cairn_core::projection::session::SessionView;
use cairn_core::translate::{self, Blobs, Names};
use cairn_store as store;
use cairn_store::bundle::{self, Imported};
use cairn_store::port::{Origin, Trusted};
use cairn_store::{Epoch, Store};

use super::index::Index;
use super::reading::Reading;
use super::workflows::Workflows;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::record::{Action, Deed, Object, Record};

/// How bundled workflows are called.
const OURS: &str = "wr.";

/// What a session from elsewhere claims, and what it would do.
#[derive(Clone, PartialEq, Debug)]
pub struct Claims {
    /// The session.
    pub session: SessionId,
    /// Where it comes from, and who trusts it.
    pub origin: Origin,
    /// How many events it has.
    pub events: u64,
    /// Its runs.
    pub runs: Vec<ClaimedRun>,
    /// What the plans of its runs can do.
    pub plans: Vec<ClaimedPlan>,
    /// The folders that it says its runs work in.
    pub workspaces: Vec<String>,
}

/// A run of a session from elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimedRun {
    /// The run.
    pub run: RunId,
    /// What it says it is a run of, if it does.
    pub workflow: Option<String>,
    /// Where it says it stands; none of a run that an agent is led through.
    pub status: Option<RunStatus>,
    /// How many events are about it.
    pub events: u64,
    /// What it says people decided: the step, and who.
    pub decided: Vec<(String, String)>,
}

/// A plan of a session from elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimedPlan {
    /// Its digest.
    pub hash: WorkflowHash,
    /// What it calls itself.
    pub workflow: String,
    /// The file here whose plan is the same; without one it gets no settings and no secrets.
    pub same_as: Option<String>,
    /// What it can do.
    pub can: Capabilities,
}

/// Somebody who trusts a session.
#[derive(Clone, Debug)]
pub struct Truster<'a> {
    /// Who.
    pub by: By,
    /// The bundle that they were shown.
    pub root: Digest,
    /// The folder in which the runs of agents go on.
    pub workspace: Option<&'a Path>,
}

/// Takes sessions in, says what they claim, and lets them go on.
pub(super) struct Trust {
    pub(super) host: Arc<dyn Host>,
    pub(super) store: Store,
    pub(super) index: Arc<Index>,
    pub(super) reading: Arc<Reading>,
    pub(super) workflows: Arc<Workflows>,
    pub(super) record: Record,
}

impl Trust {
    /// Takes a bundle in, as paper.
    pub(super) async fn import(&self, bytes: &[u8], by: By) -> Result<Imported> {
        let digest = Digest::of(bytes);
        let object = Object { name: format!("bundle {digest}"), ..Object::default() };
        let deed = Deed { by, action: Action::ImportSession, object, arguments: Some(digest) };
        let work = async {
            // Which runs are here already is known from the lists.
            self.index.catch_up().await?.require_all()?;
            self.reading.papers().catch_up().await?;
            Ok(bundle::import(&self.store, bytes).await?)
        };
        self.record.change_named(deed, |_| work, |imported| Some(imported.session)).await
    }

    /// What a paper claims, and what it would do.
    pub(super) async fn claims(&self, session: SessionId) -> Result<Claims> {
        let papers = self.papers(session).await?;
        let origin = papers.sessions.origin(session).await?;
        let origin = origin.ok_or(store::Error::NotFound(session))?;
        let events = papers.log.read(session, EventIndex(0)).await?;
        let mut plans = BTreeMap::new();
        for started in events.iter().filter_map(started) {
            if let Entry::Vacant(place) = plans.entry(started.workflow_hash) {
                place.insert(self.plan(&papers, started).await?);
            }
        }
        let workspaces: BTreeSet<String> =
            events.iter().filter_map(workspace).map(str::to_owned).collect();
        Ok(Claims {
            session,
            origin,
            events: events.len() as u64,
            runs: claimed(&events),
            plans: plans.into_values().collect(),
            workspaces: workspaces.into_iter().collect(),
        })
    }

    async fn plan(&self, papers: &Store, started: &RunStarted) -> Result<ClaimedPlan> {
        let (hash, workflow) = (started.workflow_hash, started.workflow_id.clone());
        let plan = super::plans::read(papers, hash).await?;
        let same_as = self.same(&workflow, hash).await;
        Ok(ClaimedPlan { hash, workflow, same_as, can: Capabilities::of(&plan) })
    }

    /// The place of the workflow here that has an id and a plan.
    async fn same(&self, workflow: &str, hash: WorkflowHash) -> Option<String> {
        let found = self.workflows.find(workflow).await.ok()?;
        let same = found.hash().is_ok_and(|own| own == hash);
        same.then(|| found.identity().place().to_owned())
    }

    /// The papers that hold a session.
    async fn papers(&self, session: SessionId) -> Result<Store> {
        let papers = self.store.papers.find()?;
        let papers = papers.ok_or(store::Error::NotFound(session))?;
        match papers.sessions.list().await?.contains(&session) {
            true => Ok(papers),
            false => Err(store::Error::NotFound(session).into()),
        }
    }

    /// Lets a paper go on here. Its runs rest until somebody resumes them.
    pub(super) async fn trust(&self, session: SessionId, truster: &Truster<'_>) -> Result<Claims> {
        let (by, action) = (truster.by.clone(), Action::TrustSession);
        let object = Object { session: Some(session), ..Object::default() };
        let deed = Deed { by, action, object, arguments: Some(truster.root) };
        self.record.change(deed, self.move_over(session, truster)).await
    }

    async fn move_over(&self, session: SessionId, truster: &Truster<'_>) -> Result<Claims> {
        let claims = self.claims(session).await?;
        if claims.origin.root != truster.root {
            let (found, given) = (claims.origin.root, truster.root);
            return Err(Error::OtherBundle { session, found, given });
        }
        let papers = self.papers(session).await?;
        let (events, blobs) = bundle::whole(&papers, session).await?;
        require_known_ours(&claims, &events)?;
        let (mut events, blobs) = without_snapshots(events, blobs);
        put_in_place(&claims, &mut events);
        let names = self.names(&claims, &events, truster).await?;
        let translated = translate::translate(events, blobs, names);
        let (mut events, blobs) = translated.map_err(|error| Error::Broken(error.to_string()))?;
        self.pause(session, &mut events, truster)?;
        let by = truster.by.name.clone();
        let trusted = Trusted { by, at_ms: self.host.now_ms() };
        let origin = Origin { trusted: Some(trusted), ..claims.origin.clone() };
        match bundle::adopt(&self.store, session, (events, blobs), Some(origin.clone())).await {
            // Whoever trusted it before was cut off before the paper was gone.
            Err(store::Error::Exists(_)) if self.is_same(session, truster.root).await? => {}
            adopted => adopted?,
        }
        papers.sessions.delete(session, None::<Epoch>).await?;
        let _ = self.index.catch_up().await?;
        Ok(Claims { origin, ..claims })
    }

    async fn is_same(&self, session: SessionId, root: Digest) -> Result<bool> {
        let origin = self.store.sessions.origin(session).await?;
        Ok(origin.is_some_and(|origin| origin.root == root))
    }

    /// What is called otherwise from now on: places that are here, and runs whose ids were taken
    /// since the session came.
    async fn names(
        &self,
        claims: &Claims,
        events: &[Event],
        truster: &Truster<'_>,
    ) -> Result<Names> {
        let mut names = Names::default();
        if let Some(folder) = truster.workspace {
            let folder = folder.display().to_string();
            claims.workspaces.iter().for_each(|claimed| names.set(claimed, &folder));
        }
        for (run, own) in translate::by_run(events) {
            if self.index.find(run).await?.is_some() {
                names.set_run(&own, run, self.host.run_id()?);
            }
        }
        Ok(names)
    }

    /// Lets every run rest that is not over.
    fn pause(
        &self,
        session: SessionId,
        events: &mut Vec<Event>,
        truster: &Truster<'_>,
    ) -> Result<()> {
        let open = |(run, own): (RunId, Vec<&Event>)| {
            let state = RunState::fold(run, own);
            (state.queued.is_some() && state.end.is_none()).then_some(run)
        };
        let open: Vec<RunId> = translate::by_run(events).into_iter().filter_map(open).collect();
        for run in open {
            let By { name: by, via } = truster.by.clone();
            let data = RunPaused { by, change_id: self.host.change_id()?, imported: true, via };
            let event =
                NewEvent { id: self.host.event_id()?, scope: Scope::Run(run), data: data.into() };
            events.push(event.at(session, EventIndex(events.len() as u64)));
        }
        Ok(())
    }
}

/// Refuses runs that call themselves what only this program has, with another plan or none.
fn require_known_ours(claims: &Claims, events: &[Event]) -> Result<()> {
    let pinned = pinned(claims, events);
    for event in events {
        let named = match &event.data {
            EventData::RunStarted(started) => &started.workflow_id,
            EventData::RunQueued(queued) => &queued.workflow_id,
            _ => continue,
        };
        let Some(run) = event.scope.run().filter(|_| named.starts_with(OURS)) else { continue };
        let is_here = |place: &str| !bundle::is_elsewhere(place);
        let of = pinned.get(&run);
        let is_known = of.is_some_and(|(workflow, place)| workflow == named && is_here(place));
        if !is_known {
            return Err(Error::NotOurs { run, workflow: named.clone() });
        }
    }
    Ok(())
}

/// What each run that began is a run of, and where that is: in the file here whose plan is the
/// same, or nowhere.
fn pinned(claims: &Claims, events: &[Event]) -> BTreeMap<RunId, (String, String)> {
    let of = |event: &Event| {
        let (started, run) = (started(event)?, event.scope.run()?);
        let (hash, workflow) = (started.workflow_hash, &started.workflow_id);
        let is_it = |plan: &&ClaimedPlan| plan.hash == hash && plan.workflow == *workflow;
        let place = claims.plans.iter().find(is_it).and_then(|plan| plan.same_as.clone());
        let place = place.unwrap_or_else(|| nowhere(claims, &format!("{}/{workflow}", hash.0)));
        Some((run, (workflow.clone(), place)))
    };
    events.iter().filter_map(of).collect()
}

/// A place that nothing of this machine is in, and nothing of another bundle.
fn nowhere(claims: &Claims, what: &str) -> String {
    bundle::place_elsewhere(&format!("/{}/{what}", claims.origin.root))
}

/// Makes each run one of the workflow here that has the plan it began with, or of none. What it
/// calls itself, and what other runs of the session do, counts for nothing.
fn put_in_place(claims: &Claims, events: &mut [Event]) {
    let pinned = pinned(claims, events);
    for event in events {
        let of = event.scope.run().and_then(|run| pinned.get(&run));
        match (&mut event.data, of) {
            (EventData::RunStarted(started), Some((_, place))) => {
                started.workflow_source_ref.clone_from(place);
            }
            (EventData::RunQueued(queued), Some((workflow, place))) => {
                queued.workflow_id.clone_from(workflow);
                queued.workflow_source_ref = Some(place.clone());
            }
            (EventData::RunQueued(queued), None) => {
                queued.workflow_source_ref = Some(nowhere(claims, &queued.workflow_id));
            }
            _ => {}
        }
    }
}

/// A session without the states that it says it had: they follow from its events.
fn without_snapshots(events: Vec<Event>, blobs: Blobs) -> (Vec<Event>, Blobs) {
    let own = events.into_iter().filter(|e| !matches!(e.data, EventData::SnapshotTaken(_)));
    let own = (0..).zip(own).map(|(at, event)| Event { index: EventIndex(at), ..event });
    let events: Vec<Event> = own.collect();
    let needed: BTreeSet<_> =
        events.iter().flat_map(Event::pins).map(|pin| (pin.blob_kind, pin.snapshot_ref)).collect();
    let is_needed = |(kind, bytes): &(BlobKind, Vec<u8>)| {
        *kind != BlobKind::Snapshot || needed.contains(&(*kind, Digest::of(bytes)))
    };
    (events, blobs.into_iter().filter(is_needed).collect())
}

const fn started(event: &Event) -> Option<&RunStarted> {
    match &event.data {
        EventData::RunStarted(started) => Some(started),
        _ => None,
    }
}

/// The folder that an event says a run works in.
fn workspace(event: &Event) -> Option<&str> {
    use cairn_core::event::guided::{ObservationKey, ObservedValue};
    match &event.data {
        EventData::ObservationRecorded(seen) => match &seen.value {
            ObservedValue::Path(path) if seen.key == ObservationKey::RepoRoot => Some(path),
            _ => None,
        },
        EventData::RunQueued(queued) => queued.workspace.as_deref(),
        EventData::RunStarted(started) => started.workspace.as_deref(),
        _ => None,
    }
}

/// What the runs of a session claim.
fn claimed(events: &[Event]) -> Vec<ClaimedRun> {
    let mut view = SessionView::default();
    events.iter().for_each(|event| view.apply(event));
    let known = |run| view.runs.get(&run).and_then(|run| run.workflow_id.clone());
    let runs = translate::by_run(events).into_iter();
    runs.map(|(run, own)| claimed_run(run, &own, known(run))).collect()
}

fn claimed_run(run: RunId, own: &[&Event], workflow: Option<String>) -> ClaimedRun {
    let state = RunState::fold(run, own.iter().copied());
    let queued = state.queued.as_ref().map(|queued| queued.workflow_id.clone());
    let mut asked = BTreeMap::new();
    let mut decided = Vec::new();
    for event in own {
        match &event.data {
            EventData::TaskOpened(task) => {
                asked.insert(task.task_id, task.instance.to_string());
            }
            EventData::TaskAnswered(task) => {
                // An answer to nothing is shown by the name of its question.
                let question = || task.task_id.to_string();
                let step = asked.get(&task.task_id).cloned().unwrap_or_else(question);
                decided.push((step, task.by.clone()));
            }
            _ => {}
        }
    }
    ClaimedRun {
        run,
        workflow: queued.or(workflow),
        status: state.queued.is_some().then(|| state.status()),
        events: own.len() as u64,
        decided,
    }
}
