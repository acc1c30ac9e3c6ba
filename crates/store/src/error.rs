//! What can go wrong with the store, as far as a caller would act differently on it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_core::event::Invalid;
use cairn_core::format::{self, FORMAT};
use cairn_core::id::{EventIndex, RunId, SessionId};

use crate::fence::{Epoch, Owner};
use crate::health::Health;

/// What the store answers with.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Somebody recorded more of a run after the plan was made.
    #[error("run {run}: expected last event {}, found {}", place(.expected), place(.actual))]
    Conflict {
        /// The run.
        run: RunId,
        /// What the plan has seen of it.
        expected: Option<EventIndex>,
        /// What is there.
        actual: Option<EventIndex>,
    },
    /// Some of the plan's facts are recorded and some are not.
    #[error("some of the plan's events are recorded and some are not: {key} is, {missing} is not")]
    PartlyRecorded {
        /// One that is there.
        key: String,
        /// One that is not.
        missing: String,
    },
    /// An event breaks a rule of its kind.
    #[error("the plan's event {place} breaks a rule: {source}")]
    InvalidEvent {
        /// Which of the plan's events.
        place: usize,
        /// Which rule.
        source: Invalid,
    },
    /// The plan as a whole is not acceptable.
    #[error("the plan cannot be appended: {0}")]
    InvalidPlan(&'static str),
    /// A value has no canonical form.
    #[error("a value cannot be stored: {0}")]
    NotCanonical(#[from] canonical::Error),
    /// Another process is writing to the session right now.
    #[error("session {session} is locked{}", .holder.as_ref().map(|h| format!(" by {h}")).unwrap_or_default())]
    Locked {
        /// The session.
        session: SessionId,
        /// Who says to hold it.
        holder: Option<String>,
    },
    /// Another process owns the session and performs its runs.
    #[error("session {session} is owned by {}", .owner.as_deref().map_or_else(|| "another process".to_owned(), Owner::to_string))]
    Owned {
        /// The session.
        session: SessionId,
        /// Who, as it said itself; none when it has not said so yet.
        owner: Option<Box<Owner>>,
    },
    /// Another owner has taken the session over; nothing was written.
    #[error(
        "session {session} has a newer owner: this one holds epoch {held}, the session is at {current}"
    )]
    Fenced {
        /// The session.
        session: SessionId,
        /// The epoch of whoever asked.
        held: Epoch,
        /// The session's own.
        current: Epoch,
    },
    /// The session's epoch is lower than one that was given out: an older copy of its files was
    /// put in their place. Nothing was written.
    #[error(
        "the epoch of session {session} went backwards: this owner holds {held}, the session is at {current}"
    )]
    EpochBackwards {
        /// The session.
        session: SessionId,
        /// The epoch of whoever asked.
        held: Epoch,
        /// The session's own.
        current: Epoch,
    },
    /// Only owners add to the session, and the plan carries no epoch; nothing was written.
    #[error(
        "session {session} belongs to an owner (epoch {current}), and the plan carries no epoch"
    )]
    Unfenced {
        /// The session.
        session: SessionId,
        /// The session's epoch.
        current: Epoch,
    },
    /// There is a session of that id already.
    #[error("there is a session {0} already")]
    Exists(SessionId),
    /// Too many appends wait for the session.
    #[error("{waiting} appends are waiting for session {session}")]
    Busy {
        /// The session.
        session: SessionId,
        /// How many.
        waiting: usize,
    },
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// The session's data is damaged.
    #[error("session {session} is damaged ({}): {what}", .health.name())]
    Corrupt {
        /// The session.
        session: SessionId,
        /// How badly.
        health: Health,
        /// What is damaged, and where.
        what: String,
    },
    /// The session was written by a later version.
    #[error("session {session} needs a newer version of this program: {what}")]
    UnknownVersion {
        /// The session.
        session: SessionId,
        /// What is unknown.
        what: String,
    },
    /// A later version wrote to the session. It can be read, not written.
    #[error(
        "session {session} holds what needs format {found}, and this program writes format {known}"
    )]
    Newer {
        /// The session.
        session: SessionId,
        /// The format that it needs.
        found: u32,
        /// The latest one that this program knows.
        known: u32,
    },
    /// A blob is not there.
    #[error("the {kind} {digest} is not in the store")]
    BlobMissing {
        /// What kind of blob.
        kind: &'static str,
        /// Its digest.
        digest: Digest,
    },
    /// A blob's bytes are not the ones its name asks for.
    #[error("the {kind} {digest} is damaged: its bytes have the digest {found}")]
    BlobCorrupt {
        /// What kind of blob.
        kind: &'static str,
        /// Its digest.
        digest: Digest,
        /// The digest of what is there.
        found: Digest,
    },
    /// The disk is full; nothing was written.
    #[error("the disk is full: {context}")]
    Full {
        /// What was being written.
        context: String,
    },
    /// The disk refused to make something durable. This process cannot trust the session any more.
    #[error("what was written to {path} may not be durable: {source}")]
    DurabilityLost {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// Reading or writing failed; nothing was changed.
    #[error("{context}: {source}")]
    Io {
        /// What was being done, and to which file.
        context: String,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The key ring cannot be used.
    #[error("the key ring {path} cannot be used: {what}")]
    Keyring {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Another process is changing the key ring right now.
    #[error("the key ring {path} is being changed by another process")]
    KeyringBusy {
        /// Where it is.
        path: PathBuf,
    },
    /// Somebody changed a document after it was read; nothing was written.
    #[error("the document {name} was changed since it was read")]
    DocumentMoved {
        /// Its name.
        name: String,
    },
    /// Another process has a lock, and does not give it back; nothing was written.
    #[error("{what} is being changed by {}", .holder.as_deref().unwrap_or("another process"))]
    LockBusy {
        /// What the lock is on.
        what: String,
        /// Who says to have it, since when, and what for.
        holder: Option<String>,
    },
    /// The data directory is on a file system that does not keep the promises the store needs.
    #[error("{path} is on {found}, which does not keep what the store needs")]
    Filesystem {
        /// The directory.
        path: PathBuf,
        /// What kind of file system.
        found: String,
    },
    /// A bundle cannot be imported.
    #[error(transparent)]
    Bundle(#[from] cairn_core::bundle::Error),
}

fn place(index: &Option<EventIndex>) -> String {
    index.map_or_else(|| "none".to_owned(), |index| index.to_string())
}

/// Refuses to write to a session that needs a later format.
pub(crate) fn require_known(session: SessionId, needs: u32) -> Result<()> {
    if format::is_newer(needs) {
        return Err(Error::Newer { session, found: needs, known: FORMAT });
    }
    Ok(())
}

impl Error {
    /// What a session that is not healthy answers with.
    pub(crate) fn unhealthy(session: SessionId, health: Health, damage: Option<String>) -> Self {
        // Whoever finds something wrong says what; the health alone says enough to act on.
        let what = damage.unwrap_or_else(|| "nothing more is known".to_owned());
        match health {
            Health::UnknownVersion => Self::UnknownVersion { session, what },
            health => Self::Corrupt { session, health, what },
        }
    }

    /// The stable name of the error: programs compare it, so it stays as it is for good.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } | Self::DocumentMoved { .. } => "STORE_CONFLICT",
            Self::PartlyRecorded { .. } => "INVARIANT_VIOLATION",
            Self::InvalidEvent { .. } | Self::InvalidPlan(_) | Self::NotCanonical(_) => {
                "STORE_INVALID_PLAN"
            }
            Self::Locked { .. } => "SESSION_LOCKED",
            Self::Owned { .. } => "SESSION_OWNED",
            Self::Fenced { .. } => "STORE_FENCED",
            Self::EpochBackwards { .. } => "STORE_EPOCH_BACKWARDS",
            Self::Unfenced { .. } => "STORE_UNFENCED",
            Self::Exists(_) => "SESSION_EXISTS",
            Self::Busy { .. } | Self::LockBusy { .. } => "STORE_BUSY",
            Self::NotFound(_) => "SESSION_NOT_FOUND",
            Self::Corrupt { .. } => "SESSION_CORRUPT",
            Self::UnknownVersion { .. } => "SESSION_UNKNOWN_VERSION",
            Self::Newer { .. } => "SESSION_NEWER",
            Self::BlobMissing { .. } => "STORE_BLOB_MISSING",
            Self::BlobCorrupt { .. } => "STORE_BLOB_CORRUPT",
            Self::Full { .. } => "STORE_FULL",
            Self::DurabilityLost { .. } => "STORE_DURABILITY_LOST",
            Self::Io { .. } => "STORE_IO",
            Self::Keyring { .. } => "KEYRING_UNUSABLE",
            Self::KeyringBusy { .. } => "KEYRING_BUSY",
            Self::Filesystem { .. } => "STORE_FILESYSTEM",
            Self::Bundle(error) => error.code(),
        }
    }
}
