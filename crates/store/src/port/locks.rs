//! Locks on what only one process may do at a time in a whole store.

use async_trait::async_trait;

use crate::error::Result;

/// What only one process may do at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Exclusive {
    /// To be the server: two would fire the same schedules.
    Server,
    /// To change the secrets and the key that they are sealed under: the key is not in the store,
    /// so comparing versions is not enough.
    Vault,
}

impl Exclusive {
    /// What is locked, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "the place of the server",
            Self::Vault => "the vault of secrets",
        }
    }
}

/// The locks. They are free when their holder is gone, and never stolen.
#[async_trait]
pub trait Locks: Send + Sync {
    /// Takes a lock if it is free, until the answer is dropped or the process ends.
    async fn try_lock(&self, what: Exclusive) -> Result<Claim>;

    /// Takes a lock, waiting for its holder; `LockBusy` when that takes long.
    async fn lock(&self, what: Exclusive) -> Result<Box<dyn Lock>>;
}

/// What came of asking for a lock.
pub enum Claim {
    /// It was free.
    Taken(Box<dyn Lock>),
    /// Somebody has it, who may have said who that is.
    Held(Option<String>),
}

/// A lock that is held.
pub trait Lock: Send + Sync {
    /// Says who has it, in one short line for whoever asks next.
    fn sign(&self, who: &str);
}
