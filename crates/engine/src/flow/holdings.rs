//! What there is to be owned of a workflow: its desk, its sessions, and the runs left in them.
//!
//! Leases are acquired here and what is left is read; who goes on with it is in
//! [`super::ownership`].

use std::collections::BTreeSet;
use std::sync::Arc;

use cairn_core::event::engine::SessionListed;
use cairn_core::event::guided::{RunStarted, SessionCreated};
use cairn_core::event::{NewEvent, Scope};
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::plan::Overflow;
use cairn_core::projection::run::RunState;
use cairn_store as store;
use cairn_store::port::{Lease, SessionRead};
use cairn_store::{AppendPlan, Epoch, Store};

use super::desk::OpenRuns;
use super::forks::unfit;
use super::index::{self, Filter, Index, Summary};
use super::intake::triggers_of;
use super::lane::Adopted;
use super::lanes::Lanes;
use super::options::{Options, overflow};
use super::perform::Steps;
use super::plans::{Plans, Ready};
use super::reading::Reading;
use super::snapshots::Progress;
use super::tail::Others;
use super::workflows::Workflows;
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::host::Host;

/// What others are told that a session is owned for.
const PERFORM: &str = "perform its runs";
/// How many runs of before are read at most to count them for a limit of runs in a span of time.
const LEARNT_MAX: usize = 100_000;

/// Acquires what can be owned, and reads what is left in it.
pub(super) struct Holdings {
    pub(super) host: Arc<dyn Host>,
    pub(super) store: Store,
    pub(super) index: Arc<Index>,
    pub(super) reading: Arc<Reading>,
    pub(super) workflows: Arc<Workflows>,
    pub(super) plans: Arc<Plans>,
    pub(super) lanes: Arc<Lanes>,
    pub(super) steps: Arc<Steps>,
    pub(super) others: Arc<Others>,
    pub(super) options: Arc<Options>,
}

/// What is left to do in a session that this process owns.
pub(super) struct Unfinished {
    pub(super) lease: Arc<dyn Lease>,
    pub(super) runs: Vec<Adopted>,
    pub(super) bytes: u64,
}

impl Unfinished {
    /// The runs that are not over.
    pub(super) fn open(&self) -> OpenRuns {
        let id = |run: &Adopted| run.state.run_id;
        let begun = self.runs.iter().filter(|run| run.state.started.is_some()).map(id).collect();
        let all = self.runs.iter().map(id).collect();
        OpenRuns { session: self.lease.session(), begun, all }
    }
}

