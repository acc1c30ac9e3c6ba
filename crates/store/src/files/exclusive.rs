//! Locks of the data directory: files whose lock is held for as long as it is needed.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;

use super::durable::ensure_dir;
use super::fs::Fs;
use super::layout::Layout;
use super::leases::this_process;
use super::lock::{Kept, LockFile, PATIENCE, PAUSE};
use crate::error::{Error, Result};
use crate::port::locks::{Claim, Exclusive, Lock, Locks};

/// How much room a note takes, so that a shorter one leaves nothing of a longer.
const NOTE_LEN: usize = 256;

pub(super) struct FileLocks {
    fs: Arc<dyn Fs>,
    layout: Layout,
}

impl FileLocks {
    pub(super) const fn new(fs: Arc<dyn Fs>, layout: Layout) -> Self {
        Self { fs, layout }
    }

    fn take(&self, what: Exclusive) -> Result<Option<FileLock>> {
        let (fs, path) = (&*self.fs, self.layout.exclusive(what));
        if let Some(folder) = path.parent().filter(|folder| *folder != self.layout.root) {
            ensure_dir(fs, folder)?;
        }
        // Who was here before is here no more.
        Ok(LockFile::open(fs, path)?.try_keep(fs, &note(""))?.map(FileLock))
    }

    fn holder(&self, what: Exclusive) -> Option<String> {
        // The note is for people: without one they are told that there is a holder, and not who.
        let bytes = self.fs.read(&self.layout.exclusive(what)).ok()?;
        let note = String::from_utf8_lossy(&bytes);
        note.lines().next().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty())
    }
}

#[async_trait]
impl Locks for FileLocks {
    async fn try_lock(&self, what: Exclusive) -> Result<Claim> {
        Ok(match self.take(what)? {
            Some(lock) => Claim::Taken(Box::new(lock)),
            None => Claim::Held(self.holder(what)),
        })
    }

    async fn lock(&self, what: Exclusive) -> Result<Box<dyn Lock>> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(lock) = self.take(what)? {
                lock.sign(&this_process(&format!("change {}", what.name())).to_string());
                return Ok(Box::new(lock));
            }
            // The holder may be another task of this thread, which needs its turn.
            tokio::time::sleep(PAUSE).await;
        }
        let holder = self.holder(what);
        Err(Error::LockBusy { what: what.name().to_owned(), holder })
    }
}

struct FileLock(Kept);

impl Lock for FileLock {
    fn sign(&self, who: &str) {
        // Without it others still hear that somebody has the lock.
        let _ = self.0.note(&note(who));
    }
}

fn note(who: &str) -> Vec<u8> {
    let mut note: String = who.chars().filter(|letter| !letter.is_control()).collect();
    note.truncate(note.floor_char_boundary(NOTE_LEN - 1));
    let mut note = note.into_bytes();
    note.resize(NOTE_LEN - 1, b' ');
    note.push(b'\n');
    note
}
