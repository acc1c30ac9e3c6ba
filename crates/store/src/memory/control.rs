//! The hand that holds a store in memory.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cairn_core::id::SessionId;

use super::documents::Door;
use super::{Memory, Shared, held};
use crate::error::Result;
use crate::fence::Epoch;
use crate::open::Store;
use crate::papers::NoPapers;
use crate::port::Papers;

/// What a store in memory takes from outside: it has no clock and no randomness of its own.
#[derive(Clone)]
pub struct Outside {
    /// The time, in milliseconds since 1970.
    pub now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Random bytes, for keys.
    pub random_bytes: Arc<dyn Fn() -> Result<[u8; 32]> + Send + Sync>,
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside")
    }
}

impl Outside {
    /// The system's clock and random bytes.
    #[must_use]
    pub fn system() -> Self {
        use std::time::{SystemTime, UNIX_EPOCH};
        let now_ms = || {
            // A clock before 1970 is as good as none; the time is for people.
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        };
        Self { now_ms: Arc::new(now_ms), random_bytes: Arc::new(crate::random_bytes) }
    }
}

/// What happens to an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It fails with `Full`, and nothing was written.
    Full,
    /// It fails with `Io`, and nothing was written.
    Io,
    /// It is recorded, and fails with `DurabilityLost` all the same.
    Unsure,
    /// It is recorded, and its caller never hears of it: the answer does not come.
    Unheard,
}

/// A store in memory, held from outside. Leases are never stolen in it, unless this hand takes
/// one away. Clones hold the same store.
#[derive(Clone)]
pub struct Control {
    shared: Arc<Shared>,
}

impl Control {
    /// An empty store.
    #[must_use]
    pub fn new(outside: Outside) -> Self {
        Self {
            shared: Arc::new(Shared {
                outside,
                sessions: Mutex::default(),
                changes: Mutex::default(),
                deleted: Mutex::default(),
                blobs: Arc::default(),
                keys: Mutex::default(),
                documents: Arc::default(),
                papers: OnceLock::new(),
                lines: Arc::default(),
                rooms: Arc::default(),
                tables: Arc::default(),
                inboxes: Arc::default(),
                faults: Mutex::default(),
                book: Arc::default(),
                tells: AtomicBool::new(true),
            }),
        }
    }

    /// The store, for the process of this number. All such handles share everything.
    #[must_use]
    pub fn store(&self, pid: u32) -> Store {
        let memory = Arc::new(Memory { shared: Arc::clone(&self.shared), pid });
        Store {
            log: memory.clone(),
            sessions: memory.clone(),
            blobs: memory.clone(),
            leases: memory.clone(),
            keys: memory,
            documents: Arc::clone(&self.shared.documents) as _,
            papers: Arc::new(MemoryPapers(self.clone(), pid)),
            audit: Arc::clone(&self.shared.lines) as _,
            locks: Arc::new(Door(Arc::clone(&self.shared.rooms))),
            mailbox: Arc::clone(&self.shared.inboxes) as _,
            runs: Arc::clone(&self.shared.tables) as _,
            search: Arc::clone(&self.shared.tables) as _,
        }
    }

    /// Lets a lease run out: the session is free for others. Its owner is not told, and may go
    /// on until somebody else acquires the session. Says whose it was.
    pub fn expire(&self, session: SessionId) -> Option<Epoch> {
        let mut sessions = held(&self.shared.sessions);
        sessions.get_mut(&session)?.owner.take().map(|(epoch, _)| epoch)
    }

    /// From now on owners hear of being replaced when this is told to tell them.
    pub fn tell_later(&self) {
        self.shared.tells.store(false, Ordering::Relaxed);
    }

    /// Tells all owners of a session but the last that they were replaced.
    pub fn tell_replaced(&self, session: SessionId) {
        let last = self.shared.look(session, |known| known.index.ownership.epoch);
        last.iter().for_each(|epoch| self.shared.book.tell_older(session, *epoch));
    }

    /// Lets a lease run out and tells its owner at once. Says whose it was.
    pub fn revoke(&self, session: SessionId) -> Option<Epoch> {
        let epoch = self.expire(session)?;
        self.shared.book.tell_owner(session, epoch);
        Some(epoch)
    }

    /// Who owns a session now, by epoch.
    #[must_use]
    pub fn owner(&self, session: SessionId) -> Option<Epoch> {
        let sessions = held(&self.shared.sessions);
        sessions.get(&session)?.owner.as_ref().map(|(epoch, _)| *epoch)
    }

    /// Plans what happens to so many of the next appends, behind what is planned already.
    pub fn fail(&self, fault: Fault, times: usize) {
        held(&self.shared.faults).extend(std::iter::repeat_n(fault, times));
    }

    /// Drops what is planned; gives how many appends would still have failed.
    pub fn calm(&self) -> usize {
        std::mem::take::<VecDeque<Fault>>(&mut held(&self.shared.faults)).len()
    }
}

/// The papers of a store, for the process of a number.
struct MemoryPapers(Control, u32);

impl Papers for MemoryPapers {
    fn find(&self) -> Result<Option<Store>> {
        let papers = self.0.shared.papers.get();
        Ok(papers.map(|held| Store { papers: Arc::new(NoPapers), ..held.store(self.1) }))
    }

    fn open(&self) -> Result<Store> {
        let outside = self.0.shared.outside.clone();
        let held = self.0.shared.papers.get_or_init(|| Control::new(outside));
        Ok(Store { papers: Arc::new(NoPapers), ..held.store(self.1) })
    }
}
