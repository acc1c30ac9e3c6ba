//! Which sessions this process owns, and who goes on with what was left.
//!
//! Whoever has the desk of a workflow owns every session of it in which a run is not over. So a
//! session is taken by taking the desk first, and a desk is given back when one of its sessions
//! cannot be had.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::SessionListed;
use cairn_core::event::guided::RunStarted;
use cairn_core::event::{NewEvent, Scope};
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::plan::{Overflow, Plan, RateLimit};
use cairn_core::projection::run::{RunState, RunStatus};
use cairn_core::text::Slug;
use cairn_store as store;
use cairn_store::AppendPlan;
use cairn_store::port::{Lease, SessionRead};

use super::desk::{Desk, Limits};
use super::forks::unfit;
use super::index::{self, Filter, Summary};
use super::intake::triggers_of;
use super::lane::{Adopted, Lane, Message};
use super::plans::Ready;
use super::snapshots::Progress;
use super::{Inner, mail};
use crate::catalog::Identity;
use crate::error::{Error, Result};

/// How long a session is left alone whose lane could not record what it decided.
pub(super) const REVIVE_MIN: Duration = Duration::from_millis(100);
const REVIVE_MAX: Duration = Duration::from_secs(30);
/// What others are told that a session is owned for.
const PERFORM: &str = "perform its runs";
/// How many runs of before count for a limit of runs in a span of time.
const LEARNT_MAX: usize = 1_000;

/// What is left to do in a session that this process owns.
struct Unfinished {
    lease: Arc<dyn Lease>,
    runs: Vec<Adopted>,
    bytes: u64,
}

impl Unfinished {
    /// Tells the desk of a workflow which runs there are, and which of them have their turn.
    fn enlist(&self, desk: &Desk) {
        let session = self.lease.session();
        let id = |run: &Adopted| run.state.run_id;
        for run in self.runs.iter().filter(|run| run.state.started.is_some()) {
            desk.goes_on(id(run), session);
        }
        desk.reconcile(session, &self.runs.iter().map(id).collect());
    }
}

impl Inner {
    /// Whether nothing more is begun.
    pub(super) fn is_draining(&self) -> bool {
        self.lanes.draining.load(Ordering::Acquire)
    }

    /// Whether the steps of runs are left to another process.
    pub(super) fn is_holding(&self) -> bool {
        self.lanes.holding.load(Ordering::Acquire)
    }

    /// How many runs of a plan may be under way at once.
    pub(super) fn at_once(&self, plan: &Plan) -> usize {
        let own = plan.policy.concurrency_max;
        own.map_or(self.options.runs_at_once, |max| usize::try_from(max).unwrap_or(usize::MAX))
    }

    /// How many runs of a plan may begin in a span of time.
    pub(super) fn rate(&self, plan: &Plan) -> RateLimit {
        let usual = RateLimit { per_ms: 60_000, runs_max: self.options.runs_per_minute };
        plan.policy.rate_limit.clone().unwrap_or(usual)
    }

    /// What a run of a plan waits for that a trigger asked for.
    pub(super) fn limits(&self, plan: &Plan, trigger: Option<&Slug>) -> Limits {
        let waits = overflow(plan, trigger) == Some(Overflow::Queue);
        Limits { most: self.at_once(plan), rate: waits.then(|| self.rate(plan)) }
    }

    /// The desk of a workflow, which this process takes when nobody has it.
    pub(super) async fn desk(self: &Arc<Self>, workflow: &Identity) -> Result<Arc<Desk>> {
        if let Some(desk) = self.lanes.desk(workflow) {
            return Ok(desk);
        }
        let taking = self.lanes.taking.lock().await;
        if let Some(desk) = self.lanes.desk(workflow) {
            return Ok(desk);
        }
        let desk = self.take_desk(workflow).await?;
        drop(taking);
        self.begin_received(&desk).await?;
        Ok(desk)
    }

