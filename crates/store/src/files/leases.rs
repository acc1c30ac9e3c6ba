//! Ownership of sessions: a lock file that its owner holds for life, and an epoch that proves it.

use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use cairn_core::id::SessionId;

use super::fs::Fs;
use super::lock::{Kept, LockFile};
use super::log::FileLog;
use super::pace::blocking;
use super::watch::{Watched, Watcher};
use crate::error::{Error, Result};
use crate::fence::{Epoch, Loss, Owner};
use crate::port::{Lease, Leases};

pub(super) struct FileLeases {
    log: Arc<FileLog>,
    /// Made with the first lease; none where nobody can listen.
    watcher: OnceLock<Option<Watcher>>,
}

impl FileLeases {
    /// Leases whose owners learn that they were replaced when a change of theirs is refused.
    pub(super) fn new(log: Arc<FileLog>) -> Self {
        Self { log, watcher: OnceLock::from(None) }
    }

    /// Leases whose owners hear of it from the kernel, too.
    pub(super) const fn hearing(log: Arc<FileLog>) -> Self {
        Self { log, watcher: OnceLock::new() }
    }

    /// Hears of whoever replaces the owner of a session, if that can be heard of.
    fn watch(&self, session: SessionId) -> Option<Watched> {
        let watcher = self.watcher.get_or_init(|| Watcher::new(&self.log).ok());
        watcher.as_ref()?.watch(&self.log, session).ok()
    }

    fn take(&self, session: SessionId, purpose: &str) -> Result<FileLease> {
        let (fs, dir) = (&*self.log.fs, self.log.dir(session));
        let path = dir.owner();
        let note = encode(&this_process(purpose));
        let taken = LockFile::open(fs, path.clone()).and_then(|file| file.try_keep(fs, &note));
        let owner = match taken {
            // Without its directory there is no session, whether it never was or goes meanwhile.
            Err(_) if fs.stat(&dir.path).is_err() => return Err(Error::NotFound(session)),
            Err(error) => return Err(error),
            Ok(None) => {
                let owner = owner_at(fs, &path).map(Box::new);
                return Err(Error::Owned { session, owner });
            }
            Ok(Some(owner)) => owner,
        };
        // Whoever fails from here on gives the lock back.
        let epoch = self.log.raise_epoch(session)?;
        // Others of this process that had it before need no kernel to hear of it.
        self.log.book.tell_older(session, epoch);
        let loss = self.log.book.enlist(session, epoch);
        let log = Arc::clone(&self.log);
        Ok(FileLease { log, loss, _owner: owner, _watched: self.watch(session) })
    }
}

struct FileLease {
    log: Arc<FileLog>,
    loss: Arc<Loss>,
    _owner: Kept,
    _watched: Option<Watched>,
}

#[async_trait]
impl Lease for FileLease {
    fn session(&self) -> SessionId {
        self.loss.session
    }

    fn epoch(&self) -> Epoch {
        self.loss.epoch
    }

    async fn verify(&self) -> Result<()> {
        blocking(|| self.log.verify_epoch(self.loss.session, self.loss.epoch))
    }

    fn is_lost(&self) -> bool {
        self.loss.is_told()
    }

    async fn lost(&self) {
        self.loss.told().await;
    }
}

#[async_trait]
impl Leases for FileLeases {
    async fn acquire(&self, session: SessionId, purpose: &str) -> Result<Box<dyn Lease>> {
        blocking(|| self.take(session, purpose)).map(|lease| Box::new(lease) as Box<dyn Lease>)
    }
}

/// Who says to own a session, by the note in its lock file.
pub(super) fn owner_at(fs: &dyn Fs, path: &std::path::Path) -> Option<Owner> {
    // The note is for people: without one they are told that there is an owner, and not who.
    decode(&fs.read(path).ok()?)
}

/// What this process says of itself.
pub(super) fn this_process(purpose: &str) -> Owner {
    // A clock before 1970 is as good as none; the time is for people.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Owner {
        pid: std::process::id(),
        started: started(),
        since_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        purpose: purpose.to_owned(),
    }
}

/// When this process began, as the kernel counts; unknown where there is no `/proc`.
fn started() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program comes second and may hold anything; what follows it may not.
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(19)?.parse().ok()
}

/// How much room a note takes, so that a shorter one leaves nothing of a longer.
const NOTE_LEN: usize = 256;

pub(super) fn encode(owner: &Owner) -> Vec<u8> {
    let Owner { pid, started, since_ms, purpose } = owner;
    let started = started.map_or_else(|| "unknown".to_owned(), |ticks| ticks.to_string());
    let mut note = format!("process {pid} started {started} since {since_ms} to {purpose}");
    note.retain(|letter| !letter.is_control());
    let end = note.floor_char_boundary(NOTE_LEN - 1);
    note.truncate(end);
    let mut note = note.into_bytes();
    note.resize(NOTE_LEN - 1, b' ');
    note.push(b'\n');
    note
}

fn decode(bytes: &[u8]) -> Option<Owner> {
    let text = std::str::from_utf8(bytes).ok()?.trim_end();
    let (pid, rest) = text.strip_prefix("process ")?.split_once(" started ")?;
    let (started, rest) = rest.split_once(" since ")?;
    let (since_ms, purpose) = rest.split_once(" to").map(|(ms, to)| (ms, to.trim_start()))?;
    Some(Owner {
        pid: pid.parse().ok()?,
        started: started.parse().ok(),
        since_ms: since_ms.parse().ok()?,
        purpose: purpose.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_and_a_long_one_is_cut() {
        let owner = this_process("perform runs");
        assert!(owner.started.is_some(), "Linux says when a process began");
        assert_eq!(decode(&encode(&owner)), Some(owner.clone()));
        let unknown = Owner { started: None, purpose: String::new(), ..owner.clone() };
        assert_eq!(decode(&encode(&unknown)), Some(unknown));
        let long = Owner { purpose: "ü\n".repeat(300), ..owner };
        let note = encode(&long);
        assert_eq!(note.len(), NOTE_LEN);
        let read = decode(&note).unwrap();
        assert_eq!((read.pid, read.started), (long.pid, long.started));
        assert!(read.purpose.starts_with("üü"), "{read:?}");
    }

    #[test]
    fn what_is_no_note_names_nobody() {
        for bytes in
            [&b""[..], b"process", b"process x started 1 since 2 to y", b"\xff\xff", &[0; 256]]
        {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
    }
}
