//! The event log: many callers, one commit at a time for each session.
//!
//! Whoever finds a session idle commits for itself, without a detour. Plans that arrive
//! meanwhile are committed together, as one, by a thread that goes on until none is left.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::event::{Event, EventData};
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::pin;
use tokio::sync::oneshot;

use super::Config;
use super::blobs::{FileBlobs, Pinning};
use super::changes::Changes;
use super::durable::failed;
use super::epoch;
use super::fs::Fs;
use super::layout::{Layout, SessionDir};
use super::pace::{Pace, blocking};
use super::seal;
use super::session::Session;
use crate::admit::{Prepared, prepare};
use crate::error::{Error, Result};
use crate::fence::{Epoch, LeaseBook};
use crate::health::Health;
use crate::plan::{AppendPlan, Appended};
use crate::port::{EventLog, Prefix, Room, Status};

/// Sessions that a process keeps open; each costs a few file descriptors.
const OPEN_MAX: usize = 128;
/// Plans in one commit, and bytes.
const BATCH_MAX: usize = 1024;
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Plans that may wait for one session.
const WAITING_MAX: usize = 8192;
/// How long a busy committer waits for those it has just answered to come again.
const REGROUP: Duration = Duration::from_micros(150);

pub(super) struct FileLog {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) config: Config,
    pub(super) layout: Layout,
    blobs: Arc<FileBlobs>,
    /// The order of changes; none on a file system that nobody else looks at.
    pub(super) changes: Option<Arc<Changes>>,
    /// The leases of this process.
    pub(super) book: Arc<LeaseBook>,
    open: Mutex<Open>,
    pace: Pace,
}

#[derive(Default)]
struct Open {
    slots: HashMap<SessionId, (Arc<Slot>, u64)>,
    clock: u64,
}

/// One session of this process, and the plans that wait for it.
pub(super) struct Slot {
    session: Mutex<Session>,
    queue: Mutex<Queue>,
    arrived: Condvar,
    book: Arc<LeaseBook>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Ticket>,
    busy: bool,
}

struct Ticket {
    plan: Prepared,
    /// Keeps the plan's blobs from being collected until it is committed, whoever still waits.
    pinning: Option<Pinning>,
    answer: oneshot::Sender<Result<Appended>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileLog {
    pub(super) fn new(
        fs: Arc<dyn Fs>,
        config: Config,
        layout: Layout,
        blobs: Arc<FileBlobs>,
        changes: Option<Changes>,
    ) -> Self {
        let (book, open, pace) = (Arc::default(), Mutex::default(), Pace::default());
        let changes = changes.map(Arc::new);
        Self { fs, config, layout, blobs, changes, book, open, pace }
    }

    pub(super) fn dir(&self, session: SessionId) -> SessionDir {
        SessionDir { path: self.layout.session(session) }
    }

    fn slot(&self, session: SessionId) -> Arc<Slot> {
        let mut open = held(&self.open);
        open.clock += 1;
        let now = open.clock;
        if let Some((slot, used)) = open.slots.get_mut(&session) {
            *used = now;
            return slot.clone();
        }
        open.make_room();
        let (fs, changes, dir) = (self.fs.clone(), self.changes.clone(), self.dir(session));
        let made = Session::new(fs, &self.config, changes, dir, session);
        let slot = Arc::new(Slot {
            session: Mutex::new(made),
            queue: Mutex::default(),
            arrived: Condvar::new(),
            book: Arc::clone(&self.book),
        });
        open.slots.insert(session, (slot.clone(), now));
        slot
    }

    /// Forgets what this process knows of a session.
    pub(super) fn forget(&self, session: SessionId) {
        held(&self.open).slots.remove(&session);
    }

    fn make_dir(&self, session: SessionId) -> Result<()> {
        let path = self.layout.session(session);
        match self.fs.create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(failed("making", &path)(error))
            }
            // The first commit makes the entry durable, before anything is acknowledged.
            _ => Ok(()),
        }
    }

    /// New work is refused while there is still room to finish what is under way.
    fn require_room(&self, wanted: Room) -> Result<()> {
        let root = &self.layout.root;
        let space = self.fs.space(root).map_err(failed("measuring", root))?;
        let min = self.config.free_min;
        let (who, needed) = match wanted {
            Room::Run => ("new runs need", min.of(space.total)),
            Room::Step => ("runs under way need", min.bytes / 4),
        };
        if space.free >= needed {
            return Ok(());
        }
        let (free, needed) = (space.free >> 20, needed >> 20);
        Err(Error::Full { context: format!("{free} MiB are free, and {who} {needed} MiB") })
    }

    /// Looks at a session. One that is deleted meanwhile looks like many things, and is gone.
    fn unless_gone<T>(&self, session: SessionId, look: impl FnOnce() -> Result<T>) -> Result<T> {
        let seen = blocking(look);
        let path = self.layout.session(session);
        match self.fs.stat(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget(session);
                Err(Error::NotFound(session))
            }
            _ => seen,
        }
    }

    /// Raises a session's epoch for a new owner. Durable when this returns.
    pub(super) fn raise_epoch(&self, session: SessionId) -> Result<Epoch> {
        let slot = self.slot(session);
        held(&slot.session).write()?.raise_epoch()
    }

    /// Compares an owner's epoch with the session's own; an owner that was replaced is told.
    pub(super) fn verify_epoch(&self, session: SessionId, held_epoch: Epoch) -> Result<()> {
        self.under_epoch(session, held_epoch, || Ok(()))
    }

    /// Does something for the owner of an epoch while nobody else can acquire the session; an
    /// owner that was replaced is told, and nothing is done.
    pub(super) fn under_epoch<T>(
        &self,
        session: SessionId,
        held_epoch: Epoch,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let slot = self.slot(session);
        let done = {
            let mut known = held(&slot.session);
            let writer = known.write()?;
            writer.check_epoch(held_epoch).and_then(|()| act())
        };
        done.inspect_err(|refusal| self.book.tell(refusal))
    }

    /// Seals what was appended so far.
    pub(super) fn seal_now(&self, session: SessionId) -> Result<()> {
        let slot = self.slot(session);
        {
            let mut known = held(&slot.session);
            known.look()?;
            known.write()?.rotate()?;
        }
        slot.seal(&self.config)
    }
}

