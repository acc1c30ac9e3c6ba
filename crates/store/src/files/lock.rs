//! Locks of the operating system: free when their holder is gone, never stolen.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::durable::failed;
use super::fs::{File, Fs, Open};
use crate::error::Result;

const TRIES: u32 = 20;
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// How long somebody waits for a lock that is held for one write: a holder that takes longer has
/// stopped, and whoever waits says so before it seems to have stopped itself.
pub(super) const PATIENCE: Duration = Duration::from_millis(1_200);

/// A lock file, held open.
pub(super) struct LockFile {
    file: Box<dyn File>,
    inode: u64,
    path: PathBuf,
    /// What this holder signs with; nobody else does.
    mark: Vec<u8>,
}

/// Proof that a lock is held. It is given back, not only closed, when this goes.
pub(super) struct Held<'a>(&'a LockFile);

impl Held<'_> {
    /// Notes in the file who took the lock last to change something: for the error that
    /// others get, and for [`Held::took_last`]. Never a reason to steal it. Without the note
    /// nothing may be changed: the last holder would believe that nothing was.
    pub(super) fn sign(&self) -> Result<()> {
        self.0.note(&self.0.mark)
    }

    /// Notes in the file who holds the lock, for those who do not get it.
    pub(super) fn note(&self, who: &[u8]) -> Result<()> {
        self.0.note(who)
    }

    /// Whether nobody else has signed since this holder did.
    pub(super) fn took_last(&self) -> bool {
        let mut note = [0; NOTE_LEN];
        self.0.file.read_at(&mut note, 0).is_ok() && note == *self.0.mark
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

/// A lock that is held as long as its file: taken once, by one that keeps it.
pub(super) struct Kept(LockFile);

impl Kept {
    /// Notes in the file who holds the lock.
    pub(super) fn note(&self, who: &[u8]) -> Result<()> {
        self.0.note(who)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl LockFile {
    pub(super) fn open(fs: &dyn Fs, path: PathBuf) -> Result<Self> {
        let file = fs.open(&path, Open::Create).map_err(failed("opening", &path))?;
        let inode = file.stat().map_err(failed("reading", &path))?.inode;
        Ok(Self { file, inode, path, mark: mark()? })
    }

    /// Takes the lock, waiting a moment for a holder that is about to be done.
    pub(super) fn acquire(&mut self, fs: &dyn Fs) -> Result<Option<Held<'_>>> {
        self.acquire_within(fs, TRIES)
    }

    /// The same, with so many tries.
    pub(super) fn acquire_within(&mut self, fs: &dyn Fs, tries: u32) -> Result<Option<Held<'_>>> {
        for attempt in 0..tries {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            if self.try_take(fs)? {
                return Ok(Some(Held(self)));
            }
        }
        Ok(None)
    }

    /// The same, for as long as is left of [`PATIENCE`] since somebody began to wait, in line
    /// with others of this process or for the lock itself.
    pub(super) fn acquire_since(
        &mut self,
        fs: &dyn Fs,
        begun: Instant,
    ) -> Result<Option<Held<'_>>> {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        let tries = left.as_millis() / PAUSE.as_millis();
        self.acquire_within(fs, u32::try_from(tries).unwrap_or(u32::MAX).max(1))
    }

    /// Takes the lock if it is free now.
    pub(super) fn try_acquire(&mut self, fs: &dyn Fs) -> Result<Option<Held<'_>>> {
        Ok(self.try_take(fs)?.then(|| Held(self)))
    }

    /// Takes the lock if it is free now, notes who has it and keeps it.
    pub(super) fn try_keep(mut self, fs: &dyn Fs, who: &[u8]) -> Result<Option<Kept>> {
        if !self.try_take(fs)? {
            return Ok(None);
        }
        let kept = Kept(self);
        kept.0.note(who)?;
        Ok(Some(kept))
    }

    fn note(&self, who: &[u8]) -> Result<()> {
        self.file.write_all_at(who, 0).map_err(failed("writing", &self.path))
    }

    fn give_back(&self) {
        // A lock that cannot be given back goes with the process at the latest.
        let _ = self.file.unlock();
    }

    /// A lock on a file that somebody unlinked locks nothing, so the name must still lead to it.
    fn try_take(&mut self, fs: &dyn Fs) -> Result<bool> {
        if !self.file.try_lock().map_err(failed("locking", &self.path))? {
            return Ok(false);
        }
        if self.is_current(fs) {
            return Ok(true);
        }
        self.file.unlock().map_err(failed("unlocking", &self.path))?;
        *self = Self::open(fs, self.path.clone())?;
        if !self.file.try_lock().map_err(failed("locking", &self.path))? {
            return Ok(false);
        }
        Ok(self.is_current(fs))
    }

    fn is_current(&self, fs: &dyn Fs) -> bool {
        fs.stat(&self.path).is_ok_and(|named| named.inode == self.inode)
    }
}

/// How much room a note of the holder takes.
const NOTE_LEN: usize = 64;

/// Who says to hold the lock at this path.
pub(super) fn holder(fs: &dyn Fs, path: &Path) -> Option<String> {
    let bytes = fs.read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.split_whitespace();
    let process = words.next().filter(|word| *word == "process")?;
    let id: u32 = words.next()?.parse().ok()?;
    Some(format!("{process} {id}"))
}

/// A note that only one holder ever signs with. Processes of two containers may have one
/// number, so that alone will not do.
fn mark() -> Result<Vec<u8>> {
    let mut mark = format!("process {} {:016x}", std::process::id(), crate::random()?).into_bytes();
    mark.resize(NOTE_LEN, b' ');
    Ok(mark)
}
