//! Blobs as files under their digests.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::digest::Digest;
use cairn_core::pin::BlobKind;

use super::durable::{
    ensure_dir, failed, read_if_there, remove_if_there, sync_parent, write_whole,
};
use super::fs::{File, Fs, Open};
use super::layout::Layout;
use crate::error::{Error, Result};
use crate::plan::Blob;
use crate::port::{Blobs, Sweep};

pub(super) struct FileBlobs {
    fs: Arc<dyn Fs>,
    layout: Layout,
    durable: Mutex<Durable>,
}

/// What this process has made durable, so that it need not do so again.
#[derive(Default)]
struct Durable {
    /// Why this process may not keep blobs any more: a sync failed, and could lie next time.
    poison: Option<Error>,
    shelves: HashSet<PathBuf>,
    blobs: HashSet<(BlobKind, Digest)>,
}

/// Blobs to remember: those of the runs under way are asked for again soon, or never.
const REMEMBERED: usize = 4096;

/// A share of the collection's lock, or all of it: while it is held nobody else removes a blob.
pub(super) struct Pinning(Box<dyn File>);

impl Drop for Pinning {
    fn drop(&mut self) {
        // A share that cannot be given back goes with the process at the latest.
        let _ = self.0.unlock();
    }
}

impl FileBlobs {
    pub(super) fn open(fs: Arc<dyn Fs>, layout: Layout) -> Result<Self> {
        ensure_dir(&*fs, &layout.root.join("workflows"))?;
        for kind in BlobKind::ALL {
            ensure_dir(&*fs, &layout.blobs(kind))?;
        }
        Ok(Self { fs, layout, durable: Mutex::default() })
    }

    /// Keeps collections away until the share is dropped.
    pub(super) fn pinning(&self) -> Result<Pinning> {
        self.gc_lock(|file| file.try_lock_shared(), "waiting for a collection of blobs to end")
    }

    /// Takes the collection's lock, or a share of it, and waits for those who have it.
    fn gc_lock(
        &self,
        try_lock: impl Fn(&dyn File) -> io::Result<bool>,
        waiting: &str,
    ) -> Result<Pinning> {
        let path = self.layout.gc_lock();
        let file = self.fs.open(&path, Open::Create).map_err(failed("opening", &path))?;
        for _ in 0..GC_PATIENCE {
            if try_lock(&*file).map_err(failed("locking", &path))? {
                return Ok(Pinning(file));
            }
            std::thread::sleep(GC_PAUSE);
        }
        let source = Arc::new(io::Error::from(io::ErrorKind::WouldBlock));
        Err(Error::Io { context: waiting.into(), source })
    }

    fn durable(&self) -> MutexGuard<'_, Durable> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a blob durably.
    ///
    /// One that is there may be a dead process's, never synced, or damaged: unless this
    /// process has made it durable itself, it is written again.
    pub(super) fn keep(&self, blob: &Blob) -> Result<Digest> {
        if let Some(poison) = &self.durable().poison {
            return Err(poison.clone());
        }
        let kept = self.try_keep(blob);
        if let Err(error @ Error::DurabilityLost { .. }) = &kept {
            self.durable().poison = Some(error.clone());
        }
        kept
    }

    fn try_keep(&self, blob: &Blob) -> Result<Digest> {
        let digest = blob.digest();
        let known = self.durable().blobs.contains(&(blob.kind, digest));
        if known && self.is_there(blob.kind, digest)? {
            return Ok(digest);
        }
        let path = self.layout.blob(blob.kind, digest);
        if let Some(shelf) = path.parent() {
            self.ensure_shelf(shelf)?;
        }
        self.place(&path, &blob.bytes)?;
        let mut durable = self.durable();
        if durable.blobs.len() >= REMEMBERED {
            durable.blobs.clear();
        }
        durable.blobs.insert((blob.kind, digest));
        Ok(digest)
    }

    fn ensure_shelf(&self, shelf: &Path) -> Result<()> {
        if self.durable().shelves.contains(shelf) {
            return Ok(());
        }
        ensure_dir(&*self.fs, shelf)?;
        self.durable().shelves.insert(shelf.to_owned());
        Ok(())
    }

    /// Several callers may keep one blob at a time, so each has a temporary name of its own.
    fn place(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let temporary = path.with_file_name(format!("{name}.{}.tmp", unique()));
        write_whole(&*self.fs, &temporary, bytes)?;
        self.fs.rename(&temporary, path).map_err(failed("renaming to", path))?;
        sync_parent(&*self.fs, path)
    }

