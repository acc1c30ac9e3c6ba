//! Directories on disk as source trees.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cairn_lang::ids::SourceKind;
use cairn_lang::source::{BYTES_MAX, SourceTree};

use super::Directory;
use crate::error::Error;

/// How deep directories are looked into.
const DEPTH_MAX: usize = 8;

/// The folder beside a workflow whose files are all its own, whatever they hold.
const ASSETS: &str = "nodes";

/// How a file was when it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    path: PathBuf,
    len: u64,
    modified: Option<SystemTime>,
}

/// Something that is there and cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unreadable {
    pub(super) path: PathBuf,
    /// What the system said.
    pub(super) why: String,
}

/// What is below a directory.
#[derive(Default)]
struct Below {
    /// The files that are looked into.
    files: Vec<PathBuf>,
    /// The directories that cannot be listed.
    unreadable: Vec<Unreadable>,
}

/// How the files of some directories, and one beside them, are now.
pub(super) fn stamps(directories: &[Directory], beside: Option<&Path>) -> Vec<Stamp> {
    let mut all: Vec<PathBuf> = beside.map(Path::to_owned).into_iter().collect();
    for directory in directories.iter().filter(|directory| directory.root.is_dir()) {
        all.extend(below(&directory.root, DEPTH_MAX).files);
    }
    // A file that is not there is told by the list that it is missing from.
    let stamp = |path: PathBuf| {
        let meta = fs::metadata(&path).ok()?;
        Some(Stamp { path, len: meta.len(), modified: meta.modified().ok() })
    };
    all.into_iter().filter_map(stamp).collect()
}

/// Reads a directory, as far as it can be read.
pub(super) fn read(root: &Path, kind: SourceKind) -> (SourceTree, Vec<Unreadable>) {
    let Below { files: paths, mut unreadable } = below(root, DEPTH_MAX);
    let mut files = BTreeMap::new();
    for path in paths {
        match bytes(&path) {
            Ok(bytes) => {
                files.insert(relative(path.strip_prefix(root).unwrap_or(&path)), bytes);
            }
            Err(source) => unreadable.push(Unreadable { path, why: source.to_string() }),
        }
    }
    unreadable.sort_by(|a, b| a.path.cmp(&b.path));
    (SourceTree { kind, files, library: BTreeMap::new() }, unreadable)
}

/// What lies beside a file. It is only there for the routines it holds, so it may be unreadable.
pub(super) fn neighbours(folder: &Path) -> SourceTree {
    let paths = below(folder, 1).files;
    let readable = |path: PathBuf| {
        let name = relative(path.strip_prefix(folder).unwrap_or(&path));
        bytes(&path).ok().map(|bytes| (name, bytes))
    };
    let files = paths.into_iter().filter_map(readable).collect();
    SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() }
}

/// The sources below a directory, in order, and the files that belong to workflows. What
/// begins with a dot, and links to directories, are passed over.
fn below(root: &Path, depth: usize) -> Below {
    let mut found = Below::default();
    let mut folders = vec![(root.to_owned(), 1, false)];
    while let Some((folder, level, own)) = folders.pop() {
        let listed = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = listed.unwrap_or_else(|source| {
            found.unreadable.push(Unreadable { path: folder.clone(), why: source.to_string() });
            Vec::new()
        });
        for entry in entries {
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            // Without a kind it is gone meanwhile.
            let Ok(kind) = entry.file_type() else { continue };
            let inner = own || entry.file_name() == ASSETS;
            if kind.is_dir() && level < if inner { DEPTH_MAX } else { depth } {
                folders.push((path, level + 1, inner));
            } else if (is_source(&path) && path.is_file()) || (own && kind.is_file()) {
                found.files.push(path);
            }
        }
    }
    found.files.sort();
    found
}

/// Whether a file is known by its name to be a document.
pub(super) fn is_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("json" | "yaml" | "yml"))
}

/// No more than shows that a file is too long.
pub(super) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(BYTES_MAX + 1).unwrap_or(u64::MAX);
    fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn relative(path: &Path) -> String {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

pub(super) fn failed(path: &Path, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), source: Arc::new(source) }
}
