//! What can go wrong with one call.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What goes wrong with one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The device fails. A sync that does so may be tried again.
    Eio,
    /// The disk is full.
    Enospc,
    /// A signal came in between.
    Eintr,
    /// Too many files are open.
    Emfile,
    /// Only so many bytes are written, and the call says so.
    Short(usize),
    /// A sync fails, and the system forgets that there was anything to write: the bytes can
    /// be read until the power goes, and no later sync will save them.
    LostPages,
}

impl Fault {
    /// The error that the call ends with.
    #[must_use]
    pub fn error(self) -> io::Error {
        let code = match self {
            Self::Eintr => 4,
            Self::Eio | Self::LostPages | Self::Short(_) => 5,
            Self::Emfile => 24,
            Self::Enospc => 28,
        };
        io::Error::from_raw_os_error(code)
    }

    /// Whether a call can fail like this. Giving back a lock always works, and but for reads
    /// and writes at a place the system takes care of interruptions by itself.
    #[must_use]
    pub const fn befalls(self, call: Call) -> bool {
        match self {
            Self::Eio => !matches!(call, Call::Unlock),
            Self::Enospc => call.is_change() || call.is_sync(),
            Self::Eintr => matches!(call, Call::ReadAt | Call::Write),
            Self::Emfile => matches!(call, Call::Open),
            Self::Short(_) => matches!(call, Call::Write),
            Self::LostPages => call.is_sync(),
        }
    }
}

/// Which call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Call {
    Open,
    Read,
    ReadAt,
    Write,
    SetLen,
    Sync,
    SyncDir,
    Rename,
    Remove,
    CreateDir,
    Look,
    Lock,
    Unlock,
}

impl Call {
    /// Whether it changes the disk.
    #[must_use]
    pub const fn is_change(self) -> bool {
        matches!(self, Self::Write | Self::SetLen | Self::Rename | Self::Remove | Self::CreateDir)
    }

    /// Whether it makes something durable.
    #[must_use]
    pub const fn is_sync(self) -> bool {
        matches!(self, Self::Sync | Self::SyncDir)
    }
}

/// One call of a process, by its number: the first is 1.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Op {
    pub number: u64,
    pub call: Call,
    pub path: PathBuf,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op {}: {:?} {}", self.number, self.call, self.path.display())
    }
}
