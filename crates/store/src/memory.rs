//! A store that nothing outlives, for tests. It keeps the same promises, durability aside.

pub(crate) mod mailbox;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::keyring::{Keyring, SigningKey};
use cairn_core::pin::{self, BlobKind};

use crate::admit::{Admission, Admitted, Index, prepare};
use crate::error::{Error, Result};
use crate::health::Health;
use crate::open::Store;
use crate::plan::{AppendPlan, Appended, Blob};
use crate::port::{
    Blobs, Derived, EventLog, Keys, Lease, Leases, Mark, Origin, Prefix, Row, RunFilter, RunIndex,
    RunRow, SessionRead, Sessions, Status, Sweep,
};

/// Opens an empty store.
pub(crate) fn open() -> Store {
    let memory = Arc::new(Memory::default());
    Store {
        log: memory.clone(),
        sessions: memory.clone(),
        blobs: memory.clone(),
        leases: memory.clone(),
        keys: memory.clone(),
        mailbox: Arc::new(mailbox::Inboxes::default()),
        derived: Arc::clone(&memory) as _,
        runs: memory,
    }
}

/// A list of runs that nothing outlives.
pub(crate) fn runs() -> Arc<dyn RunIndex> {
    Arc::new(Memory::default())
}

/// A place for what is derived that nothing outlives.
pub(crate) fn derived() -> Arc<dyn Derived> {
    Arc::new(Memory::default())
}

type Shelf = BTreeMap<(BlobKind, Digest), Vec<u8>>;

#[derive(Default)]
struct Memory {
    sessions: Mutex<BTreeMap<SessionId, Session>>,
    blobs: Arc<Mutex<Shelf>>,
    owned: Arc<Mutex<HashSet<SessionId>>>,
    keys: Mutex<Option<Keyring>>,
    derived: Mutex<BTreeMap<(&'static str, SessionId), Row>>,
    runs: Mutex<BTreeMap<RunId, RunRow>>,
    read: Mutex<BTreeMap<SessionId, SessionRead>>,
}

#[derive(Default)]
struct Session {
    bytes: u64,
    index: Index,
    events: Vec<Event>,
    kept: bool,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    fn look<T>(&self, session: SessionId, look: impl FnOnce(&mut Session) -> T) -> Result<T> {
        held(&self.sessions).get_mut(&session).map(look).ok_or(Error::NotFound(session))
    }

    fn require(&self, kind: BlobKind, digest: Digest) -> Result<()> {
        if held(&self.blobs).contains_key(&(kind, digest)) {
            Ok(())
        } else {
            Err(Error::BlobMissing { kind: kind.name(), digest })
        }
    }
}

#[async_trait]
impl EventLog for Memory {
    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        let blobs = plan.blobs.clone();
        let plan = prepare(session, plan)?;
        for blob in blobs {
            held(&self.blobs).insert((blob.kind, blob.digest()), blob.bytes);
        }
        let needed = plan.events.iter().flat_map(|event| event.blobs());
        needed.into_iter().try_for_each(|(kind, digest)| self.require(*kind, *digest))?;
        let mut sessions = held(&self.sessions);
        let nothing = Index::default();
        let index = sessions.get(&session).map_or(&nothing, |known| &known.index);
        let mut batch = Admitted::on(index);
        let at = match batch.admit(index, &plan)? {
            Admission::Replay(at) => {
                let session_bytes = sessions.get(&session).map_or(0, |known| known.bytes);
                return Ok(Appended { session_bytes, ..at });
            }
            Admission::Append(at) => at,
        };
        let known = sessions.entry(session).or_default();
        known.index.join(batch);
        for (event, index) in plan.events.iter().zip(at.first.0..) {
            known.events.push(event.event(EventIndex(index)));
        }
        known.bytes += plan.bytes() as u64;
        Ok(Appended { session_bytes: known.bytes, ..at })
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> Result<Vec<Event>> {
        let wanted = from..=through;
        self.look(session, |known| {
            known.events.iter().filter(|event| wanted.contains(&event.index)).cloned().collect()
        })
    }

    async fn read_prefix(&self, session: SessionId) -> Result<Prefix> {
        let events = self.read(session, EventIndex(0)).await?;
        Ok(Prefix { events, health: Health::Healthy, damage: None })
    }

    async fn status(&self, session: SessionId) -> Result<Status> {
        self.look(session, |known| {
            let lines = known.events.iter().filter_map(|event| event.encode().ok());
            let pins = pin::once(known.events.iter().flat_map(Event::pins));
            Status {
                health: Health::Healthy,
                damage: None,
                notices: Vec::new(),
                events: known.events.len() as u64,
                bytes: lines.map(|line| line.len() as u64 + 1).sum(),
                pins,
                kept: known.kept,
            }
        })
    }

    async fn seal(&self, session: SessionId) -> Result<()> {
        self.look(session, |_| ())
    }
}

#[async_trait]
impl Derived for Memory {
    async fn load(&self, name: &'static str) -> Result<Vec<Row>> {
        let rows = held(&self.derived);
        Ok(rows.iter().filter(|((of, _), _)| *of == name).map(|(_, row)| row.clone()).collect())
    }