impl Open {
    /// Closes the session that was used longest ago, if nobody is using it.
    fn make_room(&mut self) {
        if self.slots.len() < OPEN_MAX {
            return;
        }
        let idle = self.slots.iter().filter(|(_, (slot, _))| slot.may_go());
        let oldest = idle.min_by_key(|(_, (_, used))| *used).map(|(session, _)| *session);
        if let Some(session) = oldest {
            self.slots.remove(&session);
        }
    }
}

impl Slot {
    /// Whether nobody uses it, and nothing would be forgotten that must not be.
    fn may_go(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
            && self.session.try_lock().is_ok_and(|session| session.state.poison.is_none())
    }

    /// Whether this process has read the session, so that it is there.
    fn is_known(&self) -> bool {
        held(&self.session).state.resident.is_some()
    }

    /// Puts a plan in the queue; `true` when the caller has to commit it.
    fn enqueue(&self, session: SessionId, ticket: Ticket) -> Result<bool> {
        let mut queue = held(&self.queue);
        let waiting = queue.waiting.len();
        if waiting >= WAITING_MAX {
            return Err(Error::Busy { session, waiting });
        }
        queue.waiting.push(ticket);
        let lead = !std::mem::replace(&mut queue.busy, true);
        if !lead {
            self.arrived.notify_one();
        }
        Ok(lead)
    }

    /// Commits what is waiting; `true` when more has come meanwhile.
    fn commit_once(self: &Arc<Self>, config: &Config) -> bool {
        let batch = self.take();
        self.commit(batch, config);
        self.has_more()
    }

    fn has_more(&self) -> bool {
        let mut queue = held(&self.queue);
        queue.busy = !queue.waiting.is_empty();
        queue.busy
    }

    fn take(&self) -> Vec<Ticket> {
        let mut queue = held(&self.queue);
        let mut bytes = 0;
        let within = queue.waiting.iter().take(BATCH_MAX).take_while(|ticket| {
            bytes += ticket.plan.bytes();
            bytes <= BATCH_BYTES_MAX
        });
        // One is always taken, however large it is.
        let count = within.count().max(1).min(queue.waiting.len());
        queue.waiting.drain(..count).collect()
    }

    /// Commits until nobody comes any more.
    fn drain(self: &Arc<Self>, config: &Config) {
        loop {
            let batch = self.take();
            let size = batch.len();
            self.commit(batch, config);
            let waiting = held(&self.queue);
            let more = |queue: &mut Queue| queue.waiting.len() < size;
            // Those who were just answered often have the next plan ready; a commit of all of
            // them costs as much as a commit of the first.
            let waited = self.arrived.wait_timeout_while(waiting, REGROUP, more);
            drop(waited);
            if !self.has_more() {
                return;
            }
        }
    }

    fn commit(self: &Arc<Self>, batch: Vec<Ticket>, config: &Config) {
        let mut pinnings = Vec::new();
        let (plans, answers): (Vec<Prepared>, Vec<_>) = batch
            .into_iter()
            .map(|Ticket { plan, pinning, answer }| {
                pinnings.push(pinning);
                (plan, answer)
            })
            .unzip();
        let (results, full) = match held(&self.session).write() {
            Ok(mut writer) => {
                let results = writer.commit(&plans);
                // A journal that cannot be ended now can be ended later.
                (results, writer.is_full() && writer.rotate().is_ok())
            }
            Err(error) => (plans.iter().map(|_| Err(error.clone())).collect(), false),
        };
        drop(pinnings);
        for (answer, result) in answers.into_iter().zip(results) {
            if let Err(refusal) = &result {
                self.book.tell(refusal);
            }
            // A caller that went away does not need the answer.
            let _ = answer.send(result);
        }
        if full {
            let (slot, config) = (self.clone(), config.clone());
            // What cannot be sealed now stays in its journal and is sealed next time.
            let sealer = std::thread::Builder::new().name("cairn-seal".into());
            let _ = sealer.spawn(move || slot.seal(&config).ok());
        }
    }

