//! Sessions as files below one data directory.
//!
//! In reading order: [`fs`] (the operations), `layout` (the names), `head`, `lock` and `epoch`
//! (the witnesses), `load` and `walk` (the decision table), `session` (reading), `writer`
//! (commit and recovery), `seal`, `changes` (what moved),
//! then the ports: `log`, `sessions`, `blobs`, `leases`, `mailbox`, `keys`, `documents`, `audit`,
//! `exclusive`, and the lists that follow from sessions: `index`, `runs`, `search`.

mod audit;
mod blobs;
mod changes;
mod checkup;
mod documents;
mod durable;
mod epoch;
mod exclusive;
pub mod fs;
mod head;
mod index;
mod keys;
mod layout;
mod leases;
mod load;
mod lock;
mod log;
mod mailbox;
mod pace;
mod runs;
mod seal;
mod search;
mod session;
mod sessions;
mod walk;
mod watch;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

pub use checkup::{Checkup, Exposed, doctor, document_mode, exposed};
use durable::ensure_dir;
use fs::{Disk, Fs};
use layout::Layout;

use crate::error::Result;
use crate::open::Store;
use crate::papers::NoPapers;
use crate::port::Papers;

/// Where the files are, and how they are kept.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data directory.
    pub root: PathBuf,
    /// How long a journal gets before it is sealed.
    pub journal_max: u64,
    /// How long a sealed segment gets.
    pub segment_max: u64,
    /// New runs are refused when less than this is free; the rest is for runs under way.
    pub free_min: Free,
    /// Makes the witness durable with each commit too: a second sync for each.
    pub strict: bool,
    /// Works on a file system that may not keep what it is asked to.
    pub unsafe_filesystem: bool,
}

/// How much of a disk stays free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Free {
    /// At least this many bytes.
    pub bytes: u64,
    /// And at least this much of the whole.
    pub percent: u64,
    /// But no more than this for being a part of the whole: what the runs under way still need
    /// does not grow with the disk.
    pub percent_max: u64,
}

impl Free {
    /// How many bytes of a disk of this size stay free.
    #[must_use]
    pub fn of(self, total: u64) -> u64 {
        (total / 100 * self.percent).min(self.percent_max).max(self.bytes)
    }
}

impl Config {
    /// The default below this directory.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            journal_max: 16 << 20,
            segment_max: 1 << 20,
            free_min: Free { bytes: 256 << 20, percent: 2, percent_max: 1 << 30 },
            strict: false,
            unsafe_filesystem: false,
        }
    }
}

/// Opens the files of a data directory, making it when it is not there.
pub(crate) fn open(config: &Config) -> Result<Store> {
    checkup::prepare_root(&config.root)?;
    if !config.unsafe_filesystem {
        checkup::require_sound_filesystem(&config.root)?;
    }
    let index = Arc::new(index::Sqlite::new(config.root.join("index.sqlite")));
    let changes = changes::Changes::new(Layout { root: config.root.clone() }.changes());
    let (store, log) = open_log(Arc::new(Disk), config, Some(changes))?;
    let leases = Arc::new(leases::FileLeases::hearing(log));
    let root = Layout { root: config.root.clone() }.papers();
    let papers = Config { root, ..config.clone() };
    let papers = Arc::new(FilePapers { config: papers, opened: OnceLock::new() });
    Ok(Store { runs: Arc::clone(&index) as _, search: index, leases, papers, ..store })
}

/// The papers of a data directory, in a directory of their own, once they are opened.
struct FilePapers {
    config: Config,
    opened: OnceLock<Store>,
}

impl Papers for FilePapers {
    fn find(&self) -> Result<Option<Store>> {
        let is_there = self.opened.get().is_some() || self.config.root.is_dir();
        is_there.then(|| self.open()).transpose()
    }

    fn open(&self) -> Result<Store> {
        if let Some(store) = self.opened.get() {
            return Ok(store.clone());
        }
        let store = Store { papers: Arc::new(NoPapers), ..open(&self.config)? };
        Ok(self.opened.get_or_init(|| store).clone())
    }
}

/// Opens the files of a data directory on any file system. The directory has to be there.
///
/// What is derived stays in memory: it needs a file system that SQLite knows. Nobody keeps the
/// order of changes there, and whoever looks at what moved looks at everything.
pub fn open_on(fs: Arc<dyn Fs>, config: &Config) -> Result<Store> {
    open_log(fs, config, None).map(|(store, _)| store)
}

fn open_log(
    fs: Arc<dyn Fs>,
    config: &Config,
    changes: Option<changes::Changes>,
) -> Result<(Store, Arc<log::FileLog>)> {
    let layout = Layout { root: config.root.clone() };
    ensure_dir(&*fs, &layout.sessions())?;
    let blobs = Arc::new(blobs::FileBlobs::open(fs.clone(), layout.clone())?);
    let log = log::FileLog::new(fs.clone(), config.clone(), layout.clone(), blobs.clone(), changes);
    let log = Arc::new(log);
    let store = Store {
        sessions: Arc::new(sessions::FileSessions::new(log.clone(), blobs.clone())),
        leases: Arc::new(leases::FileLeases::new(log.clone())),
        mailbox: Arc::new(mailbox::Sockets::new(layout.sockets(), log.clone())),
        documents: Arc::new(documents::FileDocuments::new(fs.clone(), layout.clone())),
        audit: Arc::new(audit::FileAudit::new(fs.clone(), layout.clone())),
        locks: Arc::new(exclusive::FileLocks::new(fs.clone(), layout.clone())),
        keys: Arc::new(keys::FileKeys::new(fs, layout)),
        runs: crate::memory::runs(),
        search: crate::memory::search(),
        papers: Arc::new(NoPapers),
        blobs,
        log: Arc::clone(&log) as _,
    };
    Ok((store, log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_disk_keeps_its_least_and_a_large_one_no_more_than_its_most() {
        let free = Config::new("/").free_min;
        let kept =
            [10 << 20, 10 << 30, 40 << 30, 252 << 30, 10 << 40].map(|total| free.of(total) >> 20);
        assert_eq!(kept, [256, 256, 819, 1024, 1024]);
    }
}