    /// Takes the desk of a workflow, and every session of it in which a run is not over: all of
    /// them or nothing.
    async fn take_desk(self: &Arc<Self>, workflow: &Identity) -> Result<Arc<Desk>> {
        let lease = self.desk_lease(workflow).await?;
        // Whoever had it before may have gone on since it was last looked at.
        self.index.catch_up().await?;
        let leases = self.leases_of(workflow).await?;
        let known = self.lanes.desks().get(workflow).cloned();
        let desk = match known {
            Some(desk) => {
                desk.renew(lease);
                desk
            }
            None => Arc::new(Desk::new(workflow.clone(), lease, Arc::clone(&self.host))),
        };
        // Whoever had it meanwhile has let in some.
        desk.rate.learn(self.begun_lately(workflow).await?);
        self.list_at(&desk, &leases).await?;
        // Those of its lanes that fell while somebody else had it hold nothing any more.
        desk.keep_only(|session| self.lanes.get(session).is_some());
        // Whatever was begun has its turn before anything else can get one.
        let mut loaded = Vec::new();
        for lease in leases {
            let session = lease.session();
            match self.load(lease).await {
                Ok(left) => {
                    left.enlist(&desk);
                    loaded.push(left);
                }
                Err(error) => {
                    self.count_as_listed(session, &desk).await?;
                    self.fell(session, &desk, &error);
                }
            }
        }
        for left in loaded {
            let session = left.lease.session();
            // Whoever had one that nothing is left to do in cannot write there any more.
            if left.runs.is_empty() {
                continue;
            }
            if let Err(error) = self.open_left(left, &desk).await {
                self.fell(session, &desk, &error);
            }
        }
        if let Some(listener) = mail::listen_at_desk(self, &desk).await {
            self.lanes.listening().insert(desk.session, listener);
        }
        self.lanes.desks().insert(workflow.clone(), Arc::clone(&desk));
        Ok(desk)
    }

