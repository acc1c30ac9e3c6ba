//! What a disk holds: a tree of files and directories, and the changes it can take.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cairn_core::digest::Digest;

use crate::effect::{Change, Cut, Part};

/// The number of a file or directory on a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Inode(pub u64);

/// The root directory.
pub const ROOT: Inode = Inode(1);

/// What a disk holds. Copies share what they have in common.
#[derive(Clone, Debug)]
pub struct Image {
    nodes: BTreeMap<Inode, Arc<Node>>,
}

/// A file or a directory.
#[derive(Clone, Debug)]
pub struct Node {
    /// What is in it.
    pub body: Body,
    /// When that last changed.
    pub modified_ms: u64,
    digest: OnceLock<Digest>,
}

/// What is in a file or a directory.
#[derive(Clone, Debug)]
pub enum Body {
    /// A file's bytes.
    File(Vec<u8>),
    /// A directory's names, and where they lead.
    Dir(BTreeMap<String, Inode>),
}

impl Default for Image {
    /// A disk with nothing but its root.
    fn default() -> Self {
        let mut image = Self { nodes: BTreeMap::new() };
        image.add(ROOT, Body::Dir(BTreeMap::new()), 0);
        image
    }
}

impl Image {
    /// Adds a file or directory that no name leads to yet.
    pub fn add(&mut self, inode: Inode, body: Body, modified_ms: u64) {
        let node = Node { body, modified_ms, digest: OnceLock::new() };
        self.nodes.insert(inode, Arc::new(node));
    }

