//! The store that all simulated processes share, as one of them sees it: slow, sometimes failing,
//! sometimes full, and with leases that can be taken away.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_store::memory::Control;
use cairn_store::port::{
    EventLog, Lease, Leases, Mark, Moved, Origin, Place, Prefix, Room, RunFilter, RunIndex, RunRow,
    SessionRead, Sessions, Status, Which,
};
use cairn_store::{AppendPlan, Appended, Epoch, Error, Result, Store};

use super::book::Book;
use super::executor::{Machine, Process};
use super::ports;
use super::weather::{Fault, Weather};

/// Which sessions processes have acquired, so that they can be taken away.
#[derive(Clone, Default)]
pub(super) struct Owners(Arc<Mutex<BTreeSet<(Process, SessionId)>>>);

impl Owners {
    fn open(&self) -> MutexGuard<'_, BTreeSet<(Process, SessionId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions that a process has acquired.
    pub(super) fn of(&self, process: Process) -> Vec<SessionId> {
        let own = |(of, session): &(Process, SessionId)| (*of == process).then_some(*session);
        self.open().iter().filter_map(own).collect()
    }
}

/// The store of a process.
pub(super) fn store(
    control: &Control,
    machine: &Machine,
    process: Process,
    (book, weather, owners): (&Book, &Weather, &Owners),
) -> Store {
    let store = control.store(process.0);
    let log = Log {
        inner: Arc::clone(&store.log),
        sessions: Arc::clone(&store.sessions),
        machine: machine.clone(),
        process,
        book: book.clone(),
        weather: weather.clone(),
    };
    let leases = Noted {
        inner: Arc::clone(&store.leases),
        control: control.clone(),
        machine: machine.clone(),
        owners: owners.clone(),
        weather: weather.clone(),
        process,
    };
    let weather = weather.clone();
    let store = ports::in_weather(store, machine, &weather);
    let slow = Slow { machine: machine.clone(), weather, store: store.clone() };
    let slow = Arc::new(slow);
    Store {
        log: Arc::new(log),
        leases: Arc::new(leases),
        sessions: Arc::clone(&slow) as _,
        runs: slow,
        ..store
    }
}

/// The lists of a store, which others may change while one is read.
struct Slow {
    machine: Machine,
    weather: Weather,
    store: Store,
}

impl Slow {
    async fn lag(&self) {
        if self.machine.percent(20) {
            let micros = self.machine.below(1_000) as u64;
            self.machine.sleep(Duration::from_micros(micros)).await;
        }
    }
}

#[async_trait]
impl Sessions for Slow {
    async fn list(&self) -> Result<Vec<SessionId>> {
        self.store.sessions.list().await
    }

    async fn mark(&self, session: SessionId) -> Result<Option<Mark>> {
        let mark = self.store.sessions.mark(session).await;
        self.lag().await;
        mark
    }

    async fn moved(&self, since: Option<&Place>) -> Result<Moved> {
        let moved = self.store.sessions.moved(since).await;
        self.lag().await;
        moved
    }

    async fn keep(&self, session: SessionId, kept: bool) -> Result<()> {
        self.store.sessions.keep(session, kept).await
    }

    async fn delete(&self, session: SessionId, fence: Option<Epoch>) -> Result<()> {
        self.store.sessions.delete(session, fence).await
    }

    async fn retire(
        &self,
        session: SessionId,
        last: EventIndex,
        fence: Option<Epoch>,
    ) -> Result<bool> {
        self.store.sessions.retire(session, last, fence).await
    }

    async fn adopt(
        &self,
        session: SessionId,
        events: Vec<Event>,
        origin: Option<Origin>,
    ) -> Result<()> {
        self.store.sessions.adopt(session, events, origin).await
    }

    async fn is_deleted(&self, session: SessionId) -> Result<bool> {
        self.store.sessions.is_deleted(session).await
    }

    async fn origin(&self, session: SessionId) -> Result<Option<Origin>> {
        self.store.sessions.origin(session).await
    }
}

#[async_trait]
impl RunIndex for Slow {
    async fn record(&self, rows: Vec<RunRow>, read: Vec<SessionRead>) -> Result<()> {
        self.lag().await;
        self.weather.pass(Fault::Index)?;
        self.store.runs.record(rows, read).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        let rows = self.store.runs.list(filter).await;
        self.lag().await;
        self.weather.pass(Fault::Index)?;
        rows
    }

