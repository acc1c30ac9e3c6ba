//! Blobs as files under their digests.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cairn_core::digest::Digest;
use cairn_core::pin::BlobKind;

use super::durable::{ensure_dir, failed, read_if_there, replace, sync_parent, write_whole};
use super::fs::{File, Fs, Open};
use super::layout::Layout;
use crate::error::{Error, Result};
use crate::plan::Blob;
use crate::port::{Blobs, Sweep};

pub(super) struct FileBlobs {
    fs: Arc<dyn Fs>,
    layout: Layout,
    /// Blobs that this process has made durable. They cannot go while they are pinned or being pinned.
    durable: Mutex<HashSet<(BlobKind, Digest)>>,
}

/// A share of the collection's lock: while it is held no blob goes away.
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
        let file = self.gc_lock()?;
        let path = self.layout.gc_lock();
        for _ in 0..GC_PATIENCE {
            if file.try_lock_shared().map_err(failed("locking", &path))? {
                return Ok(Pinning(file));
            }
            std::thread::sleep(super::lock::PAUSE);
        }
        let source = Arc::new(io::Error::from(io::ErrorKind::WouldBlock));
        Err(Error::Io { context: "waiting for a collection of blobs to end".into(), source })
    }

    fn gc_lock(&self) -> Result<Box<dyn File>> {
        let path = self.layout.gc_lock();
        self.fs.open(&path, Open::Create).map_err(failed("opening", &path))
    }

    /// Keeps a blob durably.
    pub(super) fn keep(&self, blob: &Blob) -> Result<Digest> {
        let digest = blob.digest();
        if self.is_known(blob.kind, digest) && self.is_there(blob.kind, digest)? {
            return Ok(digest);
        }
        let path = self.layout.blob(blob.kind, digest);
        if let Some(shelf) = path.parent() {
            ensure_dir(&*self.fs, shelf)?;
        }
        match read_if_there(&*self.fs, &path)? {
            // Another process may have made it and not synced it; a sync could lie about an
            // earlier failure, so bytes that are there are written again, once per process.
            Some(_) => replace(&*self.fs, &path, &blob.bytes)?,
            None => self.place(&path, &blob.bytes)?,
        }
        self.durable.lock().unwrap_or_else(PoisonError::into_inner).insert((blob.kind, digest));
        Ok(digest)
    }

    /// Several processes may keep one blob at a time, so the temporary name is the process's own.
    fn place(&self, path: &std::path::Path, bytes: &[u8]) -> Result<()> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let temporary = path.with_file_name(format!("{name}.{}.tmp", unique()));
        write_whole(&*self.fs, &temporary, bytes)?;
        self.fs.rename(&temporary, path).map_err(failed("renaming to", path))?;
        sync_parent(&*self.fs, path)
    }

    fn is_known(&self, kind: BlobKind, digest: Digest) -> bool {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner).contains(&(kind, digest))
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

/// How often to look whether a collection has ended: it takes seconds, not minutes.
const GC_PATIENCE: usize = 1000;

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
        let file = self.gc_lock()?;
        let path = self.layout.gc_lock();
        for _ in 0..GC_PATIENCE {
            if file.try_lock().map_err(failed("locking", &path))? {
                let alone = Pinning(file);
                let (fs, layout) = (self.fs.clone(), self.layout.clone());
                self.durable.lock().unwrap_or_else(PoisonError::into_inner).clear();
                return Ok(Box::new(FileSweep { fs, layout, _alone: alone }));
            }
            std::thread::sleep(super::lock::PAUSE);
        }
        let source = Arc::new(io::Error::from(io::ErrorKind::WouldBlock));
        Err(Error::Io { context: "waiting for appends to end".into(), source })
    }
}

struct FileSweep {
    fs: Arc<dyn Fs>,
    layout: Layout,
    _alone: Pinning,
}

#[async_trait]
impl Sweep for FileSweep {
    async fn list(&self, kind: BlobKind) -> Result<Vec<(Digest, u64)>> {
        let root = self.layout.blobs(kind);
        let mut blobs = Vec::new();
        for shelf in self.fs.read_dir(&root).map_err(failed("reading", &root))? {
            let path = root.join(&shelf);
            if !self.fs.stat(&path).is_ok_and(|stat| stat.is_dir) {
                continue;
            }
            for name in self.fs.read_dir(&path).map_err(failed("reading", &path))? {
                let Ok(stat) = self.fs.stat(&path.join(&name)) else { continue };
                blobs.extend(Digest::from_hex(&name).map(|digest| (digest, stat.modified_ms)));
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