    /// The file or directory with this number.
    pub fn node(&self, inode: Inode) -> io::Result<&Node> {
        self.nodes.get(&inode).map(|node| &**node).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The bytes of a file.
    pub fn bytes(&self, inode: Inode) -> io::Result<&[u8]> {
        match &self.node(inode)?.body {
            Body::File(bytes) => Ok(bytes),
            Body::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// The names in a directory.
    pub fn names(&self, inode: Inode) -> io::Result<&BTreeMap<String, Inode>> {
        match &self.node(inode)?.body {
            Body::Dir(names) => Ok(names),
            Body::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Where a path leads.
    pub fn find(&self, path: &Path) -> io::Result<Inode> {
        path.components().try_fold(ROOT, |inode, component| match component {
            Component::Normal(name) => {
                let found = name.to_str().and_then(|name| self.names(inode).ok()?.get(name));
                found.copied().ok_or_else(|| io::ErrorKind::NotFound.into())
            }
            _ => Ok(inode),
        })
    }

    /// The directory that a path's last name belongs in, and that name.
    pub fn place(&self, path: &Path) -> io::Result<(Inode, String)> {
        let name = path.file_name().and_then(|name| name.to_str());
        let (Some(parent), Some(name)) = (path.parent(), name) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let dir = self.find(parent)?;
        self.names(dir)?;
        Ok((dir, name.to_owned()))
    }

    /// Makes a change. One that concerns nothing on this disk changes nothing.
    pub fn apply(&mut self, change: &Change, now_ms: u64) {
        match change {
            Change::Write { file, offset, bytes } => self.write(*file, *offset, bytes, now_ms),
            Change::SetLen { file, len } => {
                let len = to_usize(*len);
                self.edit_file(*file, now_ms, |content| content.resize(len, 0));
            }
            Change::Link { dir, name, node } => {
                self.edit_dir(*dir, now_ms, |names| {
                    names.insert(name.clone(), *node);
                });
            }
            Change::Unlink { dir, name } => {
                self.edit_dir(*dir, now_ms, |names| {
                    names.remove(name);
                });
            }
            Change::Rename { dir, from, to, node } => self.edit_dir(*dir, now_ms, |names| {
                names.remove(from);
                names.insert(to.clone(), *node);
            }),
        }
    }

    /// Makes the part of a write that reached the disk before the power went.
    pub fn apply_cut(&mut self, change: &Change, cut: Cut, now_ms: u64) {
        let Change::Write { file, offset, bytes } = change else { return };
        let (first, last) = bytes.split_at(cut.bytes.min(bytes.len()));
        let whole = to_usize(*offset) + bytes.len();
        match cut.part {
            Part::First => self.write(*file, *offset, first, now_ms),
            Part::FirstThenZeros => {
                self.write(*file, *offset, first, now_ms);
                self.edit_file(*file, now_ms, |content| {
                    content.resize(content.len().max(whole), 0);
                });
            }
            Part::Last => self.write(*file, *offset + first.len() as u64, last, now_ms),
        }
    }

    fn write(&mut self, file: Inode, offset: u64, bytes: &[u8], now_ms: u64) {
        let start = to_usize(offset);
        let end = start + bytes.len();
        self.edit_file(file, now_ms, |content| {
            if content.len() < end {
                content.resize(end, 0);
            }
            if let Some(range) = content.get_mut(start..end) {
                range.copy_from_slice(bytes);
            }
        });
    }

    fn edit_file(&mut self, inode: Inode, now_ms: u64, edit: impl FnOnce(&mut Vec<u8>)) {
        self.edit(inode, now_ms, |body| match body {
            Body::File(bytes) => edit(bytes),
            Body::Dir(_) => {}
        });
    }

    fn edit_dir(
        &mut self,
        inode: Inode,
        now_ms: u64,
        edit: impl FnOnce(&mut BTreeMap<String, Inode>),
    ) {
        self.edit(inode, now_ms, |body| match body {
            Body::Dir(names) => edit(names),
            Body::File(_) => {}
        });
    }

    fn edit(&mut self, inode: Inode, now_ms: u64, edit: impl FnOnce(&mut Body)) {
        if let Some(node) = self.nodes.get_mut(&inode).map(Arc::make_mut) {
            edit(&mut node.body);
            node.modified_ms = now_ms;
            node.digest = OnceLock::new();
        }
    }

    /// Forgets what no name leads to.
    pub fn prune(&mut self) {
        let mut reachable = BTreeSet::from([ROOT]);
        let mut dirs = vec![ROOT];
        while let Some(dir) = dirs.pop() {
            let names = self.names(dir).map(|names| names.values().copied().collect::<Vec<_>>());
            dirs.extend(names.unwrap_or_default().iter().filter(|inode| reachable.insert(**inode)));
        }
        self.nodes.retain(|inode, _| reachable.contains(inode));
    }

    /// The highest number that is in use.
    pub fn last_inode(&self) -> Inode {
        self.nodes.last_key_value().map_or(ROOT, |(inode, _)| *inode)
    }

    /// A digest of all names and bytes that can be reached: equal disks have equal ones.
    pub fn digest(&self) -> Digest {
        self.digest_of(ROOT)
    }

    fn digest_of(&self, inode: Inode) -> Digest {
        let Some(node) = self.nodes.get(&inode) else { return Digest::of(b"nothing") };
        match &node.body {
            Body::File(bytes) => *node.digest.get_or_init(|| Digest::of_all(&[b"file", bytes])),
            Body::Dir(names) => {
                let mut text = b"dir".to_vec();
                for (name, inode) in names {
                    text.extend_from_slice(name.as_bytes());
                    text.push(0);
                    text.extend_from_slice(self.digest_of(*inode).as_bytes());
                }
                Digest::of(&text)
            }
        }
    }

    fn list(&self, dir: Inode, path: &Path, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, inode) in self.names(dir).into_iter().flatten() {
            let path: PathBuf = path.join(name);
            match self.bytes(*inode) {
                Ok(bytes) => writeln!(f, "{} ({} bytes)", path.display(), bytes.len())?,
                Err(_) => {
                    writeln!(f, "{}/", path.display())?;
                    self.list(*inode, &path, f)?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list(ROOT, Path::new("/"), f)
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
