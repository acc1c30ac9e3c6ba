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
use cairn_core::event::guided::{RunStarted, SessionCreated};
use cairn_core::event::{Event, EventData, NewEvent, Scope};
use cairn_core::flow::Command;
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::plan::{Overflow, Plan, RateLimit};
use cairn_core::projection::run::{RunState, RunStatus};
use cairn_core::text::Slug;
use cairn_store as store;
use cairn_store::port::{Lease, SessionRead};
use cairn_store::{AppendPlan, Owner};

use super::desk::{Desk, Limits};
use super::index::{self, Filter, Summary};
use super::intake::triggers_of;
use super::lane::{Adopted, Lane, Message};
use super::past::unfit;
use super::plans::Ready;
use super::snapshots::Progress;
use super::{Inner, mail};
use crate::catalog::Identity;
use crate::error::{Error, Result};

/// How long a session is left alone whose lane could not record what it decided.
const REVIVE_MIN: Duration = Duration::from_millis(100);
const REVIVE_MAX: Duration = Duration::from_secs(30);
/// What others are told that a session is owned for.
const PERFORM: &str = "perform its runs";
/// How often something is said to a run whose lane falls meanwhile.
const TELL_TRIES: usize = 8;
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

    async fn make_session(&self, session: SessionId) -> Result<()> {
        let (id, scope) = (self.event_id()?, Scope::Session);
        let created = NewEvent { id, scope, data: SessionCreated {}.into() };
        let plan = AppendPlan { events: vec![created], ..AppendPlan::default() };
        match self.store.log.append(session, plan).await {
            // Somebody else was first, in this moment.
            Ok(_) | Err(store::Error::Unfenced { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
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
        let found = self.find_same(workflow).await.ok();
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

    /// The lane that new runs of a workflow go into.
    pub(super) async fn lane(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<Lane> {
        let mut sessions = self.lanes.by_workflow.lock().await;
        let last = sessions.get(&desk.workflow).and_then(|session| self.lanes.get(*session));
        if let Some(lane) = last {
            if self.has_room(&lane) {
                return Ok(lane);
            }
            // Its runs end in it, and new ones go elsewhere.
            lane.close();
        }
        let lane = match self.free_session(desk).await? {
            Some(lane) => lane,
            None => self.new_session(desk).await?,
        };
        sessions.insert(desk.workflow.clone(), lane.session);
        Ok(lane)
    }

    /// Whether a lane takes new runs: its session is neither large nor old.
    fn has_room(&self, lane: &Lane) -> bool {
        !lane.is_closed() && self.takes_more(lane.session, lane.bytes())
    }

    /// Whether a session of so many bytes takes new runs.
    fn takes_more(&self, session: SessionId, bytes: u64) -> bool {
        bytes < self.options.session_max && self.is_young(session)
    }

    /// Ends the lanes that take no new runs and whose runs are all over.
    pub(super) async fn end_full(&self) {
        let lanes: Vec<Lane> = self.lanes.open().values().cloned().collect();
        for lane in lanes.into_iter().filter(|lane| !self.has_room(lane)) {
            lane.close();
            lane.end_if_idle().await;
        }
    }

    pub(super) fn is_young(&self, session: SessionId) -> bool {
        let age_ms = self.host.now_ms().saturating_sub(session.minted_ms());
        u128::from(age_ms) < self.options.session_age_max.as_millis()
    }

    /// A session of a workflow that has room.
    async fn free_session(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<Option<Lane>> {
        for SessionRead { session, .. } in self.index.sessions_of(&desk.workflow).await? {
            match self.lanes.get(session) {
                Some(lane) if self.has_room(&lane) => return Ok(Some(lane)),
                Some(_) => continue,
                None => {}
            }
            let Ok(status) = self.store.log.status(session).await else { continue };
            if status.damage.is_some() || !self.takes_more(session, status.bytes) {
                continue;
            }
            let _taking = self.lanes.taking.lock().await;
            match self.open_lane(session, desk).await {
                Ok(lane) => return Ok(Some(lane)),
                // Somebody tidies it up, or it is gone.
                Err(Error::Store(store::Error::Owned { .. } | store::Error::NotFound(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn new_session(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<Lane> {
        let session = SessionId::mint(self.host.now_ms(), self.host.entropy()?);
        self.make_session(session).await?;
        let _taking = self.lanes.taking.lock().await;
        self.open_lane(session, desk).await
    }

    /// Becomes the owner of a session and goes on with its runs. Whoever asks holds `taking`.
    async fn open_lane(self: &Arc<Self>, session: SessionId, desk: &Arc<Desk>) -> Result<Lane> {
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
            let (state, progress) = self.state_from(summary, &events, from).await?;
            if state.end.is_some() {
                continue;
            }
            let (first, last) = self.ends_of(summary, &events).await?;
            let Some(adopted) = self.adopt(state, progress, summary, last).await? else { continue };
            runs.push((first, adopted));
        }
        // Those that have waited longest are enlisted first.
        runs.sort_by_key(|(first, run)| (run.queued_ms, *first));
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }

    /// The first and the last event of a run, as far as they are among these; all of them are
    /// read when none is.
    async fn ends_of(
        &self,
        summary: &Summary,
        events: &[Event],
    ) -> Result<(Option<EventIndex>, Option<EventIndex>)> {
        let ends = |events: &[Event]| {
            let own = events.iter().filter(|event| event.scope.run() == Some(summary.run));
            let own: Vec<EventIndex> = own.map(|event| event.index).collect();
            own.first().copied().zip(own.last().copied())
        };
        let found = match ends(events) {
            Some(found) => Some(found),
            None => ends(&self.read(summary, summary.first).await?),
        };
        Ok(found.unzip())
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
                let Ok(found) = self.find_same(&summary.identity()).await else { return Ok(None) };
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

    /// Where a run that is not over is decided for.
    pub(super) async fn place_of(self: &Arc<Self>, run: RunId) -> Result<Place> {
        let summary = self.found(run).await?;
        if let Some(lane) = self.lanes.get(summary.session) {
            return Ok(Place::Here(lane));
        }
        let owner = match self.take_up(&summary.identity()).await {
            Ok(()) => match self.lanes.get(summary.session) {
                Some(lane) => return Ok(Place::Here(lane)),
                // Nothing of its session is left to do.
                None => return Ok(Place::Over),
            },
            Err(Error::AdmittedElsewhere { owner, .. }) => owner,
            Err(Error::Store(store::Error::Owned { owner, .. })) => owner,
            Err(error) => return Err(error),
        };
        // Whoever is about to end may have let go of it.
        match self.state(run).await? {
            (_, state) if state.end.is_some() => Ok(Place::Over),
            _ => Ok(Place::There { session: summary.session, owner }),
        }
    }

    /// Says something to a run, wherever it is.
    pub(super) async fn tell(self: &Arc<Self>, run: RunId, command: Command) -> Result<()> {
        let ended = || Error::RunRefused { run, refused: cairn_core::flow::Rejection::Ended };
        let mut last = None;
        for _ in 0..TELL_TRIES {
            let told = match self.place_of(run).await? {
                Place::Here(lane) => lane.tell(run, command.clone()).await,
                Place::Over => return Err(ended()),
                Place::There { session, owner } => {
                    let told = self.tell_owner(session, run, &command).await?;
                    let elsewhere = Error::RunElsewhere { run, session, owner };
                    last = Some(elsewhere.clone());
                    told.unwrap_or(Err(elsewhere))
                }
            };
            match told {
                // Nothing was decided: whoever opens the session next hears it.
                Err(error) if error.is_passing() => self.host.sleep(REVIVE_MIN).await,
                // The lane has let go of it, so it is over.
                Err(Error::RunUnknown(_)) => return Err(ended()),
                told => return told,
            }
        }
        let session = self.found(run).await?.session;
        Err(last.unwrap_or(Error::LaneDown { session }))
    }
}

/// Where a run is decided for.
pub(super) enum Place {
    /// By this process.
    Here(Lane),
    /// By another one.
    There { session: SessionId, owner: Option<Box<Owner>> },
    /// By nobody: it is over.
    Over,
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
