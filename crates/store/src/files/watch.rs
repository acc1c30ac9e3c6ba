//! Hearing of other owners: the kernel tells when the epoch of an owned session changes.
//!
//! Whoever cannot hear learns of it when one of its changes is refused.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
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
    inotify: AsyncFd<OwnedFd>,
    /// The sessions that are looked at: by which number, and for how many leases.
    watched: Mutex<BTreeMap<SessionId, (i32, usize)>>,
}

impl Heard {
    fn watched(&self) -> MutexGuard<'_, BTreeMap<SessionId, (i32, usize)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions whose epoch may have changed since this was last asked.
    async fn changed(&self) -> io::Result<Vec<SessionId>> {
        let mut ready = self.inotify.readable().await?;
        let mut buffer = [const { MaybeUninit::uninit() }; BUFFER];
        let mut reader = inotify::Reader::new(self.inotify.get_ref(), &mut buffer);
        let mut changed = Vec::new();
        loop {
            match reader.next() {
                Ok(event)
                    if event
                        .file_name()
                        .is_some_and(|name| name.to_bytes() == EPOCH.as_bytes()) =>
                {
                    changed.push(event.wd());
                }
                Ok(_) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        ready.clear_ready();
        let watched = self.watched();
        let of = |(session, (wd, _)): (&SessionId, &(i32, usize))| {
            changed.contains(wd).then_some(*session)
        };
        Ok(watched.iter().filter_map(of).collect())
    }
}

impl Watcher {
    /// Begins to listen; fails where the system lets nobody.
    pub(super) fn new(log: &Arc<FileLog>) -> io::Result<Self> {
        Handle::try_current().map_err(io::Error::other)?;
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        #[expect(deprecated, reason = "the other way is unsafe, and an owned one stays what it is")]
        let inotify = AsyncFd::new(inotify)?;
        let heard = Arc::new(Heard { inotify, watched: Mutex::default() });
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
        let wd = inotify::add_watch(self.heard.inotify.get_ref(), &path, WatchFlags::MOVED_TO)?;
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
            // Its directory may be gone, and the number with it.
            let _ = inotify::remove_watch(self.heard.inotify.get_ref(), *wd);
            watched.remove(&self.session);
        }
    }
}
