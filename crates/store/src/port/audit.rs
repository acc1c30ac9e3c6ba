//! The lines of the audit record, only ever added to.

use async_trait::async_trait;

use crate::error::Result;

/// Makes the next line of the one before it; none when it cannot be made.
pub type NextLine<'a> = Box<dyn FnOnce(Option<&[u8]>) -> Option<Vec<u8>> + Send + 'a>;

/// The audit record. What its lines say, and that each vouches for the one before it, is the
/// caller's business.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds the line that `next` makes of the last one, and says whether it made one. Nobody else
    /// adds one in between. On return the line will survive a crash; a line that a crash cut off
    /// was never there.
    ///
    /// A line holds neither line breaks nor zeros, and at most [`LINE_MAX`] bytes.
    async fn append(&self, next: NextLine<'_>) -> Result<bool>;

    /// Gives at most so many lines from a place on, oldest first. The first line is 0.
    async fn read(&self, from: u64, limit: usize) -> Result<Vec<Vec<u8>>>;

    /// Says where the record is, for people.
    fn place(&self) -> String;
}

/// How long a line can be.
pub const LINE_MAX: usize = 16 << 10;