    async fn find(&self, run: RunId) -> Result<Option<RunRow>> {
        let row = self.store.runs.find(run).await;
        self.lag().await;
        self.weather.pass(Fault::Index)?;
        row
    }

    async fn place(&self) -> Result<Option<Place>> {
        let place = self.store.runs.place().await;
        self.lag().await;
        place
    }

    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()> {
        self.lag().await;
        self.weather.pass(Fault::Index)?;
        self.store.runs.reach(since, place).await
    }

    async fn sessions(&self, which: &Which) -> Result<Vec<SessionRead>> {
        let read = self.store.runs.sessions(which).await;
        self.lag().await;
        read
    }

    async fn forget(&self, gone: Vec<SessionId>) -> Result<()> {
        self.lag().await;
        self.store.runs.forget(gone).await
    }
}

struct Log {
    inner: Arc<dyn EventLog>,
    sessions: Arc<dyn Sessions>,
    machine: Machine,
    process: Process,
    book: Book,
    weather: Weather,
}

impl Log {
    async fn lag(&self) {
        let micros = self.machine.below(2_000) as u64;
        self.machine.sleep(Duration::from_micros(micros)).await;
    }

    /// Has the book know of a session that came from elsewhere, with the first that is added to it.
    async fn know(&self, session: SessionId, plan: &AppendPlan) -> Result<()> {
        let runs = plan.events.iter().filter_map(|event| event.scope.run());
        let fresh: Vec<_> = runs.filter(|run| !self.book.open().knows(*run)).collect();
        if fresh.is_empty() || self.sessions.origin(session).await?.is_none() {
            return Ok(());
        }
        let history = self.inner.read(session, EventIndex(0)).await?;
        let of_known = |event: &&Event| event.scope.run().is_some_and(|run| fresh.contains(&run));
        let history: Vec<Event> = history.iter().filter(of_known).cloned().collect();
        self.book.open().adopted(&history);
        Ok(())
    }

    fn full() -> Error {
        Error::Full { context: "the disk".into() }
    }
}

#[async_trait]
impl EventLog for Log {
    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        self.lag().await;
        self.weather.pass(Fault::Write)?;
        if self.weather.strikes(Fault::Full) {
            return Err(Self::full());
        }
        self.know(session, &plan).await?;
        let events = plan.events.clone();
        let appended = self.inner.append(session, plan).await.inspect_err(|error| {
            if let Error::Fenced { .. } = error {
                self.weather.hit("lease lost");
            }
        })?;
        if !appended.replayed {
            let mut book = self.book.open();
            for (event, index) in events.into_iter().zip(appended.first.0..) {
                book.recorded(self.process, event.at(session, EventIndex(index)));
            }
        }
        // Whoever ends now has recorded it, and does not know.
        self.lag().await;
        if self.weather.strikes(Fault::Unsure) {
            let source = Arc::new(std::io::Error::other("the sync failed"));
            return Err(Error::DurabilityLost { path: "the journal".into(), source });
        }
        Ok(appended)
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> Result<Vec<Event>> {
        self.lag().await;
        self.weather.pass(Fault::Read)?;
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
        match room == Room::Run && self.weather.strikes(Fault::Full) {
            true => Err(Self::full()),
            false => Ok(()),
        }
    }
}

/// How long it may take until an owner hears that it was replaced, in milliseconds.
const HEARD_MS: usize = 4_000;

struct Noted {
    inner: Arc<dyn Leases>,
    control: Control,
    machine: Machine,
    owners: Owners,
    weather: Weather,
    process: Process,
}

#[async_trait]
impl Leases for Noted {
    async fn acquire(&self, session: SessionId, purpose: &str) -> Result<Box<dyn Lease>> {
        self.machine.sleep(Duration::from_micros(100)).await;
        self.weather.pass(Fault::Acquire)?;
        let lease = self.inner.acquire(session, purpose).await?;
        self.owners.open().insert((self.process, session));
        let (machine, control) = (self.machine.clone(), self.control.clone());
        let pause = Duration::from_millis(self.machine.below(HEARD_MS) as u64);
        // Whoever acquired it may be gone by then.
        self.machine.spawn(
            Process::WORLD,
            Box::pin(async move {
                machine.sleep(pause).await;
                control.tell_replaced(session);
            }),
        );
        Ok(lease)
    }
}
