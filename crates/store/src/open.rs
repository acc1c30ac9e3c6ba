//! Opening a store: one arm per backend.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Result;
use crate::port::audit::AuditLog;
use crate::port::documents::Documents;
use crate::port::locks::Locks;
use crate::port::mailbox::Mailbox;
use crate::port::search::Search;
use crate::port::{Blobs, EventLog, Keys, Leases, Papers, RunIndex, Sessions};
use crate::{files, memory};

/// Which store, and how.
#[derive(Clone, Debug)]
pub enum Config {
    /// Files below one directory.
    Files(files::Config),
    /// Nothing outlives the process. For tests.
    Memory,
}

impl Config {
    /// The default store below this directory.
    #[must_use]
    pub fn files(root: impl Into<PathBuf>) -> Self {
        Self::Files(files::Config::new(root))
    }
}

/// A store: one handle for each port.
#[derive(Clone)]
#[expect(missing_docs, reason = "the ports say it")]
pub struct Store {
    pub log: Arc<dyn EventLog>,
    pub sessions: Arc<dyn Sessions>,
    pub blobs: Arc<dyn Blobs>,
    pub leases: Arc<dyn Leases>,
    pub keys: Arc<dyn Keys>,
    pub documents: Arc<dyn Documents>,
    pub audit: Arc<dyn AuditLog>,
    pub locks: Arc<dyn Locks>,
    pub mailbox: Arc<dyn Mailbox>,
    pub runs: Arc<dyn RunIndex>,
    pub search: Arc<dyn Search>,
    pub papers: Arc<dyn Papers>,
}

/// Opens a store.
pub fn open(config: &Config) -> Result<Store> {
    match config {
        Config::Files(config) => files::open(config),
        Config::Memory => {
            let memory = memory::Control::new(memory::Outside::system());
            Ok(memory.store(std::process::id()))
        }
    }
}
