//! A store that nothing outlives, for tests and for the simulation. It keeps the same promises,
//! durability aside, and does nothing by chance: time and random bytes come in from outside.
//!
//! [`Control`] is the hand that holds it: it gives each simulated process its handle to the one
//! store, takes leases away, and lets appends fail.

mod blobs;
mod control;
mod documents;
mod keys;
mod leases;
mod log;
pub(crate) mod mailbox;
mod sessions;
mod tables;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::SessionId;
use cairn_core::keyring::Keyring;
use cairn_core::pin::BlobKind;

pub use control::{Control, Fault, Outside};
use tables::Tables;

use crate::admit::Index;
use crate::error::{Error, Result};
use crate::fence::{Epoch, LeaseBook, Owner};
use crate::port::search::Search;
use crate::port::{Origin, RunIndex};

/// A list of runs that nothing outlives.
pub(crate) fn runs() -> Arc<dyn RunIndex> {
    Arc::new(Tables::default())
}

/// A list of what can be found that nothing outlives.
pub(crate) fn search() -> Arc<dyn Search> {
    Arc::new(Tables::default())
}

type Shelf = BTreeMap<(BlobKind, Digest), Vec<u8>>;

/// What all handles share.
struct Shared {
    outside: Outside,
    sessions: Mutex<BTreeMap<SessionId, Session>>,
    /// The order of changes: which sessions were written to, and with `None` that one came or
    /// went.
    changes: Mutex<Vec<Option<SessionId>>>,
    deleted: Mutex<BTreeSet<SessionId>>,
    blobs: Arc<Mutex<Shelf>>,
    keys: Mutex<Option<Keyring>>,
    documents: Arc<documents::Folder>,
    /// A store of its own, for what came from elsewhere.
    papers: std::sync::OnceLock<Control>,
    lines: Arc<documents::Lines>,
    rooms: Arc<documents::Rooms>,
    tables: Arc<Tables>,
    inboxes: Arc<mailbox::Inboxes>,
    /// What happens to the next appends.
    faults: Mutex<VecDeque<Fault>>,
    book: Arc<LeaseBook>,
    /// Whether owners are told at once when they are replaced.
    tells: AtomicBool,
}

/// The store, as one process holds it.
#[derive(Clone)]
struct Memory {
    shared: Arc<Shared>,
    /// The process, as others are told.
    pid: u32,
}

#[derive(Default)]
struct Session {
    bytes: u64,
    index: Index,
    events: Vec<Event>,
    kept: bool,
    origin: Option<Origin>,
    /// Who has it now, and under which epoch.
    owner: Option<(Epoch, Owner)>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
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
