//! Where everything is below the data directory.

use std::path::{Path, PathBuf};

use cairn_core::digest::Digest;
use cairn_core::id::SessionId;
use cairn_core::pin::BlobKind;

use crate::port::documents::Name;
use crate::port::locks::Exclusive;

/// The names below one data directory.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) root: PathBuf,
}

impl Layout {
    pub(super) fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    pub(super) fn session(&self, session: SessionId) -> PathBuf {
        self.sessions().join(session.to_string())
    }

    /// What says that a session was deleted here.
    pub(super) fn deleted(&self, session: SessionId) -> PathBuf {
        self.root.join("deleted").join(session.to_string())
    }

    /// Where the order of changes is.
    pub(super) fn changes(&self) -> PathBuf {
        self.root.join("changes")
    }

    pub(super) fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// Where sessions are that came from elsewhere and that nobody trusts yet.
    pub(super) fn papers(&self) -> PathBuf {
        self.root.join("papers")
    }

    /// Where the owners of sessions listen.
    pub(super) fn sockets(&self) -> PathBuf {
        self.root.join("sockets")
    }

    pub(super) fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// The document of this name.
    pub(super) fn document(&self, name: &Name) -> PathBuf {
        self.root.join(name.as_str())
    }

    /// The record of who changed what.
    pub(super) fn audit(&self) -> PathBuf {
        self.root.join("audit").join("audit.jsonl")
    }

    /// What is known of the last line of that record, apart from its folder.
    pub(super) fn audit_head(&self) -> PathBuf {
        self.root.join("audit.head")
    }

    /// Who is adding a line to that record.
    pub(super) fn audit_holder(&self) -> PathBuf {
        self.root.join("audit.holder")
    }

    /// The lock on what one process does at a time.
    pub(super) fn exclusive(&self, what: Exclusive) -> PathBuf {
        match what {
            Exclusive::Server => self.root.join("server.lock"),
            Exclusive::Vault => self.root.join("secrets").join(".lock"),
        }
    }

    /// The directories of blobs: plans and the rest have homes of their own.
    pub(super) fn blobs(&self, kind: BlobKind) -> PathBuf {
        match kind {
            BlobKind::Snapshot => self.root.join("snapshots"),
            BlobKind::Artifact => self.root.join("artifacts"),
            BlobKind::Plan => self.root.join("workflows").join("pinned"),
            BlobKind::Asset => self.root.join("workflows").join("assets"),
        }
    }

    pub(super) fn blob(&self, kind: BlobKind, digest: Digest) -> PathBuf {
        let hex = digest.hex();
        let shelf = hex.get(..2).unwrap_or_default();
        self.blobs(kind).join(shelf).join(&hex)
    }

    /// Held in shares by whoever is about to pin blobs, and alone by a collection.
    pub(super) fn gc_lock(&self) -> PathBuf {
        self.blobs(BlobKind::Snapshot).join(".gc.lock")
    }
}

/// The names below one session's directory.
#[derive(Clone, Debug)]
pub(super) struct SessionDir {
    pub(super) path: PathBuf,
}

impl SessionDir {
    pub(super) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    pub(super) fn manifest(&self) -> PathBuf {
        self.path.join("manifest.jsonl")
    }

    pub(super) fn events(&self) -> PathBuf {
        self.path.join("events")
    }

    pub(super) fn head(&self) -> PathBuf {
        self.path.join("head")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.path.join(".lock")
    }

    pub(super) fn seal_lock(&self) -> PathBuf {
        self.path.join(".seal")
    }

    pub(super) fn owner(&self) -> PathBuf {
        self.path.join(".owner")
    }

    pub(super) fn epoch(&self) -> PathBuf {
        self.path.join(EPOCH)
    }

    pub(super) fn keep(&self) -> PathBuf {
        self.path.join("keep")
    }

    pub(super) fn quarantine(&self) -> PathBuf {
        self.path.join("quarantine")
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// The name of the file that says which ownership of a session is the last.
pub(super) const EPOCH: &str = "epoch";

/// What the name of a session that is being imported ends with.
pub(super) const IMPORT: &str = ".import";

pub(super) const JOURNAL: &str = "journal.jsonl";

/// The name of a journal that is full and waits to be sealed.
pub(super) fn rotated_journal(first: u64) -> String {
    format!("journal-{first:08}.jsonl")
}

/// The first event of a rotated journal, by its name.
pub(super) fn rotated_first(name: &str) -> Option<u64> {
    let first: u64 = name.strip_prefix("journal-")?.strip_suffix(".jsonl")?.parse().ok()?;
    (rotated_journal(first) == name).then_some(first)
}

/// A name beside `path` for what is written before it takes its place.
pub(super) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    path.with_file_name(format!("{name}.tmp"))
}
