//! A lane: one session, whose runs one task decides for.
//!
//! Which of its runs may be under way is for the desk of its workflow to say. A lane that cannot
//! record what it decided, or that breaks an invariant, ends: nothing of what it decided holds,
//! and its supervisor opens the session again from what is recorded.

mod commit;
mod effects;
mod handle;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cairn_core::digest::WorkflowHash;
use cairn_core::event::engine::{Advance, RunQueued};
use cairn_core::event::guided::RunStarted;
use cairn_core::event::{By, NewEvent, Scope};
use cairn_core::flow::{Command, Decision, Effect, Moment, Rejection, Run};
use cairn_core::id::{EventId, EventIndex, RunId, SessionId, TimerId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::RunState;
use cairn_store::port::Lease;
use cairn_store::{Blob, Epoch};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

pub(super) use handle::Lane;

use commit::{Batch, EVENTS_MAX, ROOM_NAP, Reply};
use handle::Shared;

use super::desk::Desk;
use super::index::{Summary, status_after};
use super::plans::Ready;
use super::snapshots::{Progress, Stored};
use super::{Inner, Left, payload};
use crate::error::{Error, Result};
use crate::host::{Either, Host, Task, either};

/// How many messages are decided on together.
const BATCH_MAX: usize = 512;
/// How long a timer is slept on before the clock is looked at again, which may have moved.
const NAP_MAX: Duration = Duration::from_secs(30);

/// What is said to a lane.
pub(super) enum Message {
    /// A run is to begin, unless it is there.
    Begin(Box<NewRun>, oneshot::Sender<Result<()>>),
    /// A run that was recorded before is to go on.
    Adopt(Box<Adopted>),
    /// A snapshot of a run is stored, or could not be.
    Stored(RunId, Option<Box<Stored>>),
    /// A run that waited may begin.
    Turn(RunId),
    /// Something is said to a run.
    Tell(RunId, Box<Command>, Option<oneshot::Sender<Result<()>>>),
    /// Nothing more is begun; the sender is told when nothing is under way.
    Drain(oneshot::Sender<()>),
    /// Nothing more is begun, and nothing more is heard.
    Stop(oneshot::Sender<Left>),
    /// The same, unless there are runs.
    StopIfIdle(oneshot::Sender<Left>),
}

impl Message {
    /// The message, unless nothing comes of it and somebody waits who can be told so.
    fn unless(self, refused: bool, why: impl FnOnce() -> Error) -> Option<Self> {
        match self {
            Self::Begin(_, reply) | Self::Tell(_, _, Some(reply)) if refused => {
                // Whoever asked may be gone.
                drop(reply.send(Err(why())));
                None
            }
            message => Some(message),
        }
    }
}

/// A run that is to begin.
pub(super) struct NewRun {
    pub(super) id: RunId,
    pub(super) ready: Arc<Ready>,
    pub(super) queued: RunQueued,
    pub(super) started: RunStarted,
    /// What it goes on from, when it is a fork, and the blob that holds it.
    pub(super) forked: Option<(RunState, Blob)>,
    /// The ownership of the desk under which it was admitted.
    pub(super) admitted: Epoch,
}

/// A run that was recorded before.
pub(super) struct Adopted {
    pub(super) state: RunState,
    pub(super) progress: Progress,
    pub(super) ready: Arc<Ready>,
    pub(super) started: RunStarted,
    pub(super) first: EventIndex,
    pub(super) last: Option<EventIndex>,
    pub(super) queued_ms: u64,
    pub(super) started_ms: Option<u64>,
    /// Why it can never begin.
    pub(super) unfit: Option<String>,
}

impl Adopted {
    /// Whether each of its steps is asked for, so that nobody goes on with it by himself.
    fn is_by_hand(&self) -> bool {
        self.state.queued.as_ref().is_some_and(|queued| queued.advance == Some(Advance::ByHand))
    }
}

/// A run under way.
struct Active {
    run: Run,
    ready: Arc<Ready>,
    started: RunStarted,
    first: EventIndex,
    /// The last event that this lane has recorded or read of it.
    last: Option<EventIndex>,
    queued_ms: u64,
    started_ms: Option<u64>,
    /// When its end was decided, as that is recorded.
    ended_ms: Option<u64>,
    progress: Progress,
    under_way: BTreeMap<StepInstanceKey, Task>,
    response: Option<Value>,
}

impl Active {
    /// A run that is asked for now.
    fn new(run: Run, ready: Arc<Ready>, started: RunStarted, queued_ms: u64) -> Self {
        Self {
            run,
            ready,
            started,
            first: EventIndex(0),
            last: None,
            queued_ms,
            started_ms: None,
            ended_ms: None,
            progress: Progress::default(),
            under_way: BTreeMap::new(),
            response: None,
        }
    }
}

struct Actor {
    inner: Weak<Inner>,
    host: Arc<dyn Host>,
    session: SessionId,
    desk: Arc<Desk>,
    runs: BTreeMap<RunId, Active>,
    /// Runs that have their turn and are not begun yet.
    admitted: VecDeque<RunId>,
    timers: BinaryHeap<Reverse<(u64, RunId, TimerId)>>,
    messages: mpsc::UnboundedSender<Message>,
    shared: Arc<Shared>,
    stopped: Option<oneshot::Sender<Left>>,
    draining: Option<Drain>,
    /// Whether runs wait for room on the disk.
    crowded: bool,
    /// The plans that runs of the session are pinned to, as far as this process saw to it.
    pinned: BTreeSet<WorkflowHash>,
    /// The last event that was recorded.
    through: EventIndex,
    /// Runs of which a snapshot is due.
    due: Vec<RunId>,
    snapshot_every: usize,
    /// Where the ids of events come from: chance at first, then never the same again.
    bits: u128,
    lease: Arc<dyn Lease>,
}

/// A lane that begins nothing more.
#[derive(Default)]
struct Drain {
    /// How many steps have come to an end since.
    finished: usize,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Actor {
    fn new(
        inner: &Arc<Inner>,
        desk: Arc<Desk>,
        lease: Arc<dyn Lease>,
        (messages, shared): (mpsc::UnboundedSender<Message>, Arc<Shared>),
    ) -> Result<Self> {
        Ok(Self {
            inner: Arc::downgrade(inner),
            host: Arc::clone(&inner.host),
            session: lease.session(),
            desk,
            runs: BTreeMap::new(),
            admitted: VecDeque::new(),
            timers: BinaryHeap::new(),
            messages,
            shared,
            stopped: None,
            draining: inner.lanes.is_draining().then(Drain::default),
            crowded: false,
            pinned: BTreeSet::new(),
            through: EventIndex(0),
            due: Vec::new(),
            snapshot_every: inner.options.snapshot_every,
            bits: inner.host.entropy()?,
            lease,
        })
    }

    /// Decides until it is stopped; fails when what it decided was not recorded.
    async fn live(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) -> Result<()> {
        loop {
            let nap = self.next_timer();
            let lost = || either(self.lease.lost(), || self.host.sleep(nap));
            let first = match either(inbox.recv(), lost).await {
                Either::First(message) => message,
                Either::Second(_) => None,
            };
            let Some(inner) = self.inner.upgrade() else { return Ok(()) };
            if self.lease.is_lost() {
                return Err(Error::LeaseLost { session: self.session });
            }
            let mut heard: VecDeque<Message> = first.into_iter().collect();
            self.wait_for_room(&inner, &mut heard, inbox).await;
            let mut batch = Batch::default();
            let mut taken = 0;
            while let Some(message) = heard.pop_front() {
                self.take(&inner, message, &mut batch).await?;
                taken += 1;
                if heard.is_empty() && taken < BATCH_MAX && batch.events.len() < EVENTS_MAX {
                    heard.extend(inbox.try_recv().ok());
                }
            }
            self.desk.give();
            self.fire_timers(&mut batch);
            self.begin_admitted(&inner, &mut batch).await?;
            self.commit(&inner, batch).await?;
            self.tell_drained();
            if self.stopped.is_some() {
                return Ok(());
            }
        }
    }

    fn call_off_all(&mut self) {
        for active in self.runs.values_mut() {
            std::mem::take(&mut active.under_way).values().for_each(Task::abort);
        }
    }

    /// Begins nothing more.
    fn drain(&mut self, tell: oneshot::Sender<()>) {
        self.runs.values_mut().for_each(|active| active.run.hold());
        self.draining.get_or_insert_default().waiting.push(tell);
    }

    /// Tells whoever waits for it that nothing is under way.
    fn tell_drained(&mut self) {
        if self.runs.values().any(|active| !active.under_way.is_empty()) {
            return;
        }
        let waiting = self.draining.iter_mut().flat_map(|drain| drain.waiting.drain(..));
        waiting.for_each(|tell| tell.send(()).unwrap_or_default());
    }

    /// What came of the steps that were under way, and what is left of them.
    fn left(&self) -> Left {
        let under_way = self.runs.iter().flat_map(|(run, active)| {
            active.under_way.keys().map(|instance| (*run, instance.clone()))
        });
        let finished = self.draining.as_ref().map_or(0, |drain| drain.finished);
        Left { finished, parked: under_way.collect() }
    }

    /// Hears a message; fails when an invariant is broken.
    async fn take(
        &mut self,
        inner: &Arc<Inner>,
        message: Message,
        batch: &mut Batch,
    ) -> Result<()> {
        // Whoever stops hears nothing more: what it would take in would lie until the next one
        // comes.
        let Some(message) = message.unless(self.stopped.is_some(), || self.down()) else {
            return Ok(());
        };
        match message {
            Message::Begin(run, reply) => {
                // The desk lets nobody ask twice, so this only holds while a lane is revived.
                let fresh = !self.runs.contains_key(&run.id);
                let begun = match fresh {
                    // Whoever asks looks again.
                    true if run.admitted != self.desk.epoch() => Err(self.down()),
                    true => batch.room(inner).await,
                    false => Ok(()),
                };
                if fresh && begun.is_ok() {
                    self.queue(inner, *run, batch);
                }
                batch.replies.push(Reply { to: reply, outcome: begun });
            }
            Message::Adopt(adopted) => self.adopt(inner, *adopted, batch)?,
            Message::Turn(run) => self.admitted.push_back(run),
            Message::Stored(run, stored) => self.stored(run, stored, batch),
            Message::Tell(run, command, reply) => {
                let outcome = self.tell(run, *command, batch);
                if let Some(to) = reply {
                    batch.replies.push(Reply { to, outcome });
                }
            }
            Message::Drain(tell) => self.drain(tell),
            Message::Stop(stopped) => self.stopped = Some(stopped),
            Message::StopIfIdle(stopped) if self.runs.is_empty() => self.stopped = Some(stopped),
            // Who asked hears that nothing comes of it.
            Message::StopIfIdle(_) => {}
        }
        Ok(())
    }

    /// Whoever asks is to ask again.
    fn down(&self) -> Error {
        Error::LaneDown { session: self.session }
    }

    fn queue(&mut self, inner: &Inner, new: NewRun, batch: &mut Batch) {
        let NewRun { id, ready, queued, started, forked, admitted: _ } = new;
        let mut state = RunState::new(id);
        if let Some((forked, blob)) = forked {
            state = forked;
            batch.blobs.push(blob);
        }
        self.bits = stir(self.bits);
        let event_id = EventId::mint(self.host.now_ms(), self.bits);
        let event = NewEvent { id: event_id, scope: Scope::Run(id), data: queued.into() };
        let placed = event.clone().at(self.session, EventIndex(0));
        state.apply(&placed);
        batch.events.push(event);
        let run = Run::new(state, inner.options.limits);
        self.insert(inner, Active::new(run, ready, started, self.host.now_ms()));
        self.enter(inner, id);
    }

    /// Has a run begin when it is its turn, which may be now.
    fn enter(&mut self, inner: &Inner, id: RunId) {
        let Some(active) = self.runs.get(&id) else { return };
        let queued = active.run.state.queued.as_ref();
        let trigger = queued.and_then(|queued| queued.trigger_id.as_ref());
        let limits = inner.options.limits_of(&active.ready.graph.plan, trigger);
        let bytes = queued.map_or(0, |queued| payload::weight(&queued.input));
        if self.desk.enter((id, bytes), limits, self.session, &self.messages) {
            self.admitted.push_back(id);
        }
    }

    fn insert(&mut self, inner: &Inner, mut active: Active) {
        if self.draining.is_some() || inner.lanes.is_holding() {
            active.run.hold();
        }
        self.runs.insert(active.run.state.run_id, active);
    }

    fn adopt(&mut self, inner: &Arc<Inner>, adopted: Adopted, batch: &mut Batch) -> Result<()> {
        let is_by_hand = adopted.is_by_hand();
        let parent = adopted.state.queued.as_ref().and_then(|queued| queued.parent.as_ref());
        let parent = parent.map(|parent| parent.run_id);
        let Adopted { state, progress, ready, started, first, last, queued_ms, started_ms, unfit } =
            adopted;
        let (id, begun) = (state.run_id, state.started.is_some());
        let run = Run::new(state, inner.options.limits);
        let fresh = Active::new(run, ready, started, queued_ms);
        self.insert(inner, Active { first, last, progress, started_ms, ..fresh });
        if begun {
            self.desk.goes_on(id, self.session);
        }
        if let Some(parent) = parent {
            inner.cancel_if_orphaned_later(id, parent);
        }
        if self.draining.is_some() || is_by_hand {
            // Whoever comes next goes on with it, or whoever asks for its next step.
        } else if let Some(reason) = unfit {
            let by = By::engine();
            self.must(id, Command::Cancel { by, reason }, batch)?;
        } else if begun {
            self.must(id, Command::Recover, batch)?;
            batch.moved.push(id);
        } else {
            self.enter(inner, id);
        }
        Ok(())
    }

    /// Says something to a run that has no reason to refuse it.
    fn must(&mut self, id: RunId, command: Command, batch: &mut Batch) -> Result<()> {
        let told = self.tell(id, command, batch);
        told.map_err(|error| Error::Broken(format!("{id} refuses what it cannot: {error}")))
    }

    /// Decides what something means for a run.
    fn tell(&mut self, id: RunId, command: Command, batch: &mut Batch) -> Result<()> {
        let begun = match &command {
            Command::ChildStarted { child, .. } => Some(*child),
            _ => None,
        };
        let told = self.decide(id, command, batch);
        // A child whose parent is over, or has no use for it, is nobody's.
        batch.orphans.extend(begun.filter(|_| told.is_err()));
        told
    }

    fn decide(&mut self, id: RunId, command: Command, batch: &mut Batch) -> Result<()> {
        let active = self.runs.get_mut(&id).ok_or(Error::RunUnknown(id))?;
        let children: Vec<RunId> = active.run.state.children.keys().copied().collect();
        if let Command::Complete { instance, .. } | Command::Evaluated { instance, .. } = &command {
            let was_under_way = active.under_way.remove(instance).is_some();
            if let Some(drain) = self.draining.as_mut().filter(|_| was_under_way) {
                drain.finished += 1;
            }
        }
        let bits = &mut self.bits;
        let mut chance = || {
            *bits = stir(*bits);
            *bits
        };
        let mut moment = Moment { now_ms: self.host.now_ms(), random: &mut chance };
        let decided = active.run.decide(&active.ready.graph, command, &mut moment);
        let Decision { events, effects } = decided.map_err(|refused| Error::of(id, refused))?;
        if effects.iter().any(|effect| matches!(effect, Effect::End(_))) {
            active.ended_ms = Some(moment.now_ms);
        }
        if events.iter().any(|event| status_after(&event.data).is_some()) {
            batch.moved.push(id);
        }
        // Whoever is over, or about to be, waits for nobody.
        if active.run.state.end.is_some() || active.run.state.cancel_requested {
            batch.orphans.extend(children);
        }
        if active.progress.count(events.len(), self.snapshot_every) {
            self.due.push(id);
        }
        batch.events.extend(events);
        batch.effects.extend(effects.into_iter().map(|effect| (id, effect)));
        Ok(())
    }

    /// Begins the snapshots that are due. All that was decided is recorded, up to `through`.
    fn take_snapshots(&mut self, inner: &Arc<Inner>, through: EventIndex) {
        for id in std::mem::take(&mut self.due) {
            let Some(active) = self.runs.get_mut(&id) else { continue };
            let begun = active.progress.begin(&active.run.state, through);
            let Some(snapshot) = begun else { continue };
            let (inner, messages) = (Arc::clone(inner), self.messages.clone());
            self.host.spawn(Box::pin(async move {
                let max = inner.options.inline_max;
                let stored =
                    super::snapshots::keep(&*inner.host, &inner.store, snapshot, max).await;
                let stored = stored.map(Box::new);
                let _ = messages.send(Message::Stored(id, stored));
            }));
        }
    }

    /// Records a snapshot that is stored.
    fn stored(&mut self, id: RunId, stored: Option<Box<Stored>>, batch: &mut Batch) {
        let Some(active) = self.runs.get_mut(&id) else { return };
        active.progress.end(stored.as_deref());
        let Some(stored) = stored else { return };
        self.bits = stir(self.bits);
        let event_id = EventId::mint(self.host.now_ms(), self.bits);
        let Stored { taken, blobs, .. } = *stored;
        batch.events.push(NewEvent { id: event_id, scope: Scope::Run(id), data: taken.into() });
        batch.blobs.extend(blobs);
        batch.moved.push(id);
    }

    /// Begins the runs that have their turn, as far as there is room on the disk.
    async fn begin_admitted(&mut self, inner: &Inner, batch: &mut Batch) -> Result<()> {
        self.crowded = false;
        if self.stopped.is_some() || self.draining.is_some() || self.admitted.is_empty() {
            return Ok(());
        }
        if batch.room(inner).await.is_err() {
            self.crowded = true;
            return Ok(());
        }
        for id in std::mem::take(&mut self.admitted) {
            // One that was cancelled while it waited has left already.
            let Some(active) = self.runs.get(&id).filter(|active| active.run.state.end.is_none())
            else {
                continue;
            };
            let started = active.started.clone();
            self.must(id, Command::Start(started), batch)?;
            let now_ms = self.host.now_ms();
            self.runs.entry(id).and_modify(|active| active.started_ms = Some(now_ms));
        }
        Ok(())
    }

    fn next_timer(&self) -> Duration {
        if self.crowded {
            return ROOM_NAP;
        }
        let timer = self.timers.peek().map(|Reverse((due_ms, _, _))| *due_ms);
        let Some(due_ms) = timer.into_iter().chain(self.desk.due_ms()).min() else {
            return NAP_MAX;
        };
        Duration::from_millis(due_ms.saturating_sub(self.host.now_ms())).min(NAP_MAX)
    }

    fn fire_timers(&mut self, batch: &mut Batch) {
        let now = self.host.now_ms();
        while let Some(Reverse((due_ms, run, timer))) = self.timers.peek().copied() {
            if due_ms > now {
                return;
            }
            self.timers.pop();
            // A timer that is no longer set means nothing.
            let _ = self.tell(run, Command::FireTimer(timer), batch);
        }
    }
}

/// The next of a sequence that goes through all numbers before one comes again.
const fn stir(bits: u128) -> u128 {
    bits.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(1)
}

fn summary(session: SessionId, active: &Active) -> Summary {
    let state = &active.run.state;
    let queued = state.queued.as_ref();
    Summary {
        run: state.run_id,
        session,
        workflow: queued.map(|queued| queued.workflow_id.clone()).unwrap_or_default(),
        place: queued.and_then(|queued| queued.workflow_source_ref.clone()),
        status: state.status(),
        first: active.first,
        last: None,
        queued_ms: active.queued_ms,
        started_ms: active.started_ms,
        ended_ms: None,
        trigger: queued.and_then(|queued| queued.trigger_id.as_ref()).map(ToString::to_string),
        parent: queued.and_then(|queued| queued.parent.as_ref()).map(|parent| parent.run_id),
        snapshot: active.progress.latest(),
        is_retired: false,
        is_paper: false,
        seen: active.last.unwrap_or(active.first).next(),
    }
}

impl Error {
    /// What a run says to a command that means nothing to it.
    fn of(run: RunId, refused: Rejection) -> Self {
        Self::RunRefused { run, refused }
    }
}