    /// Answers everybody who waits with the same error.
    fn refuse_all(&self, error: &Error) {
        let mut queue = held(&self.queue);
        queue.busy = false;
        for ticket in queue.waiting.drain(..) {
            let _ = ticket.answer.send(Err(error.clone()));
        }
    }

    fn seal(&self, config: &Config) -> Result<()> {
        let (fs, dir, id) = {
            let session = held(&self.session);
            (session.fs.clone(), session.dir.clone(), session.id)
        };
        let sealed = seal::seal(&*fs, &dir, id, config.segment_max);
        let mut session = held(&self.session);
        if let Err(error) = &sealed {
            session.poison_on(error);
        }
        // The segments take the journals' place in what is known, the next time somebody looks.
        session.look().and(sealed)
    }
}

#[async_trait]
impl EventLog for FileLog {
    async fn room(&self, wanted: Room) -> Result<()> {
        self.require_room(wanted)
    }

    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        let begins =
            |data: &EventData| matches!(data, EventData::RunStarted(_) | EventData::RunQueued(_));
        if plan.events.iter().any(|event| begins(&event.data)) {
            self.require_room(Room::Run)?;
        }
        let blobs = plan.blobs.clone();
        let prepared = prepare(session, plan)?;
        let needed: BTreeSet<_> = prepared.events.iter().flat_map(|event| event.blobs()).collect();
        let pinning = if needed.is_empty() && blobs.is_empty() {
            None
        } else {
            Some(blocking(|| {
                let pinning = self.blobs.pinning()?;
                blobs.iter().try_for_each(|blob| self.blobs.keep(blob).map(drop))?;
                needed.iter().try_for_each(|(kind, blob)| self.blobs.require(*kind, *blob))?;
                Ok::<_, Error>(pinning)
            })?)
        };
        let slot = self.slot(session);
        let (answer, answered) = oneshot::channel();
        if slot.enqueue(session, Ticket { plan: prepared, pinning, answer })? {
            let more = if slot.is_known() {
                self.pace.keeping(|| Ok(slot.commit_once(&self.config)))
            } else {
                blocking(|| self.make_dir(session).map(|()| slot.commit_once(&self.config)))
            };
            match more {
                Ok(true) => {
                    let (slot, config) = (slot.clone(), self.config.clone());
                    tokio::task::spawn_blocking(move || slot.drain(&config));
                }
                Ok(false) => {}
                Err(error) => slot.refuse_all(&error),
            }
        }
        answered.await.unwrap_or_else(|_| {
            let source = Arc::new(io::Error::from(io::ErrorKind::BrokenPipe));
            Err(Error::Io { context: "waiting for a commit that was given up".into(), source })
        })
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> Result<Vec<Event>> {
        let slot = self.slot(session);
        self.unless_gone(session, || {
            let mut known = held(&slot.session);
            let view = known.look()?;
            match view.health {
                Health::Healthy if view.resident.index.last().is_some() => {
                    known.events(from, through)
                }
                Health::Healthy => Err(Error::NotFound(session)),
                health => Err(Error::unhealthy(session, health, view.damage)),
            }
        })
    }

    async fn read_prefix(&self, session: SessionId) -> Result<Prefix> {
        let slot = self.slot(session);
        self.unless_gone(session, || {
            let mut known = held(&slot.session);
            let (health, damage) = {
                let view = known.look()?;
                (view.health, view.damage)
            };
            let events = known.events(EventIndex(0), EventIndex::LAST)?;
            if events.is_empty() && health == Health::Healthy {
                return Err(Error::NotFound(session));
            }
            Ok(Prefix { events, health, damage })
        })
    }

    async fn status(&self, session: SessionId) -> Result<Status> {
        let slot = self.slot(session);
        self.unless_gone(session, || {
            let mut known = held(&slot.session);
            let view = known.look()?;
            let resident = view.resident;
            let events = resident.index.next().0;
            if events == 0 && view.health == Health::Healthy {
                return Err(Error::NotFound(session));
            }
            let (bytes, pins) = (resident.bytes, pin::once(resident.pins.iter().copied()));
            let (mut health, mut damage) = (view.health, view.damage);
            if damage.is_none() {
                damage = epoch::damage(&*self.fs, &self.dir(session))?;
                health = if damage.is_some() { Health::CorruptTail } else { health };
            }
            let format = resident.needs.max(1);
            let kept = self.fs.stat(&self.dir(session).keep()).is_ok();
            let notices = known.state.notices.clone();
            Ok(Status { health, damage, notices, events, bytes, pins, kept, format })
        })
    }

    async fn seal(&self, session: SessionId) -> Result<()> {
        blocking(|| self.seal_now(session))
    }
}
