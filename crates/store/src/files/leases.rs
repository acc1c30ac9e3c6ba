//! Ownership of sessions: a lock file that its owner holds for life.

use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::id::SessionId;

use super::fs::Fs;
use super::layout::{Layout, SessionDir};
use super::lock::{self, Kept, LockFile};
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
    _owner: Kept,
}

impl Lease for FileLease {
    fn session(&self) -> SessionId {
        self.session
    }
}

#[async_trait]
impl Leases for FileLeases {
    async fn acquire(&self, session: SessionId) -> Result<Box<dyn Lease>> {
        let (fs, dir) = (&*self.fs, SessionDir { path: self.layout.session(session) });
        let path = dir.owner();
        let taken = LockFile::open(fs, path.clone()).and_then(|file| file.try_keep(fs));
        // Without its directory there is no session, whether it never was or goes meanwhile.
        match taken {
            Err(_) if fs.stat(&dir.path).is_err() => Err(Error::NotFound(session)),
            Err(error) => Err(error),
            Ok(None) => Err(Error::Owned { session, holder: lock::holder(fs, &path) }),
            Ok(Some(owner)) => Ok(Box::new(FileLease { session, _owner: owner })),
        }
    }
}