    fn is_there(&self, kind: BlobKind, digest: Digest) -> Result<bool> {
        let path = self.layout.blob(kind, digest);
        match self.fs.stat(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("reading", &path)(error)),
        }
    }

    /// Fails unless the blob is in the store.
    pub(super) fn require(&self, kind: BlobKind, digest: Digest) -> Result<()> {
        if self.is_there(kind, digest)? {
            Ok(())
        } else {
            Err(Error::BlobMissing { kind: kind.name(), digest })
        }
    }

    fn read(&self, kind: BlobKind, digest: Digest) -> Result<Vec<u8>> {
        let path = self.layout.blob(kind, digest);
        let Some(bytes) = read_if_there(&*self.fs, &path)? else {
            return Err(Error::BlobMissing { kind: kind.name(), digest });
        };
        let found = Digest::of(&bytes);
        if found == digest {
            Ok(bytes)
        } else {
            Err(Error::BlobCorrupt { kind: kind.name(), digest, found })
        }
    }
}

/// How often to look whether a collection has ended, which takes seconds and not minutes, or
/// whether there is a moment without an append. Busy appends leave only short ones, so it is
/// looked for often.
const GC_PATIENCE: usize = 50_000;
const GC_PAUSE: Duration = Duration::from_micros(200);

/// A number that no other caller of this machine has at the same time.
fn unique() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn put(&self, blob: Blob) -> Result<Digest> {
        let _pinning = self.pinning()?;
        self.keep(&blob)
    }

    async fn get(&self, kind: BlobKind, digest: Digest) -> Result<Vec<u8>> {
        self.read(kind, digest)
    }

    async fn sweep(&self) -> Result<Box<dyn Sweep>> {
        let alone = self.gc_lock(|file| file.try_lock(), "waiting for appends to end")?;
        self.durable().blobs.clear();
        let (fs, layout) = (self.fs.clone(), self.layout.clone());
        let sweep = FileSweep { fs, layout, _alone: alone };
        sweep.remove_leftovers()?;
        Ok(Box::new(sweep))
    }
}

struct FileSweep {
    fs: Arc<dyn Fs>,
    layout: Layout,
    _alone: Pinning,
}

impl FileSweep {
    /// Removes what processes that died left half done: nobody is at work on any of it now.
    fn remove_leftovers(&self) -> Result<()> {
        let (sessions, trash) = (self.layout.sessions(), self.layout.trash());
        let names = self.fs.read_dir(&sessions).map_err(failed("reading", &sessions))?;
        for name in names.iter().filter(|name| name.ends_with(super::layout::IMPORT)) {
            let path = sessions.join(name);
            self.fs.remove_dir_all(&path).map_err(failed("removing", &path))?;
        }
        let left = match self.fs.read_dir(&trash) {
            // Nothing was ever thrown away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            left => left.map_err(failed("reading", &trash))?,
        };
        for name in left {
            let path = trash.join(name);
            self.fs.remove_dir_all(&path).map_err(failed("removing", &path))?;
        }
        for kind in BlobKind::ALL {
            for (path, name) in self.files(kind)? {
                if name.ends_with(".tmp") {
                    remove_if_there(&*self.fs, &path)?;
                }
            }
        }
        Ok(())
    }

    /// Every file on the shelves of one kind.
    fn files(&self, kind: BlobKind) -> Result<Vec<(PathBuf, String)>> {
        let root = self.layout.blobs(kind);
        let mut files = Vec::new();
        for shelf in self.fs.read_dir(&root).map_err(failed("reading", &root))? {
            let path = root.join(&shelf);
            if self.fs.stat(&path).is_ok_and(|stat| stat.is_dir) {
                let names = self.fs.read_dir(&path).map_err(failed("reading", &path))?;
                files.extend(names.into_iter().map(|name| (path.join(&name), name)));
            }
        }
        Ok(files)
    }
}

#[async_trait]
impl Sweep for FileSweep {
    async fn list(&self, kind: BlobKind) -> Result<Vec<(Digest, u64)>> {
        let mut blobs = Vec::new();
        for (path, name) in self.files(kind)? {
            if let (Ok(digest), Ok(stat)) = (Digest::from_hex(&name), self.fs.stat(&path)) {
                blobs.push((digest, stat.modified_ms));
            }
        }
        blobs.sort_unstable();
        Ok(blobs)
    }

    async fn remove(&self, kind: BlobKind, digest: Digest) -> Result<()> {
        let path = self.layout.blob(kind, digest);
        self.fs.remove_file(&path).map_err(failed("removing", &path))
    }
}
