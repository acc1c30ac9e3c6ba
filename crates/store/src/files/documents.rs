//! Documents as files that only their owner can read, written beside and renamed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use super::checkup;
use super::durable::{ensure_dir, failed, read_if_there, replace, sync_parent};
use super::fs::Fs;
use super::layout::Layout;
use super::leases::{encode, owner_at, this_process};
use super::lock::LockFile;
use super::pace::blocking;
use crate::error::{Error, Result};
use crate::port::documents::{Document, Documents, Name, Stamp, Version};
use crate::regular;

/// How long a document may be. What is longer is none that was written here.
const BYTES_MAX: u64 = 256 << 20;
/// Clocks of file systems tick this often at least: what changed longer ago has been seen to.
const TICK: Duration = Duration::from_millis(100);

pub(super) struct FileDocuments {
    fs: Arc<dyn Fs>,
    layout: Layout,
    /// Held by whoever writes, so that the threads of one process wait for each other in line.
    turn: Mutex<()>,
}

impl FileDocuments {
    pub(super) const fn new(fs: Arc<dyn Fs>, layout: Layout) -> Self {
        Self { fs, layout, turn: Mutex::new(()) }
    }

    /// The document, and what to do with it while nobody else changes it: `write` is done when
    /// the version is the one that was seen.
    fn change(
        &self,
        name: &Name,
        seen: Option<&Version>,
        write: impl FnOnce(&dyn Fs, &Path) -> Result<()>,
    ) -> Result<()> {
        let (fs, path) = (&*self.fs, self.layout.document(name));
        let begun = Instant::now();
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        if folder != self.layout.root {
            ensure_dir(fs, &folder)?;
        }
        let place = folder.join(".documents.lock");
        let mut lock = LockFile::open(fs, place.clone())?;
        let Some(held) = lock.acquire_since(fs, begun)? else {
            let holder = owner_at(fs, &place).map(|owner| owner.to_string());
            return Err(Error::LockBusy { what: format!("the document {name}"), holder });
        };
        held.note(&encode(&this_process("change a document")))?;
        let found = read_if_there(fs, &path)?.map(|bytes| Version::of(&bytes));
        if found.as_ref() != seen {
            return Err(Error::DocumentMoved { name: name.to_string() });
        }
        write(fs, &path)
    }
}

#[async_trait]
impl Documents for FileDocuments {
    async fn read(&self, name: &Name) -> Result<Option<Document>> {
        let path = self.layout.document(name);
        if self.fs.stat(&path).is_ok_and(|stat| stat.len > BYTES_MAX) {
            return Err(failed("reading", &path)(ErrorKind::FileTooLarge.into()));
        }
        Ok(read_if_there(&*self.fs, &path)?.map(Document::of))
    }

    async fn replace(
        &self,
        name: &Name,
        seen: Option<&Version>,
        bytes: Vec<u8>,
    ) -> Result<Version> {
        blocking(|| self.change(name, seen, |fs, path| replace(fs, path, &bytes)))?;
        Ok(Version::of(&bytes))
    }

    async fn remove(&self, name: &Name, seen: &Version) -> Result<()> {
        blocking(|| {
            self.change(name, Some(seen), |fs, path| {
                fs.remove_file(path).map_err(failed("removing", path))?;
                sync_parent(fs, path)
            })
        })
    }

    async fn list(&self, folder: &Name) -> Result<Vec<Name>> {
        let path = self.layout.document(folder);
        let files = match self.fs.read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            files => files.map_err(failed("reading", &path))?,
        };
        // What is no name of a document is a lock, or was being written.
        Ok(files.iter().filter_map(|file| Name::parse(&format!("{folder}/{file}"))).collect())
    }

    async fn stamp(&self, name: &Name) -> Result<Option<Stamp>> {
        let path = self.layout.document(name);
        let stat = match self.fs.stat(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            stat => stat.map_err(failed("reading", &path))?,
        };
        let settled_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let settled_ns = settled_ns.saturating_sub(TICK).as_nanos();
        if stat.changed_ns < settled_ns {
            return Ok(Some(Stamp(format!("{}:{}:{}", stat.inode, stat.changed_ns, stat.len))));
        }
        // It may change again before the clock ticks, so that only the content tells.
        let bytes = read_if_there(&*self.fs, &path)?;
        let mode = checkup::mode_of(&path);
        Ok(bytes.map(|bytes| Stamp(format!("{:?}:{mode:?}", Version::of(&bytes)))))
    }

    async fn exposed(&self, name: &Name) -> Result<Option<String>> {
        Ok(regular::exposed(&self.layout.document(name)))
    }

    fn place(&self, name: &Name) -> String {
        self.layout.document(name).display().to_string()
    }
}