impl Holdings {
    /// The leases of all sessions of a workflow, as far as this process does not have them:
    /// whoever had the desk before can record nothing in any of them from then on. A lane here
    /// that was replaced, perhaps without having heard of it, is over when this returns.
    pub(super) async fn leases_of(&self, workflow: &Identity) -> Result<Vec<Arc<dyn Lease>>> {
        let mut leases = Vec::new();
        for SessionRead { session, .. } in self.index.sessions_of(workflow).await? {
            if session == triggers_of(workflow) || self.has_lane(session).await? {
                continue;
            }
            match self.store.leases.acquire(session, PERFORM).await {
                Ok(lease) => leases.push(Arc::from(lease)),
                Err(store::Error::NotFound(_)) => {}
                Err(store::Error::Owned { owner, .. }) => {
                    let workflow = workflow.id().to_owned();
                    return Err(Error::AdmittedElsewhere { workflow, session, owner });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(leases)
    }

    /// Whether this process decides for a session, and was not replaced.
    async fn has_lane(&self, session: SessionId) -> Result<bool> {
        let Some(lane) = self.lanes.get(session) else { return Ok(false) };
        match lane.verify().await {
            Ok(()) => Ok(true),
            Err(Error::LaneDown { .. } | Error::Store(store::Error::Fenced { .. })) => {
                // It has been told, and ends.
                lane.gone().await;
                Ok(false)
            }
            // Somebody deleted the session: there is nothing to decide for.
            Err(Error::Store(store::Error::NotFound(_))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The lease of a session.
    pub(super) async fn lease_of(&self, session: SessionId) -> Result<Arc<dyn Lease>> {
        Ok(Arc::from(self.store.leases.acquire(session, PERFORM).await?))
    }

    /// Records at the desk of a workflow which sessions were acquired for its runs. Nothing is
    /// recorded in them before: whoever was replaced at the desk learns of it here.
    pub(super) async fn list_at(
        &self,
        workflow: &Identity,
        desk: Epoch,
        leases: &[Arc<dyn Lease>],
    ) -> Result<()> {
        if leases.is_empty() {
            return Ok(());
        }
        let event = |lease: &Arc<dyn Lease>| {
            let listed = SessionListed {
                epoch: lease.epoch().0,
                listed_id: lease.session(),
                workflow_id: workflow.id().to_owned(),
                workflow_source_ref: Some(workflow.place().to_owned()),
            };
            Ok(NewEvent { id: self.host.event_id()?, scope: Scope::Session, data: listed.into() })
        };
        let events = leases.iter().map(event).collect::<Result<_>>()?;
        let plan = AppendPlan { events, fence: Some(desk), ..AppendPlan::default() };
        self.store.log.append(triggers_of(workflow), plan).await?;
        Ok(())
    }

    /// The sessions of a workflow in which a run is not over, as the list of runs has them.
    pub(super) async fn open_sessions(&self, workflow: &Identity) -> Result<BTreeSet<SessionId>> {
        let open = Filter { is_over: Some(false), ..index::of(workflow) };
        Ok(self.index.list(&open).await?.iter().map(|summary| summary.session).collect())
    }

    /// The lease of a desk. Its session is made when there is none.
    pub(super) async fn desk_lease(&self, workflow: &Identity) -> Result<Arc<dyn Lease>> {
        let session = triggers_of(workflow);
        let acquire = || self.store.leases.acquire(session, "admit runs");
        let acquired = match acquire().await {
            Err(store::Error::NotFound(_)) => {
                self.make_session(session).await?;
                acquire().await
            }
            acquired => acquired,
        };
        match acquired {
            Ok(lease) => Ok(Arc::from(lease)),
            Err(store::Error::Owned { owner, .. }) => {
                let workflow = workflow.id().to_owned();
                Err(Error::AdmittedElsewhere { workflow, session, owner })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// When runs of a workflow began that may still count, as the list of runs has them: a
    /// restart does not let in what it would not have.
    pub(super) async fn begun_lately(&self, workflow: &Identity) -> Result<Vec<u64>> {
        let found = self.workflows.find_same(workflow).await.ok();
        let plan = found.as_ref().and_then(|found| found.compiled().ok());
        // No more of them can count than the limit lets in, beside those that wait for it.
        let most = plan.map(|compiled| self.options.rate(&compiled.plan).runs_max);
        let most = most.map_or(0, |most| usize::try_from(most).unwrap_or(LEARNT_MAX));
        let limit = Some(most.saturating_mul(2).clamp(1_000, LEARNT_MAX));
        let filter = Filter { limit, with_retired: true, ..index::of(workflow) };
        // One that waits for the rate counts when it begins, and any other when it is asked for.
        let waits = |run: &Summary| {
            let trigger = run.trigger.as_ref().and_then(|trigger| trigger.parse().ok());
            plan.is_some_and(|compiled| {
                overflow(&compiled.plan, trigger.as_ref()) == Some(Overflow::Queue)
            })
        };
        let counted = |run: &Summary| if waits(run) { run.started_ms } else { Some(run.queued_ms) };
        Ok(self.index.list(&filter).await?.iter().filter_map(counted).collect())
    }

    /// Has the list of runs know all that sessions hold which this process owns. Whoever had them
    /// before may have gone on since they were last looked at.
    pub(super) async fn know(&self, sessions: impl Iterator<Item = SessionId>) -> Result<()> {
        self.index.catch_up().await?.require(sessions)
    }

    /// Loads what is left to do in a session that this process owns and knows.
    pub(super) async fn load(&self, lease: Arc<dyn Lease>) -> Result<Unfinished> {
        let session = lease.session();
        self.steps.end_left(session).await?;
        self.others.tell_before_taking(session).await;
        let filter = Filter { session: Some(session), is_over: Some(false), ..Filter::default() };
        let open = self.index.list(&filter).await?;
        let runs = self.adopted(session, &open).await?;
        let bytes = self.store.log.status(session).await?.bytes;
        Ok(Unfinished { lease, runs, bytes })
    }

    /// The runs of a session that is known and cannot be loaded.
    pub(super) async fn listed(&self, session: SessionId) -> Result<OpenRuns> {
        let filter = Filter { session: Some(session), is_over: Some(false), ..Filter::default() };
        let open = self.index.list(&filter).await?;
        // One that is paused may never have begun.
        let begun = open.iter().filter(|run| run.started_ms.is_some());
        let (begun, all) = (begun.map(|run| run.run).collect(), open.iter().map(|run| run.run));
        Ok(OpenRuns { session, begun, all: all.collect() })
    }

    /// Runs of a session as their events left them.
    async fn adopted(&self, session: SessionId, open: &[Summary]) -> Result<Vec<Adopted>> {
        let Some(from) = open.iter().map(Summary::unread).min() else {
            return Ok(Vec::new());
        };
        let events = self.store.log.read(session, from).await?;
        let mut runs = Vec::new();
        for summary in open {
            let (state, progress) = self.reading.state_from(summary, &events, from).await?;
            if state.end.is_some() {
                continue;
            }
            let (first, last) = self.reading.ends_of(summary, &events).await?;
            let Some(adopted) = self.adopt(state, progress, summary, last).await? else { continue };
            runs.push((first, adopted));
        }
        // Those that have waited longest are enlisted first.
        runs.sort_by_key(|(first, run)| (run.queued_ms, *first));
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }

    async fn adopt(
        &self,
        state: RunState,
        progress: Progress,
        summary: &Summary,
        last: Option<EventIndex>,
    ) -> Result<Option<Adopted>> {
        let started = match &state.started {
            Some(started) => started.clone(),
            // It was asked for and not begun: it follows the workflow as it is now.
            None => {
                let Ok(found) = self.workflows.find_same(&summary.identity()).await else {
                    return Ok(None);
                };
                let ready = self.plans.pin(&found).await?;
                started(&found, &ready)
            }
        };
        let ready = self.plans.get(started.workflow_hash).await?;
        // The workflow may ask for other things than it did when the run was asked for.
        let begun = state.started.is_some();
        let queued = state.queued.as_ref().filter(|_| !begun);
        let unfit = queued.and_then(|queued| unfit(&ready.graph.plan, queued));
        let unfit = unfit.map(|error| error.to_string());
        let Summary { first, queued_ms, started_ms, .. } = *summary;
        Ok(Some(Adopted {
            state,
            progress,
            ready,
            started,
            first,
            last,
            queued_ms,
            started_ms,
            unfit,
        }))
    }

    /// Makes a session.
    pub(super) async fn make_session(&self, session: SessionId) -> Result<()> {
        let (id, scope) = (self.host.event_id()?, Scope::Session);
        let created = NewEvent { id, scope, data: SessionCreated {}.into() };
        let plan = AppendPlan { events: vec![created], ..AppendPlan::default() };
        match self.store.log.append(session, plan).await {
            // Somebody else was first, in this moment.
            Ok(_) | Err(store::Error::Unfenced { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What pins a run to the workflow as it is now.
pub(super) fn started(found: &crate::catalog::Found, ready: &Ready) -> RunStarted {
    RunStarted {
        assets: ready.graph.plan.assets.iter().map(|asset| asset.sha256).collect(),
        goal: None,
        workflow_hash: ready.hash,
        workflow_id: found.id.clone(),
        workflow_source_kind: crate::guided::source_kind(found.kind),
        workflow_source_ref: found.identity().place().to_owned(),
        workspace: None,
    }
}
