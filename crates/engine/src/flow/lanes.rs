//! Which lane a run is in, and who goes on with what was left.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_core::event::guided::{RunStarted, SessionCreated};
use cairn_core::event::{Event, EventData, NewEvent, Scope};
use cairn_core::flow::Command;
use cairn_core::id::{RunId, SessionId};
use cairn_core::projection::run::RunState;
use cairn_store as store;
use cairn_store::AppendPlan;
use tokio::sync::Mutex as AsyncMutex;

use super::index::{Filter, Summary};
use super::lane::{Adopted, Lane, Message};
use super::past::unfit;
use super::plans::Ready;
use super::snapshots::Progress;
use super::{Inner, Left, mail};
use crate::error::{Error, Result};
use crate::host::{Host, Task};

/// How long a session is left alone whose lane could not record what it decided.
const REVIVE_MIN: Duration = Duration::from_millis(100);
const REVIVE_MAX: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Lanes {
    /// The lane that new runs of a workflow go into.
    by_workflow: AsyncMutex<BTreeMap<String, Lane>>,
    /// Every lane of this process.
    open: Mutex<BTreeMap<SessionId, Lane>>,
    /// What hears other processes, for each of them.
    listening: Mutex<BTreeMap<SessionId, Task>>,
    /// Held while sessions are taken over, so that none is taken twice.
    taking: AsyncMutex<()>,
    /// Whether nothing more is begun.
    draining: AtomicBool,
    /// Whether the steps of runs are left to another process.
    holding: AtomicBool,
}

