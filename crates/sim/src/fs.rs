//! The simulated file system, as one process sees it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_store::files::fs::{File, Fs, Open, Space, Stat};

use crate::disk::{Disk, State};
use crate::effect::Change;
use crate::fault::{Call, Fault, Op};
use crate::file::SimFile;
use crate::image::{Body, Image, Inode};

const ROOM: u64 = 1 << 40;

/// Sees every call before it is made; gets the number of calls made so far.
pub type Watch = Arc<dyn Fn(u64) + Send + Sync>;

/// A process: its calls are counted, fail as planned, and end when it does.
#[derive(Clone)]
pub struct SimFs {
    disk: Disk,
    process: Arc<Mutex<Process>>,
}

#[derive(Default)]
struct Process {
    ops: Vec<Op>,
    opened: Vec<(Inode, u64)>,
    faults: BTreeMap<u64, Fault>,
    struck: u64,
    stop_after: Option<u64>,
    full: bool,
    watch: Option<Watch>,
}

impl fmt::Debug for SimFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFs").field("ops", &self.ops().len()).finish_non_exhaustive()
    }
}

impl SimFs {
    pub(crate) fn new(disk: Disk) -> Self {
        Self { disk, process: Arc::default() }
    }

    /// Plans what goes wrong with the call of this number.
    pub fn fault(&self, op: u64, fault: Fault) {
        self.lock().faults.insert(op, fault);
    }

    /// Forgets the faults that have not struck yet, and the watcher.
    pub fn calm(&self) {
        let mut process = self.lock();
        process.faults.clear();
        process.watch = None;
    }

    /// Plans the process's end: it makes this many calls, and no other has any effect.
    pub fn stop_after(&self, ops: u64) {
        self.lock().stop_after = Some(ops);
    }

    /// Ends the process: no call has any effect from now on, and its locks are free.
    pub fn end(&self) {
        let mut process = self.lock();
        process.stop_after = Some(0);
        let mut state = self.disk.lock();
        for (inode, handle) in process.opened.drain(..) {
            state.unlock(inode, handle);
        }
    }

    /// Says whether the disk is full: then nothing can be written, and the rest goes on.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Lets somebody see every call before it is made.
    pub fn watch(&self, watch: Watch) {
        self.lock().watch = Some(watch);
    }

    /// The calls that were made.
    #[must_use]
    pub fn ops(&self) -> Vec<Op> {
        self.lock().ops.clone()
    }

    /// How many calls were made.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.lock().ops.len() as u64
    }

    /// How many of the planned faults have struck.
    #[must_use]
    pub fn struck(&self) -> u64 {
        self.lock().struck
    }

    /// The disk it uses.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    fn lock(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and gives what is to go wrong with it.
    pub(crate) fn enter(&self, call: Call, path: &Path) -> io::Result<Option<Fault>> {
        // The watcher may use the disk through another process, so nothing is locked here.
        let count = self.count();
        let watch = self.lock().watch.clone();
        if let Some(watch) = watch {
            watch(count);
        }
        let mut process = self.lock();
        if process.stop_after.is_some_and(|last| count >= last) {
            return Err(io::Error::other("the process has ended"));
        }
        let number = count + 1;
        process.ops.push(Op { number, call, path: path.to_owned() });
        if process.full && call == Call::Write {
            return Err(Fault::Enospc.error());
        }
        let fault = process.faults.remove(&number).filter(|fault| fault.befalls(call));
        process.struck += u64::from(fault.is_some());
        Ok(fault)
    }

    /// Makes a call that fails as a whole when it fails.
    pub(crate) fn call<T>(
        &self,
        call: Call,
        path: &Path,
        perform: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.enter(call, path)? {
            Some(fault) => Err(fault.error()),
            None => perform(&mut self.disk.lock()),
        }
    }
}

impl Fs for SimFs {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        let (inode, handle) = self.call(Call::Open, path, |state| {
            let inode = match (state.live.find(path), how) {
                (Ok(_), Open::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
                (Ok(inode), _) => inode,
                (Err(_), Open::Create | Open::CreateNew) => {
                    let (dir, name) = state.live.place(path)?;
                    let node = state.create(Body::File(Vec::new()));
                    state.change(path, Change::Link { dir, name, node });
                    node
                }
                (Err(error), Open::Read | Open::Write) => return Err(error),
            };
            state.live.bytes(inode)?;
            Ok((inode, state.handle()))
        })?;
        self.lock().opened.push((inode, handle));
        let (fs, path, writable) = (self.clone(), path.to_owned(), how != Open::Read);
        Ok(Box::new(SimFile { fs, path, inode, handle, writable }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.call(Call::Read, path, |state| Ok(state.live.bytes(state.live.find(path)?)?.to_vec()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Rename, to, |state| rename(state, from, to))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Rename, to, |state| match state.live.find(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => rename(state, from, to),
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call(Call::Remove, path, |state| {
            state.live.bytes(state.live.find(path)?)?;
            let (dir, name) = state.live.place(path)?;
            state.change(path, Change::Unlink { dir, name });
            Ok(())
        })
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.call(Call::Remove, path, |state| {
            state.live.names(state.live.find(path)?)?;
            remove(state, path)
        })
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let full = self.lock().full;
        self.call(Call::CreateDir, path, |state| {
            if state.live.find(path).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if full {
                return Err(Fault::Enospc.error());
            }
            let (dir, name) = state.live.place(path)?;
            let node = state.create(Body::Dir(BTreeMap::new()));
            state.change(path, Change::Link { dir, name, node });
            Ok(())
        })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.call(Call::SyncDir, path, |state| {
            let dir = state.live.find(path)?;
            state.live.names(dir)?;
            state.sync(dir);
            Ok(())
        })
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<String>> {
        self.call(Call::Look, path, |state| {
            Ok(state.live.names(state.live.find(path)?)?.keys().cloned().collect())
        })
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.call(Call::Look, path, |state| stat(&state.live, state.live.find(path)?))
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.call(Call::Look, path, |_| Ok(Space { free: ROOM, total: ROOM }))
    }
}

fn rename(state: &mut State, from: &Path, to: &Path) -> io::Result<()> {
    let node = state.live.find(from)?;
    let (from_dir, from_name) = state.live.place(from)?;
    let (dir, to_name) = state.live.place(to)?;
    if state.live.find(to).is_ok_and(|there| state.live.names(there).is_ok()) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if from_dir == dir {
        state.change(to, Change::Rename { dir, from: from_name, to: to_name, node });
    } else {
        // Each directory is durable by itself, so that half of a move is what a crash can leave.
        state.change(to, Change::Link { dir, name: to_name, node });
        state.change(from, Change::Unlink { dir: from_dir, name: from_name });
    }
    Ok(())
}

fn remove(state: &mut State, path: &Path) -> io::Result<()> {
    let inside = state.live.find(path).and_then(|inode| state.live.names(inode).cloned());
    for name in inside.unwrap_or_default().keys() {
        remove(state, &path.join(name))?;
    }
    let (dir, name) = state.live.place(path)?;
    state.change(path, Change::Unlink { dir, name });
    Ok(())
}

pub(crate) fn stat(image: &Image, inode: Inode) -> io::Result<Stat> {
    let node = image.node(inode)?;
    let (len, is_dir) = match &node.body {
        Body::File(bytes) => (bytes.len() as u64, false),
        Body::Dir(_) => (0, true),
    };
    let changed_ns = u128::from(node.modified_ms) * 1_000_000;
    Ok(Stat { inode: inode.0, len, is_dir, modified_ms: node.modified_ms, changed_ns })
}
