//! The store that all simulated processes share, as one of them sees it: slow, sometimes failing,
//! sometimes full, and with leases that can be taken away.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};
use cairn_store::memory::Control;
use cairn_store::port::{EventLog, Lease, Leases, Prefix, Room, Status};
use cairn_store::{AppendPlan, Appended, Epoch, Error, Result, Store};

use super::book::Book;
use super::executor::{Machine, Process};

/// How the disk is at the moment.
#[derive(Clone, Default)]
pub(super) struct Weather {
    /// Whether nothing can be written.
    pub(super) fails: Arc<AtomicBool>,
    /// Whether there is no room.
    pub(super) is_full: Arc<AtomicBool>,
}

/// Who owns what, so that it can be taken away.
#[derive(Clone)]
pub(super) struct Owners {
    control: Control,
    held: Arc<Mutex<BTreeMap<SessionId, Owner>>>,
}

struct Owner {
    number: u64,
    process: Process,
}

impl Owners {
    pub(super) fn new(control: Control) -> Self {
        Self { control, held: Arc::default() }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, BTreeMap<SessionId, Owner>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions that a process owns.
    pub(super) fn of(&self, process: Process) -> Vec<SessionId> {
        let open = self.open();
        let own = open.iter().filter(|(_, owner)| owner.process == process);
        own.map(|(session, _)| *session).collect()
    }

    /// Takes a session away from its owner, who does not hear of it.
    pub(super) fn take_away(&self, session: SessionId) -> Option<Process> {
        let owner = self.open().remove(&session)?;
        self.control.expire(session);
        Some(owner.process)
    }
}

/// The store of a process.
pub(super) fn store(
    store: &Store,
    machine: &Machine,
    process: Process,
    (book, weather, owners): (&Book, &Weather, &Owners),
) -> Store {
    let log = Log {
        inner: Arc::clone(&store.log),
        machine: machine.clone(),
        book: book.clone(),
        weather: weather.clone(),
    };
    let leases = Shared {
        inner: Arc::clone(&store.leases),
        machine: machine.clone(),
        owners: owners.clone(),
        process,
        numbers: AtomicU64::new(0),
    };
    Store { log: Arc::new(log), leases: Arc::new(leases), ..store.clone() }
}

struct Log {
    inner: Arc<dyn EventLog>,
    machine: Machine,
    book: Book,
    weather: Weather,
}

impl Log {
    async fn lag(&self) {
        let micros = self.machine.below(2_000) as u64;
        self.machine.sleep(Duration::from_micros(micros)).await;
    }

    fn full() -> Error {
        Error::Full { context: "the disk".into() }
    }
}

#[async_trait]
impl EventLog for Log {
    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        self.lag().await;
        if self.weather.fails.load(Ordering::Relaxed) {
            let source = Arc::new(std::io::Error::other("the disk fails"));
            return Err(Error::Io { context: "writing".into(), source });
        }
        if self.weather.is_full.load(Ordering::Relaxed) {
            return Err(Self::full());
        }
        let events = plan.events.clone();
        let appended = self.inner.append(session, plan).await?;
        if !appended.replayed {
            let mut book = self.book.open();
            for (event, index) in events.into_iter().zip(appended.first.0..) {
                book.recorded(event.at(session, EventIndex(index)));
            }
        }
        // Whoever ends now has recorded it, and does not know.
        self.lag().await;
        Ok(appended)
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> Result<Vec<Event>> {
        self.lag().await;
        self.inner.read_between(session, from, through).await
    }

    async fn read_prefix(&self, session: SessionId) -> Result<Prefix> {
        self.inner.read_prefix(session).await
    }

    async fn status(&self, session: SessionId) -> Result<Status> {
        self.inner.status(session).await
    }

    async fn seal(&self, session: SessionId) -> Result<()> {
        self.inner.seal(session).await
    }

    async fn room(&self, room: Room) -> Result<()> {
        match self.weather.is_full.load(Ordering::Relaxed) && room == Room::Run {
            true => Err(Self::full()),
            false => Ok(()),
        }
    }
}

struct Shared {
    inner: Arc<dyn Leases>,
    machine: Machine,
    owners: Owners,
    process: Process,
    numbers: AtomicU64,
}

struct Held {
    lease: Box<dyn Lease>,
    number: u64,
    process: Process,
    owners: Owners,
}

#[async_trait]
impl Lease for Held {
    fn session(&self) -> SessionId {
        self.lease.session()
    }

    fn epoch(&self) -> Epoch {
        self.lease.epoch()
    }

    fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    async fn lost(&self) {
        self.lease.lost().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut owners = self.owners.open();
        let own = |owner: &Owner| owner.number == self.number && owner.process == self.process;
        if owners.get(&self.lease.session()).is_some_and(own) {
            owners.remove(&self.lease.session());
        }
    }
}

#[async_trait]
impl Leases for Shared {
    async fn acquire(&self, session: SessionId, purpose: &str) -> Result<Box<dyn Lease>> {
        self.machine.sleep(Duration::from_micros(100)).await;
        let lease = self.inner.acquire(session, purpose).await?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (process, owners) = (self.process, self.owners.clone());
        owners.open().insert(session, Owner { number, process });
        Ok(Box::new(Held { lease, number, process, owners }))
    }
}
