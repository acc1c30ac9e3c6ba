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
use crate::error::{Error, Result};

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

/// How the files of some directories, and one beside them, are now.
pub(super) fn stamps(directories: &[Directory], beside: Option<&Path>) -> Result<Vec<Stamp>> {
    let mut all: Vec<PathBuf> = beside.map(Path::to_owned).into_iter().collect();
    for directory in directories.iter().filter(|directory| directory.root.is_dir()) {
        all.extend(paths(&directory.root, DEPTH_MAX)?);
    }
    // A file that is not there is told by the list that it is missing from.
    let stamp = |path: PathBuf| {
        let meta = fs::metadata(&path).ok()?;
        Some(Stamp { path, len: meta.len(), modified: meta.modified().ok() })
    };
    Ok(all.into_iter().filter_map(stamp).collect())
}

/// Reads a directory.
pub(super) fn read(root: &Path, kind: SourceKind) -> Result<SourceTree> {
    let mut files = BTreeMap::new();
    for path in paths(root, DEPTH_MAX)? {
        files.insert(relative(path.strip_prefix(root).unwrap_or(&path)), bytes(&path)?);
    }
    Ok(SourceTree { kind, files, library: BTreeMap::new() })
}

/// What lies beside a file. It is only there for the routines it holds, so it may be unreadable.
pub(super) fn neighbours(folder: &Path) -> SourceTree {
    let paths = paths(folder, 1).unwrap_or_default();
    let readable = |path: PathBuf| {
        let name = relative(path.strip_prefix(folder).unwrap_or(&path));
        bytes(&path).ok().map(|bytes| (name, bytes))
    };
    let files = paths.into_iter().filter_map(readable).collect();
    SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() }
}

/// The sources below a directory, in order, and the files that belong to workflows. What
/// begins with a dot, and links to directories, are passed over.
fn paths(root: &Path, depth: usize) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![(root.to_owned(), 1, false)];
    while let Some((folder, level, own)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|source| failed(&folder, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| failed(&folder, source))?;
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let kind = entry.file_type().map_err(|source| failed(&path, source))?;
            let inner = own || entry.file_name() == ASSETS;
            if kind.is_dir() && level < if inner { DEPTH_MAX } else { depth } {
                folders.push((path, level + 1, inner));
            } else if (is_source(&path) && path.is_file()) || (own && kind.is_file()) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a file is known by its name to be a document.
pub(super) fn is_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("json" | "yaml" | "yml"))
}

/// No more than shows that a file is too long.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(BYTES_MAX + 1).unwrap_or(u64::MAX);
    let file = fs::File::open(path).map_err(|source| failed(path, source))?;
    file.take(limit).read_to_end(&mut bytes).map_err(|source| failed(path, source))?;
    Ok(bytes)
}

pub(super) fn relative(path: &Path) -> String {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

pub(super) fn failed(path: &Path, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), source: Arc::new(source) }
}
