//! Ownership of sessions: a lock file that its owner holds for life.

use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::id::SessionId;

use super::durable::failed;
use super::fs::{File, Fs, Open};
use super::layout::{Layout, SessionDir};
use super::lock;
use crate::error::{Error, Result};
use crate::port::{Lease, Leases};

pub(super) struct FileLeases {
    fs: Arc<dyn Fs>,
    layout: Layout,
}

impl FileLeases {
    pub(super) fn new(fs: Arc<dyn Fs>, layout: Layout) -> Self {
        Self { fs, layout }
    }
}

struct FileLease {
    session: SessionId,
    file: Box<dyn File>,
}

impl Lease for FileLease {
    fn session(&self) -> SessionId {
        self.session
    }
}

impl Drop for FileLease {
    fn drop(&mut self) {
        // A lease that cannot be given back goes with the process at the latest.
        let _ = self.file.unlock();
    }
}

#[async_trait]
impl Leases for FileLeases {
    async fn acquire(&self, session: SessionId) -> Result<Box<dyn Lease>> {
        let dir = SessionDir { path: self.layout.session(session) };
        let path = dir.owner();
        if self.fs.stat(&dir.path).is_err() {
            return Err(Error::NotFound(session));
        }
        let file = self.fs.open(&path, Open::Create).map_err(failed("opening", &path))?;
        let current = |file: &dyn File| {
            let (named, open) = (self.fs.stat(&path), file.stat());
            named.is_ok_and(|named| open.is_ok_and(|open| named.inode == open.inode))
        };
        // A lock on a file that was removed meanwhile owns nothing.
        if !file.try_lock().map_err(failed("locking", &path))? || !current(&*file) {
            return Err(Error::Owned { session, holder: lock::holder(&*self.fs, &path) });
        }
        lock::sign(&*file)?;
        Ok(Box::new(FileLease { session, file }))
    }
}
