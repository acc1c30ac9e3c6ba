//! Hearing of other processes: the kernel tells when a file is moved into a folder, such as the
//! epoch of an owned session.
//!
//! Whoever cannot hear learns of it when one of its changes is refused.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_core::id::SessionId;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::epoch;
use super::layout::EPOCH;
use super::log::FileLog;

/// Room for some events at a time.
const BUFFER: usize = 4 << 10;

/// Looks at the sessions that this process owns.
pub(super) struct Watcher {
    heard: Arc<Heard>,
    task: JoinHandle<()>,
}

/// What the task and the leases share.
struct Heard {
    ear: Ear,
    /// The sessions that are looked at: by which number, and for how many leases.
    watched: Mutex<BTreeMap<SessionId, (i32, usize)>>,
}

impl Heard {
    fn watched(&self) -> MutexGuard<'_, BTreeMap<SessionId, (i32, usize)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions whose epoch may have changed since this was last asked.
    async fn changed(&self) -> io::Result<Vec<SessionId>> {
        let moved = self.ear.moved().await?;
        let watched = self.watched();
        let of = |(session, (wd, _)): (&SessionId, &(i32, usize))| {
            let changed = moved.iter().any(|moved| moved.folder == *wd && moved.name == EPOCH);
            changed.then_some(*session)
        };
        Ok(watched.iter().filter_map(of).collect())
    }
}

/// Hears which files are moved into folders.
pub(super) struct Ear(AsyncFd<OwnedFd>);

/// A file that was moved into a folder.
pub(super) struct Moved {
    /// The number of the folder.
    pub(super) folder: i32,
    /// What the file is called.
    pub(super) name: String,
}

impl Ear {
    /// Begins to listen; fails where the system lets nobody.
    pub(super) fn new() -> io::Result<Self> {
        Handle::try_current().map_err(io::Error::other)?;
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        #[expect(deprecated, reason = "the other way is unsafe, and an owned one stays what it is")]
        AsyncFd::new(inotify).map(Self)
    }

    /// Looks at a folder from now on; gives its number.
    pub(super) fn listen(&self, folder: &Path) -> io::Result<i32> {
        Ok(inotify::add_watch(self.0.get_ref(), folder, WatchFlags::MOVED_TO)?)
    }

    /// Looks at a folder no more. It may be gone, and the number with it.
    fn leave(&self, folder: i32) {
        let _ = inotify::remove_watch(self.0.get_ref(), folder);
    }

    /// What was moved since this was last asked; waits until something was.
    pub(super) async fn moved(&self) -> io::Result<Vec<Moved>> {
        let mut ready = self.0.readable().await?;
        let mut buffer = [const { MaybeUninit::uninit() }; BUFFER];
        let mut reader = inotify::Reader::new(self.0.get_ref(), &mut buffer);
        let mut moved = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().and_then(|name| name.to_str().ok());
                    let name = name.map(str::to_owned);
                    moved.extend(name.map(|name| Moved { folder: event.wd(), name }));
                }
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        ready.clear_ready();
        Ok(moved)
    }
}

impl Watcher {
    /// Begins to listen; fails where the system lets nobody.
    pub(super) fn new(log: &Arc<FileLog>) -> io::Result<Self> {
        let heard = Arc::new(Heard { ear: Ear::new()?, watched: Mutex::default() });
        let (told, log) = (Arc::clone(&heard), Arc::downgrade(log));
        let task = tokio::spawn(async move {
            while let Ok(changed) = told.changed().await {
                let Some(log) = log.upgrade() else { return };
                for session in changed {
                    // What cannot be read now is noticed at the next change.
                    let seen = epoch::ownership(&*log.fs, &log.dir(session), session, 0);
                    seen.iter().for_each(|seen| log.book.tell_older(session, seen.epoch));
                }
            }
        });
        Ok(Self { heard, task })
    }

    /// Looks at a session from now on, until the guard is dropped.
    pub(super) fn watch(&self, log: &FileLog, session: SessionId) -> io::Result<Watched> {
        let path = log.dir(session).path;
        let mut watched = self.heard.watched();
        let wd = self.heard.ear.listen(&path)?;
        let (known, leases) = watched.entry(session).or_insert((wd, 0));
        *known = wd;
        *leases += 1;
        Ok(Watched { heard: Arc::clone(&self.heard), session })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A session that is looked at.
pub(super) struct Watched {
    heard: Arc<Heard>,
    session: SessionId,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watched = self.heard.watched();
        let Some((wd, leases)) = watched.get_mut(&self.session) else { return };
        *leases -= 1;
        if *leases == 0 {
            self.heard.ear.leave(*wd);
            watched.remove(&self.session);
        }
    }
}
