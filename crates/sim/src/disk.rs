//! A simulated disk: what is durable, what is only in memory, and who holds which lock.
//!
//! Nothing becomes durable but by a sync of the very file or directory that it touches;
//! a file's name is not made durable by syncing the file. That is less than any real file
//! system keeps, so what survives here survives there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::effect::{Change, Effect};
use crate::fs::SimFs;
use crate::image::{Body, Image, Inode};

/// The time at which every world begins.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// A disk. Clones are the same disk; [`Disk::fork`] makes another one.
#[derive(Clone, Debug)]
pub struct Disk {
    state: Arc<Mutex<State>>,
}

/// Everything there is to know about a disk.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// What calls see.
    pub(crate) live: Image,
    /// What survives a crash whatever happens.
    pub(crate) durable: Image,
    /// What a crash may undo, in order.
    pub(crate) pending: Vec<Effect>,
    locks: BTreeMap<Inode, BTreeMap<u64, Share>>,
    last_inode: Inode,
    last_handle: u64,
    now_ms: u64,
    version: u64,
}

/// How much of a lock somebody holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    Alone,
    Shared,
}

impl Default for Disk {
    fn default() -> Self {
        Self::on(Image::default())
    }
}

impl Disk {
    /// A disk after a crash: what is there is durable, and nothing is pending.
    #[must_use]
    pub fn on(mut image: Image) -> Self {
        image.prune();
        let state = State {
            last_inode: image.last_inode(),
            durable: image.clone(),
            live: image,
            pending: Vec::new(),
            locks: BTreeMap::new(),
            last_handle: 0,
            now_ms: EPOCH_MS,
            version: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A process that uses this disk.
    #[must_use]
    pub fn process(&self) -> SimFs {
        SimFs::new(self.clone())
    }

    /// Another disk in the same state, with the same locks held.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { state: Arc::new(Mutex::new(self.lock().clone())) }
    }

    /// Another disk in the state that is left when every process is killed and the power
    /// stays: nothing is lost yet, and nothing is locked.
    #[must_use]
    pub fn killed(&self) -> Self {
        let fork = self.fork();
        fork.lock().locks.clear();
        fork
    }

    /// What calls see.
    #[must_use]
    pub fn live(&self) -> Image {
        self.lock().live.clone()
    }

    /// What survives a crash whatever happens.
    #[must_use]
    pub fn durable(&self) -> Image {
        self.lock().durable.clone()
    }

    /// What a crash may undo, in order.
    #[must_use]
    pub fn pending(&self) -> Vec<Effect> {
        self.lock().pending.clone()
    }

    /// A number that rises with every change and with every sync that had something to do.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes a change that is not durable yet.
    pub(crate) fn change(&mut self, path: &Path, change: Change) {
        self.now_ms += 1;
        self.version += 1;
        self.live.apply(&change, self.now_ms);
        self.pending.push(Effect { path: path.to_owned(), at_ms: self.now_ms, change });
    }

    /// Makes a file or directory that no name leads to yet.
    pub(crate) fn create(&mut self, body: Body) -> Inode {
        self.last_inode = Inode(self.last_inode.0 + 1);
        self.live.add(self.last_inode, body.clone(), self.now_ms);
        self.durable.add(self.last_inode, body, self.now_ms);
        self.last_inode
    }

    /// Makes everything durable that touches this file or directory.
    pub(crate) fn sync(&mut self, inode: Inode) {
        for effect in self.take(inode) {
            self.durable.apply(&effect.change, effect.at_ms);
        }
    }

    /// Forgets that anything that touches this file is still to be made durable.
    pub(crate) fn lose(&mut self, inode: Inode) {
        self.take(inode);
    }

    fn take(&mut self, inode: Inode) -> Vec<Effect> {
        let all = std::mem::take(&mut self.pending);
        let (taken, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|effect| effect.touches() == inode);
        self.pending = rest;
        self.version += u64::from(!taken.is_empty());
        taken
    }

    /// A number for a newly opened file.
    pub(crate) fn handle(&mut self) -> u64 {
        self.last_handle += 1;
        self.last_handle
    }

    /// Takes a lock for one open file, unless another one's is in the way.
    pub(crate) fn try_lock(&mut self, inode: Inode, handle: u64, share: Share) -> bool {
        let holders = self.locks.entry(inode).or_default();
        let free = holders.iter().all(|(holder, held)| {
            *holder == handle || (share == Share::Shared && *held == Share::Shared)
        });
        if free {
            holders.insert(handle, share);
        }
        free
    }

    /// Gives back whatever lock an open file has.
    pub(crate) fn unlock(&mut self, inode: Inode, handle: u64) {
        if let Some(holders) = self.locks.get_mut(&inode) {
            holders.remove(&handle);
        }
    }
}