    async fn save(&self, name: &'static str, rows: Vec<Row>, gone: Vec<SessionId>) -> Result<()> {
        let mut kept = held(&self.derived);
        kept.extend(rows.into_iter().map(|row| ((name, row.session), row)));
        kept.retain(|(of, session), _| *of != name || !gone.contains(session));
        Ok(())
    }
}

#[async_trait]
impl RunIndex for Memory {
    async fn record(&self, rows: Vec<RunRow>, read: Vec<SessionRead>) -> Result<()> {
        held(&self.runs).extend(rows.into_iter().map(|row| (row.run, row)));
        held(&self.read).extend(read.into_iter().map(|read| (read.session, read)));
        Ok(())
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        let rows = held(&self.runs);
        let mut rows: Vec<RunRow> =
            rows.values().filter(|row| filter.takes(row)).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.queued_ms, row.run)));
        rows.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(rows)
    }

    async fn find(&self, run: RunId) -> Result<Option<RunRow>> {
        Ok(held(&self.runs).get(&run).cloned())
    }

    async fn sessions(&self) -> Result<Vec<SessionRead>> {
        Ok(held(&self.read).values().cloned().collect())
    }

    async fn forget(&self, gone: Vec<SessionId>) -> Result<()> {
        held(&self.runs).retain(|_, row| !gone.contains(&row.session));
        held(&self.read).retain(|session, _| !gone.contains(session));
        Ok(())
    }
}

#[async_trait]
impl Sessions for Memory {
    async fn list(&self) -> Result<Vec<SessionId>> {
        Ok(held(&self.sessions).keys().copied().collect())
    }

    async fn marks(&self) -> Result<Vec<(SessionId, Mark)>> {
        let sessions = held(&self.sessions);
        let mark = |session: &Session| {
            Mark(session.index.last().map_or_else(String::new, |last| last.to_string()))
        };
        Ok(sessions.iter().map(|(id, session)| (*id, mark(session))).collect())
    }

    async fn keep(&self, session: SessionId, kept: bool) -> Result<()> {
        self.look(session, |known| known.kept = kept)
    }

    async fn delete(&self, session: SessionId) -> Result<()> {
        if held(&self.owned).contains(&session) {
            return Err(Error::Owned { session, holder: None });
        }
        held(&self.sessions).remove(&session).map(drop).ok_or(Error::NotFound(session))
    }

    async fn retire(&self, session: SessionId, last: EventIndex) -> Result<bool> {
        let retire = |known: &mut Session| !known.kept && known.index.last() == Some(last);
        if !self.look(session, retire)? {
            return Ok(false);
        }
        self.delete(session).await.map(|()| true)
    }

    async fn adopt(
        &self,
        session: SessionId,
        events: Vec<Event>,
        _origin: Option<Origin>,
    ) -> Result<()> {
        let pins = events.iter().flat_map(Event::pins);
        pins.into_iter().try_for_each(|pin| self.require(pin.blob_kind, pin.snapshot_ref))?;
        let mut sessions = held(&self.sessions);
        if sessions.contains_key(&session) {
            return Err(Error::Exists(session));
        }
        let mut index = Index::default();
        for event in &events {
            index.add(event.index, event.dedupe_key().as_str(), event.scope);
        }
        sessions.insert(session, Session { index, events, ..Session::default() });
        Ok(())
    }
}

#[async_trait]
impl Blobs for Memory {
    async fn put(&self, blob: Blob) -> Result<Digest> {
        let digest = blob.digest();
        held(&self.blobs).insert((blob.kind, digest), blob.bytes);
        Ok(digest)
    }

    async fn get(&self, kind: BlobKind, digest: Digest) -> Result<Vec<u8>> {
        let missing = Error::BlobMissing { kind: kind.name(), digest };
        held(&self.blobs).get(&(kind, digest)).cloned().ok_or(missing)
    }

    async fn sweep(&self) -> Result<Box<dyn Sweep>> {
        Ok(Box::new(MemorySweep(self.blobs.clone())))
    }
}

struct MemorySweep(Arc<Mutex<Shelf>>);

#[async_trait]
impl Sweep for MemorySweep {
    async fn list(&self, kind: BlobKind) -> Result<Vec<(Digest, u64)>> {
        let blobs = held(&self.0);
        Ok(blobs.keys().filter(|(of, _)| *of == kind).map(|(_, digest)| (*digest, 0)).collect())
    }

    async fn remove(&self, kind: BlobKind, digest: Digest) -> Result<()> {
        held(&self.0).remove(&(kind, digest));
        Ok(())
    }
}

struct MemoryLease {
    session: SessionId,
    owned: Arc<Mutex<HashSet<SessionId>>>,
}

impl Lease for MemoryLease {
    fn session(&self) -> SessionId {
        self.session
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        held(&self.owned).remove(&self.session);
    }
}

#[async_trait]
impl Leases for Memory {
    async fn acquire(&self, session: SessionId) -> Result<Box<dyn Lease>> {
        self.look(session, |_| ())?;
        if held(&self.owned).insert(session) {
            Ok(Box::new(MemoryLease { session, owned: self.owned.clone() }))
        } else {
            Err(Error::Owned { session, holder: None })
        }
    }
}

#[async_trait]
impl Keys for Memory {
    async fn load(&self) -> Result<Keyring> {
        let fresh = SigningKey::new(crate::random_bytes()?);
        Ok(held(&self.keys).get_or_insert_with(|| Keyring::new(fresh)).clone())
    }

    async fn rotate(&self) -> Result<Keyring> {
        let fresh = SigningKey::new(crate::random_bytes()?);
        let mut keys = held(&self.keys);
        let ring = match keys.take() {
            Some(ring) => ring.rotated(fresh),
            None => Keyring::new(fresh),
        };
        Ok(keys.insert(ring).clone())
    }
}