    /// The leases of all sessions of a workflow, as far as this process does not have them:
    /// whoever had the desk before can record nothing in any of them from then on.
    async fn leases_of(&self, workflow: &Identity) -> Result<Vec<Arc<dyn Lease>>> {
        let mut leases = Vec::new();
        for SessionRead { session, .. } in self.index.sessions_of(workflow).await? {
            if session == triggers_of(workflow) || self.lanes.get(session).is_some() {
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

    /// Records at a desk which sessions were acquired for its runs. Nothing is recorded in them
    /// before: whoever was replaced at the desk learns of it here.
    async fn list_at(&self, desk: &Desk, leases: &[Arc<dyn Lease>]) -> Result<()> {
        if leases.is_empty() {
            return Ok(());
        }
        let event = |lease: &Arc<dyn Lease>| {
            let listed = SessionListed {
                epoch: lease.epoch().0,
                listed_id: lease.session(),
                workflow_id: desk.workflow.id().to_owned(),
                workflow_source_ref: Some(desk.workflow.place().to_owned()),
            };
            Ok(NewEvent { id: self.event_id()?, scope: Scope::Session, data: listed.into() })
        };
        let events = leases.iter().map(event).collect::<Result<_>>()?;
        let fence = Some(desk.epoch());
        let plan = AppendPlan { events, fence, ..AppendPlan::default() };
        self.store.log.append(desk.session, plan).await?;
        Ok(())
    }

    /// The sessions of a workflow in which a run is not over, as the list of runs has them.
    async fn open_sessions(&self, workflow: &Identity) -> Result<BTreeSet<SessionId>> {
        let open = Filter { is_over: Some(false), ..index::of(workflow) };
        Ok(self.index.list(&open).await?.iter().map(|summary| summary.session).collect())
    }

    /// The lease of a desk. Its session is made when there is none.
    async fn desk_lease(&self, workflow: &Identity) -> Result<Arc<dyn Lease>> {
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
    async fn begun_lately(&self, workflow: &Identity) -> Result<Vec<u64>> {
        let (limit, with_retired) = (Some(LEARNT_MAX), true);
        let filter = Filter { limit, with_retired, ..index::of(workflow) };
        let found = self.workflows.find_same(workflow).await.ok();
        let plan = found.as_ref().and_then(|found| found.compiled().ok());
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

    /// Becomes the owner of a session and goes on with its runs. Whoever asks holds `taking`.
    pub(super) async fn open_lane(
        self: &Arc<Self>,
        session: SessionId,
        desk: &Arc<Desk>,
    ) -> Result<Lane> {
        if let Some(lane) = self.lanes.get(session) {
            return Ok(lane);
        }
        let lease = self.store.leases.acquire(session, PERFORM).await?;
        let lease = Arc::from(lease);
        self.list_at(desk, std::slice::from_ref(&lease)).await?;
        let left = self.load(lease).await?;
        left.enlist(desk);
        self.open_left(left, desk).await
    }

    /// Loads what is left to do in a session that this process owns.
    async fn load(&self, lease: Arc<dyn Lease>) -> Result<Unfinished> {
        let session = lease.session();
        // A try is not repeated beside the first one.
        let ended = self.performers.end_left(session).await;
        ended.map_err(|failed| Error::LeftRunning { session, message: failed.message })?;
        self.tell_before_taking(session).await;
        // Whoever had it before may have gone on since it was last looked at.
        self.index.catch_up().await?;
        let filter = Filter { session: Some(session), is_over: Some(false), ..Filter::default() };
        let open = self.index.list(&filter).await?;
        let runs = self.adopted(session, &open).await?;
        let bytes = self.store.log.status(session).await?.bytes;
        Ok(Unfinished { lease, runs, bytes })
    }

    /// Goes on with what is left to do in a session.
    async fn open_left(self: &Arc<Self>, left: Unfinished, desk: &Arc<Desk>) -> Result<Lane> {
        let Unfinished { lease, runs, bytes } = left;
        let lane = Lane::open(self, desk, lease)?;
        lane.has_bytes(bytes);
        for run in runs {
            lane.send(Message::Adopt(Box::new(run)))?;
        }
        self.enlist(&lane).await;
        self.lanes.down().remove(&lane.session);
        Ok(lane)
    }

    /// Counts the runs of a session that cannot be loaded, as far as the list of runs knows them.
    async fn count_as_listed(&self, session: SessionId, desk: &Desk) -> Result<()> {
        let filter = Filter { session: Some(session), is_over: Some(false), ..Filter::default() };
        for summary in self.index.list(&filter).await? {
            if summary.status != RunStatus::Queued {
                desk.goes_on(summary.run, session);
            }
        }
        Ok(())
    }

    /// Takes a lane in, and lets other processes speak to its runs.
    async fn enlist(self: &Arc<Self>, lane: &Lane) {
        self.lanes.open().insert(lane.session, lane.clone());
        // It may have been opened while all others were told.
        if self.is_draining() {
            drop(lane.drain());
        }
        if let Some(listener) = mail::listen(self, lane.clone()).await {
            self.lanes.listening().insert(lane.session, listener);
        }
    }

    /// A lane fell. Nothing of what it decided last came to pass, so its runs go on from what is
    /// recorded, as soon as the session can be had again.
    pub(super) fn fell(self: &Arc<Self>, session: SessionId, desk: &Arc<Desk>, error: &Error) {
        let workflow = desk.workflow.clone();
        let id = workflow.id();
        self.lanes.falls.fetch_add(1, Ordering::Relaxed);
        self.lanes.down().insert(session, (id.to_owned(), error.to_string()));
        (self.options.trouble)(&format!(
            "{}: the runs of {id} in {session} are loaded again: {error}",
            error.code()
        ));
        let (inner, host) = (Arc::downgrade(self), Arc::clone(&self.host));
        self.host.spawn(Box::pin(async move {
            let mut pause = REVIVE_MIN;
            loop {
                host.sleep(pause).await;
                let Some(inner) = inner.upgrade() else { return };
                match inner.revive(session, &workflow).await {
                    Ok(()) => return,
                    Err(error) => {
                        let why = (workflow.id().to_owned(), error.to_string());
                        inner.lanes.down().insert(session, why);
                    }
                }
                pause = (pause * 2).min(REVIVE_MAX);
            }
        }));
    }

    /// Opens a session again, unless another process admits its workflow by now: then it owns
    /// the session, too.
    async fn revive(self: &Arc<Self>, session: SessionId, workflow: &Identity) -> Result<()> {
        let desk = match self.desk(workflow).await {
            Ok(desk) => desk,
            Err(Error::AdmittedElsewhere { .. }) => {
                // Whoever waits here for one of its runs is told by that process from now on.
                for run in self.watchers.awaited() {
                    match self.tell_end_from_afar(run).await {
                        Ok(()) | Err(Error::RunUnknown(_)) => {}
                        Err(error) => return Err(error),
                    }
                }
                self.lanes.down().remove(&session);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let _taking = self.lanes.taking.lock().await;
        match self.open_lane(session, &desk).await {
            Ok(_) => Ok(()),
            Err(Error::Store(store::Error::NotFound(_))) => {
                self.lanes.down().remove(&session);
                Ok(())
            }
            Err(error) => Err(error),
        }
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

    /// Goes on with what was left, and tells of failures that nobody was told of.
    pub(super) async fn recover(self: &Arc<Self>) -> Result<usize> {
        let taken = self.take_up_all().await;
        self.tell_of_earlier_failures().await?;
        taken
    }

    /// Goes on with what nobody else performs, and begins what was received and not begun.
    pub(super) async fn take_up_all(self: &Arc<Self>) -> Result<usize> {
        let taken = self.take_up_left().await;
        self.take_received().await?;
        taken
    }

    /// Goes on with every run that is not over and that nobody else performs.
    pub(super) async fn take_up_left(self: &Arc<Self>) -> Result<usize> {
        self.index.catch_up().await?;
        let open = self.index.list(&Filter { is_over: Some(false), ..Filter::default() }).await?;
        let left = open.iter().filter(|summary| self.lanes.get(summary.session).is_none());
        let workflows: BTreeSet<Identity> = left.map(Summary::identity).collect();
        // One workflow that cannot be gone on with holds up no other.
        let mut failed = None;
        for workflow in workflows {
            match self.take_up(&workflow).await {
                Ok(()) | Err(Error::AdmittedElsewhere { .. }) => {}
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(open.len()), Err)
    }

    /// Takes the desk of a workflow, and whatever of its sessions is left.
    pub(super) async fn take_up(self: &Arc<Self>, workflow: &Identity) -> Result<()> {
        let desk = self.desk(workflow).await?;
        for session in self.open_sessions(workflow).await? {
            let _taking = self.lanes.taking.lock().await;
            self.open_lane(session, &desk).await?;
        }
        Ok(())
    }
}

/// What becomes of a firing of a trigger over a limit, when the trigger says so.
pub(super) fn overflow(plan: &Plan, trigger: Option<&Slug>) -> Option<Overflow> {
    plan.triggers.iter().find(|known| Some(&known.id) == trigger)?.overflow
}

/// What pins a run to the workflow as it is now.
pub(super) fn started(found: &crate::catalog::Found, ready: &Ready) -> RunStarted {
    RunStarted {
        assets: ready.graph.plan.assets.iter().map(|asset| asset.sha256).collect(),
        workflow_hash: ready.hash,
        workflow_id: found.id.clone(),
        workflow_source_kind: crate::guided::source_kind(found.kind),
        workflow_source_ref: found.identity().place().to_owned(),
        workspace: None,
    }
}
