//! A few connections that are used again.

use std::sync::{Mutex, PoisonError};

use cairn_engine::performer::Failed;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::unreached;

/// How many connections there are to one database at once.
const CONNECTIONS_MAX: usize = 8;

/// Connections that nobody uses now.
pub(super) struct Idle<C> {
    kept: Mutex<Vec<C>>,
    turns: Semaphore,
}

impl<C> Idle<C> {
    pub(super) const fn new() -> Self {
        Self { kept: Mutex::new(Vec::new()), turns: Semaphore::const_new(CONNECTIONS_MAX) }
    }

    /// Waits until there may be one more.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, Failed> {
        self.turns.acquire().await.map_err(unreached)
    }

    pub(super) fn take(&self) -> Option<C> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn give(&self, connection: C) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