impl Lanes {
    fn open(&self) -> std::sync::MutexGuard<'_, BTreeMap<SessionId, Lane>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, session: SessionId) -> Option<Lane> {
        self.open().get(&session).cloned()
    }

    pub(super) fn forget(&self, session: SessionId) {
        self.open().remove(&session);
        let listener = self.listening().remove(&session);
        listener.into_iter().for_each(|listener| listener.abort());
    }

    fn listening(&self) -> std::sync::MutexGuard<'_, BTreeMap<SessionId, Task>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps sessions from being taken over for as long as it is held.
    pub(super) async fn taking(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.taking.lock().await
    }

    /// The sessions that this process is at work on.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.open().keys().copied().collect()
    }

    fn all(&self) -> Vec<Lane> {
        self.open().values().cloned().collect()
    }

    /// Begins nothing more, and waits until nothing is under way.
    pub(super) async fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        let drained: Vec<_> = self.all().iter().map(Lane::drain).collect();
        for lane in drained {
            // A lane that ends by itself has nothing under way.
            let _ = lane.await;
        }
    }

    pub(super) fn hold(&self) {
        self.holding.store(true, Ordering::Release);
    }

    pub(super) async fn stop(&self, host: &dyn Host, patience: Duration) -> Left {
        let mut left = Left::default();
        let all = async {
            for lane in self.all() {
                let Left { finished, parked } = lane.stop().await;
                left.finished += finished;
                left.parked.extend(parked);
            }
        };
        // Whoever takes longer is recovered like anybody else.
        let _ = host.within(patience, all).await;
        left
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

    /// The lane that new runs of a workflow go into.
    pub(super) async fn lane(self: &Arc<Self>, workflow: &str) -> Result<Lane> {
        let mut lanes = self.lanes.by_workflow.lock().await;
        if let Some(lane) =
            lanes.get(workflow).filter(|lane| self.lanes.get(lane.session).is_some())
        {
            if self.has_room(lane) {
                return Ok(lane.clone());
            }
            // Its runs end in it, and new ones go elsewhere.
            lane.close();
        }
        let lane = match self.free_session(workflow).await? {
            Some(lane) => lane,
            None => self.new_session(workflow).await?,
        };
        lanes.insert(workflow.to_owned(), lane.clone());
        Ok(lane)
    }

    /// Whether a lane takes new runs: its session is neither large nor old.
    fn has_room(&self, lane: &Lane) -> bool {
        !lane.is_closed() && lane.bytes() < self.options.session_max && self.is_young(lane.session)
    }

    /// Ends the lanes that take no new runs and whose runs are all over.
    pub(super) async fn end_full(&self) {
        let lanes: Vec<Lane> = self.lanes.open().values().cloned().collect();
        for lane in lanes.into_iter().filter(|lane| !self.has_room(lane)) {
            lane.close();
            lane.end_if_idle().await;
        }
    }

    fn is_young(&self, session: SessionId) -> bool {
        let age_ms = self.host.now_ms().saturating_sub(session.minted_ms());
        u128::from(age_ms) < self.options.session_age_max.as_millis()
    }

    /// A session of a workflow that nobody owns and that has room.
    async fn free_session(self: &Arc<Self>, workflow: &str) -> Result<Option<Lane>> {
        for read in self.index.sessions_of(workflow).await? {
            match self.lanes.get(read.session) {
                Some(lane) if self.has_room(&lane) => return Ok(Some(lane)),
                Some(_) => continue,
                None if !self.is_young(read.session) => continue,
                None => {}
            }
            let Ok(status) = self.store.log.status(read.session).await else { continue };
            if status.damage.is_some() || status.bytes >= self.options.session_max {
                continue;
            }
            if let Some(lane) = self.take_over(read.session, workflow).await? {
                return Ok(Some(lane));
            }
        }
        Ok(None)
    }

    async fn new_session(self: &Arc<Self>, workflow: &str) -> Result<Lane> {
        let session = SessionId::mint(self.host.now_ms(), self.host.entropy()?);
        let id = self.event_id()?;
        let created = NewEvent { id, scope: Scope::Session, data: SessionCreated {}.into() };
        let plan = AppendPlan { events: vec![created], ..AppendPlan::default() };
        self.store.log.append(session, plan).await?;
        let lease = self.store.leases.acquire(session, "perform runs").await?;
        let lane = Lane::open(self, workflow, lease)?;
        self.enlist(&lane).await;
        Ok(lane)
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

    /// Becomes the owner of a session and goes on with its runs; none when somebody else is.
    pub(super) async fn take_over(
        self: &Arc<Self>,
        session: SessionId,
        workflow: &str,
    ) -> Result<Option<Lane>> {
        let _taking = self.lanes.taking.lock().await;
        if let Some(lane) = self.lanes.get(session) {
            return Ok(Some(lane));
        }
        let lease = match self.store.leases.acquire(session, "perform runs").await {
            Ok(lease) => lease,
            Err(store::Error::Owned { .. } | store::Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.tell_before_taking(session).await;
        // Whoever had it before may have gone on since it was last looked at.
        self.index.catch_up().await?;
        let filter = Filter { session: Some(session), is_over: Some(false), ..Filter::default() };
        let open = self.index.list(&filter).await?;
        let runs = self.adopted(session, &open).await?;
        let lane = Lane::open(self, workflow, lease)?;
        lane.has_bytes(self.store.log.status(session).await?.bytes);
        for run in runs {
            lane.send(Message::Adopt(Box::new(run)))?;
        }
        self.enlist(&lane).await;
        Ok(Some(lane))
    }

    /// Takes a session up again whose lane could not record what it decided. Nothing of that
    /// came to pass, so its runs go on from what is recorded.
    pub(super) fn revive(self: &Arc<Self>, session: SessionId, workflow: String) {
        let (inner, host) = (Arc::downgrade(self), Arc::clone(&self.host));
        self.host.spawn(Box::pin(async move {
            let mut pause = REVIVE_MIN;
            loop {
                host.sleep(pause).await;
                let Some(inner) = inner.upgrade() else { return };
                if inner.take_over(session, &workflow).await.is_ok() {
                    return;
                }
                pause = (pause * 2).min(REVIVE_MAX);
            }
        }));
    }

    /// Runs of a session as their events left them.
    async fn adopted(&self, session: SessionId, open: &[Summary]) -> Result<Vec<Adopted>> {
        let Some(from) = open.iter().map(Summary::unread).min() else {
            return Ok(Vec::new());
        };
        let events = self.store.log.read(session, from).await?;
        let mut runs = Vec::new();
        for summary in open {
            let (state, progress) = self.state_from(summary, &events, from).await?;
            if state.end.is_some() {
                continue;
            }
            let Some(adopted) = self.adopt(state, progress, summary).await? else { continue };
            runs.push(adopted);
        }
        Ok(runs)
    }

    async fn adopt(
        &self,
        state: RunState,
        progress: Progress,
        summary: &Summary,
    ) -> Result<Option<Adopted>> {
        let started = match &state.started {
            Some(started) => started.clone(),
            // It was asked for and not begun: it follows the workflow as it is now.
            None => {
                let Ok(found) = self.find(&summary.workflow).await else { return Ok(None) };
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
        let (first, queued_ms) = (summary.first, summary.queued_ms);
        Ok(Some(Adopted { state, progress, ready, started, first, queued_ms, unfit }))
    }

    /// A run's state, with every value in its place.
    pub(super) async fn folded(&self, run: RunId, events: &[&Event]) -> Result<RunState> {
        let forked = events.iter().find_map(|event| match &event.data {
            EventData::RunQueued(queued) => queued.forked_from.clone(),
            _ => None,
        });
        let state = match forked {
            Some(from) => self.snapshot(from.snapshot_ref).await?,
            None => RunState::new(run),
        };
        self.fold_onto(state, events).await
    }

    /// Goes on with what was left, and sees to what was received and not begun.
    pub(super) async fn recover(self: &Arc<Self>) -> Result<usize> {
        let taken = self.take_up_left().await;
        self.start_received().await?;
        self.tell_of_earlier_failures().await?;
        taken
    }

    /// Goes on with every run that is not over and that nobody else performs.
    pub(super) async fn take_up_left(self: &Arc<Self>) -> Result<usize> {
        self.index.catch_up().await?;
        let open = self.index.list(&Filter { is_over: Some(false), ..Filter::default() }).await?;
        let mut sessions: BTreeMap<SessionId, String> = BTreeMap::new();
        for summary in open.iter().filter(|summary| self.lanes.get(summary.session).is_none()) {
            sessions.insert(summary.session, summary.workflow.clone());
        }
        // One session that cannot be gone on with holds up no other.
        let mut failed = None;
        for (session, workflow) in sessions {
            if let Err(error) = self.take_over(session, &workflow).await {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(open.len()), Err)
    }

    /// The lane of a run that is not over; none when another process has it.
    pub(super) async fn lane_of(
        self: &Arc<Self>,
        run: RunId,
    ) -> Result<std::result::Result<Lane, SessionId>> {
        let mut found = self.index.find(run).await?;
        if found.is_none() {
            self.index.catch_up().await?;
            found = self.index.find(run).await?;
        }
        let summary = found.ok_or(Error::RunUnknown(run))?;
        if let Some(lane) = self.lanes.get(summary.session) {
            return Ok(Ok(lane));
        }
        let taken = self.take_over(summary.session, &summary.workflow).await?;
        Ok(taken.ok_or(summary.session))
    }

    /// Says something to a run, wherever it is.
    pub(super) async fn tell(self: &Arc<Self>, run: RunId, command: Command) -> Result<()> {
        let told = match self.lane_of(run).await? {
            Ok(lane) => lane.tell(run, command).await,
            Err(session) => {
                let elsewhere = Error::RunElsewhere { run, session };
                self.tell_owner(session, run, &command).await?.unwrap_or(Err(elsewhere))
            }
        };
        match told {
            // The lane has let go of it, or never had it: it is over.
            Err(Error::RunUnknown(_)) => {
                Err(Error::RunRefused { run, refused: cairn_core::flow::Rejection::Ended })
            }
            told => told,
        }
    }

    /// Says something to a run without waiting.
    pub(super) fn tell_later(self: &Arc<Self>, run: RunId, command: Command) {
        let inner = Arc::clone(self);
        self.host.spawn(Box::pin(async move {
            // A parent that is over does not mind.
            let _ = inner.tell(run, command).await;
        }));
    }
}

/// What pins a run to the workflow as it is now.
pub(super) fn started(found: &crate::catalog::Found, ready: &Ready) -> RunStarted {
    RunStarted {
        assets: ready.graph.plan.assets.iter().map(|asset| asset.sha256).collect(),
        workflow_hash: ready.hash,
        workflow_id: found.id.clone(),
        workflow_source_kind: crate::guided::source_kind(found.kind),
        workflow_source_ref: found.identity().place().to_owned(),
    }
}
