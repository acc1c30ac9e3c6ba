//! The lines of the audit record, only ever added to.

use async_trait::async_trait;
use cairn_core::digest::Digest;

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
    ///
    /// How many lines there are and the digest of the last one are then kept apart from the lines,
    /// too. What cannot be kept apart is not added.
    async fn append(&self, next: NextLine<'_>) -> Result<bool>;

    /// Gives at most so many lines from a place on, oldest first. The first line is 0.
    async fn read(&self, from: u64, limit: usize) -> Result<Vec<Vec<u8>>>;

    /// Gives what is kept apart from the lines. It is a lower bound of what was added: a crash may
    /// leave it behind the lines, and nothing but a change by somebody else leaves it before them.
    async fn head(&self) -> Result<Head>;

    /// Says where the record is, for people.
    fn place(&self) -> String;
}

/// What is kept apart from the lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Head {
    /// Nothing: no line was added, or by a version that kept nothing apart.
    Absent,
    /// Something that cannot be read.
    Unreadable,
    /// There were so many lines, those that are lost since counted, and the last one had this
    /// digest.
    Of {
        /// How many.
        lines: u64,
        /// The digest of the bytes of the last one.
        last: Digest,
    },
}

/// How long a line can be.
pub const LINE_MAX: usize = 16 << 10;
