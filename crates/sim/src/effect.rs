//! What a call does to a disk, as long as it is not durable yet.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::image::Inode;

/// A change that a crash may undo, and the path by which it was made.
#[derive(Clone, Debug)]
pub struct Effect {
    /// For people.
    pub path: PathBuf,
    /// When it was made.
    pub at_ms: u64,
    /// What it changes.
    pub change: Change,
}

/// A change of one file or one directory. It reaches the disk whole or not at all, but for
/// a write, of which a part can.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Change {
    Write { file: Inode, offset: u64, bytes: Arc<[u8]> },
    SetLen { file: Inode, len: u64 },
    Link { dir: Inode, name: String, node: Inode },
    Unlink { dir: Inode, name: String },
    Rename { dir: Inode, from: String, to: String, node: Inode },
}

/// Which part of a write reached the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Where it is cut.
    pub bytes: usize,
    /// Which side of the cut is there.
    pub part: Part,
}

/// Which side of a cut write is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// What stands before the cut; the file is no longer for the rest.
    First,
    /// What stands before the cut; the file has its new length, with zeros.
    FirstThenZeros,
    /// What stands behind the cut: a disk need not write its sectors in order.
    Last,
}

impl Effect {
    /// The file or directory that must be synced to make this durable.
    #[must_use]
    pub const fn touches(&self) -> Inode {
        match &self.change {
            Change::Write { file, .. } | Change::SetLen { file, .. } => *file,
            Change::Link { dir, .. } | Change::Unlink { dir, .. } | Change::Rename { dir, .. } => {
                *dir
            }
        }
    }

    /// How many bytes it writes; 0 for anything but a write.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.change {
            Change::Write { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }

    /// Whether there is nothing of it that could be cut.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.change {
            Change::Write { offset, bytes, .. } => {
                write!(f, "write {path} {offset}+{}", bytes.len())
            }
            Change::SetLen { len, .. } => write!(f, "set the length of {path} to {len}"),
            Change::Link { .. } => write!(f, "link {path}"),
            Change::Unlink { .. } => write!(f, "unlink {path}"),
            Change::Rename { from, .. } => write!(f, "rename {from} to {path}"),
        }
    }
}
