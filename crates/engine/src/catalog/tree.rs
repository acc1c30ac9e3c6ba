//! Directories on disk as source trees.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use cairn_lang::ids::SourceKind;
use cairn_lang::source::{BYTES_MAX, SourceTree};
use cairn_store::regular;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Directory;
use crate::error::Error;

/// Where the kernel shows itself: none of it is anybody's file.
const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// How deep directories are looked into.
const DEPTH_MAX: usize = 8;

/// The folder beside a workflow whose files are all its own, whatever they hold.
pub(super) const ASSETS: &str = "nodes";

/// The file beside a workflow with the packages of its Python steps. It belongs to those that name
/// it.
const REQUIREMENTS: &str = "requirements.txt";

/// How a file was when it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    path: PathBuf,
    len: u64,
    /// When its bytes, its names or its rights were changed last, in seconds and nanoseconds.
    changed: (i64, i64),
}

/// Something that is there and cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unreadable {
    pub(super) path: PathBuf,
    /// What the system said, or what it is.
    pub(super) why: String,
    /// Whether the machine is short of something at the moment, and the file is as it was.
    pub(super) passes: bool,
    /// Whether it would be a file of a workflow beside it, which goes on without it.
    pub(super) is_asset: bool,
}

impl Unreadable {
    fn of(path: PathBuf, source: &io::Error, is_asset: bool) -> Self {
        let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM].map(Errno::raw_os_error);
        let passes = source.raw_os_error().is_some_and(|error| short.contains(&error));
        Self { path, why: source.to_string(), passes, is_asset }
    }
}

/// What is below a directory.
#[derive(Default)]
struct Below {
    /// The files that are looked into.
    files: Vec<PathBuf>,
    /// Those of them that belong to a workflow, whatever they hold.
    assets: BTreeSet<PathBuf>,
    /// What cannot be listed, or is no file of a workflow's own.
    unreadable: Vec<Unreadable>,
}

impl Below {
    /// Reads the files, as far as they can be read.
    fn read(self, root: &Path) -> (BTreeMap<String, Vec<u8>>, Vec<Unreadable>) {
        let Self { files: paths, assets, mut unreadable } = self;
        let mut files = BTreeMap::new();
        for path in paths {
            let name = path.strip_prefix(root).unwrap_or(&path);
            let is_asset = assets.contains(&path);
            let read = if is_asset { asset(root, name) } else { source(root, &path) };
            match read {
                Ok(bytes) => drop(files.insert(relative(name), bytes)),
                Err(source) => unreadable.push(Unreadable::of(path, &source, is_asset)),
            }
        }
        unreadable.sort_by(|a, b| a.path.cmp(&b.path));
        (files, unreadable)
    }
}

/// How the files of some directories, and one beside them, are now.
pub(super) fn stamps(directories: &[Directory], beside: Option<&Path>) -> Vec<Stamp> {
    let mut all: Vec<PathBuf> = beside.map(Path::to_owned).into_iter().collect();
    for directory in directories.iter().filter(|directory| directory.root.is_dir()) {
        let Below { files, unreadable, .. } = below(&directory.root, DEPTH_MAX);
        all.extend(files);
        all.extend(unreadable.into_iter().map(|unreadable| unreadable.path));
    }
    // A file that is not there is told by the list that it is missing from.
    let stamp = |path: PathBuf| {
        // A link that leads nowhere is one thing more that may be put right.
        let meta = fs::metadata(&path).or_else(|_| fs::symlink_metadata(&path)).ok()?;
        Some(Stamp { path, len: meta.len(), changed: (meta.ctime(), meta.ctime_nsec()) })
    };
    all.into_iter().filter_map(stamp).collect()
}

/// When a file was last changed, in milliseconds since 1970.
pub(super) fn changed_ms(path: &Path) -> Option<u64> {
    let changed = fs::metadata(path).and_then(|meta| meta.modified()).ok()?;
    u64::try_from(changed.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Reads a directory, as far as it can be read.
pub(super) fn read(root: &Path, kind: SourceKind) -> (SourceTree, Vec<Unreadable>) {
    let (files, unreadable) = below(root, DEPTH_MAX).read(root);
    (SourceTree { kind, files, library: BTreeMap::new() }, unreadable)
}

/// What lies in a folder, by its path from a root above, and what of a workflow's own files was
/// left out. The rest is only there for the routines it holds, so it may be unreadable.
pub(super) fn neighbours(folder: &Path, root: &Path) -> (SourceTree, Vec<Unreadable>) {
    let (files, mut unreadable) = below(folder, 1).read(root);
    unreadable.retain(|unreadable| unreadable.is_asset);
    (SourceTree { kind: SourceKind::Project, files, library: BTreeMap::new() }, unreadable)
}

/// The sources below a directory, in order, and the files that belong to workflows. What
/// begins with a dot, and links to directories, are passed over.
fn below(root: &Path, depth: usize) -> Below {
    let mut found = Below::default();
    let mut folders = vec![(root.to_owned(), 1, false)];
    while let Some((folder, level, own)) = folders.pop() {
        let listed = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = listed.unwrap_or_else(|source| {
            found.unreadable.push(Unreadable::of(folder.clone(), &source, own));
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
            } else if inner && kind.is_file() {
                found.assets.insert(path.clone());
                found.files.push(path);
            } else if inner && !kind.is_dir() {
                let why = if kind.is_symlink() { LINK } else { NO_FILE }.to_owned();
                found.unreadable.push(Unreadable { path, why, passes: false, is_asset: true });
            } else if entry.file_name() == REQUIREMENTS && kind.is_file() {
                found.assets.insert(path.clone());
                found.files.push(path);
            } else if is_source(&path) && path.is_file() {
                found.files.push(path);
            }
        }
    }
    found.files.sort();
    found
}

/// The bytes of a file of a workflow's own. No link leads there, so that nothing else on the
/// machine is taken for a part of the workflow: neither the file nor a folder on the way is a
/// symbolic link, and the file has no other name.
fn asset(root: &Path, name: &Path) -> io::Result<Vec<u8>> {
    let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open(root, folder_flags, Mode::empty())?;
    let mut parts: Vec<&OsStr> = name.iter().collect();
    let file = parts.pop().unwrap_or_default();
    for part in parts {
        folder = rustix::fs::openat(&folder, part, folder_flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    // Without waiting, as a pipe would do.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::openat(&folder, file, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other(NO_FILE));
    }
    if meta.nlink() != 1 {
        return Err(io::Error::other(NAMED_TWICE));
    }
    limited(file)
}

const LINK: &str = "it is a link, and what a workflow uses must be in its own folder";
const LEADS_OUT: &str = "it is a link, and leads out of the folder that it is in";
const NAMED_TWICE: &str = "it has another name elsewhere, and would change with that";
const NO_FILE: &str = "it is no regular file";

/// Whether a file is known by its name to be a document.
pub(super) fn is_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("json" | "yaml" | "yml"))
}

/// The bytes of a file that may be a workflow. A link to it stays below the root, so that whoever
/// brings a folder of workflows cannot have other files of the machine read and shown.
pub(super) fn source(root: &Path, path: &Path) -> io::Result<Vec<u8>> {
    let whole = fs::canonicalize(path)?;
    if !whole.starts_with(fs::canonicalize(root)?) {
        return Err(io::Error::other(LEADS_OUT));
    }
    bytes(&whole)
}

/// No more than shows that a file is too long.
pub(super) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let whole = fs::canonicalize(path)?;
    // Shared memory is a place for files like any other.
    if KERNEL.iter().any(|folder| whole.starts_with(folder)) && !whole.starts_with("/dev/shm") {
        return Err(io::Error::other(NO_FILE));
    }
    limited(regular::open(&whole, fs::OpenOptions::new().read(true))?)
}

fn limited(file: fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(BYTES_MAX + 1).unwrap_or(u64::MAX);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The directories, each once, however it is written. One that is named as a bundled one too
/// stays so.
pub(super) fn distinct(directories: Vec<Directory>) -> Vec<Directory> {
    let whole = |path: &Path| {
        fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or(path.to_owned())
    };
    let mut seen = BTreeSet::new();
    let mut is_new = |directory: &Directory| {
        seen.insert((directory.kind == SourceKind::Bundled, whole(&directory.root)))
    };
    directories.into_iter().filter(|directory| is_new(directory)).collect()
}

pub(super) fn relative(path: &Path) -> String {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

pub(super) fn failed(path: &Path, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), source: Arc::new(source) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType};

    use super::*;

    // case: path.links
    #[test]
    fn the_files_of_a_workflow_are_its_own() {
        let home = tempfile::tempdir().unwrap();
        let (root, outside) = (home.path().join("workflows"), home.path().join("outside"));
        let nodes = root.join("w/nodes");
        fs::create_dir_all(&nodes).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("key.json"), "{\"secret\": 1}").unwrap();
        fs::write(nodes.join("own.sh"), "df").unwrap();
        symlink(outside.join("key.json"), nodes.join("linked.json")).unwrap();
        symlink("own.sh", nodes.join("inner.sh")).unwrap();
        symlink(&outside, nodes.join("folder")).unwrap();
        fs::hard_link(outside.join("key.json"), nodes.join("hard.json")).unwrap();
        let (pipe, mode) = (nodes.join("pipe.sh"), Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(CWD, pipe, FileType::Fifo, mode, 0).unwrap();
        let (tree, left_out) = read(&root, SourceKind::Project);
        assert_eq!(tree.files.keys().collect::<Vec<_>>(), ["w/nodes/own.sh"]);
        let name = |left: &Unreadable| {
            assert!(left.is_asset, "{left:?}");
            (relative(left.path.strip_prefix(&nodes).unwrap()), left.why.clone())
        };
        let told: Vec<(String, String)> = left_out.iter().map(name).collect();
        let wanted = [
            ("folder", LINK),
            ("hard.json", NAMED_TWICE),
            ("inner.sh", LINK),
            ("linked.json", LINK),
            ("pipe.sh", NO_FILE),
        ];
        assert_eq!(told, wanted.map(|(name, why)| (name.to_owned(), why.to_owned())));
    }

    // case: path.source
    #[test]
    fn a_source_is_a_regular_file_below_its_root() {
        let home = tempfile::tempdir().unwrap();
        let (root, outside) = (home.path().join("workflows"), home.path().join("workflows-too"));
        fs::create_dir_all(root.join("deep")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(root.join("deep/own.yaml"), "own").unwrap();
        fs::write(outside.join("other.yaml"), "TOKEN=hidden").unwrap();
        let pipe = root.join("pipe.yaml");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let links = [
            ("inner.yaml", "deep/own.yaml", None),
            ("twice.yaml", "inner.yaml", None),
            ("out.yaml", "../workflows-too/other.yaml", Some(LEADS_OUT)),
            ("chain.yaml", "out.yaml", Some(LEADS_OUT)),
            ("environ.yaml", "/proc/self/environ", Some(LEADS_OUT)),
            ("zero.yaml", "/dev/zero", Some(LEADS_OUT)),
            ("piped.yaml", "pipe.yaml", Some("a named pipe")),
        ];
        for (name, to, told) in links {
            symlink(to, root.join(name)).unwrap();
            let read = source(&root, &root.join(name));
            match (read, told) {
                (Ok(bytes), None) => assert_eq!(bytes, b"own", "{name}"),
                (Err(error), Some(told)) => {
                    assert!(error.to_string().contains(told), "{name}: {error}");
                }
                (read, _) => panic!("{name}: {read:?}"),
            }
        }
        for path in ["/proc/self/environ", "/proc/1/cmdline", "/dev/zero", "/sys/kernel/notes"] {
            let read = source(Path::new("/"), Path::new(path));
            assert!(read.is_err(), "{path}");
        }
    }

    #[test]
    fn a_folder_that_became_a_link_is_not_gone_through() {
        let home = tempfile::tempdir().unwrap();
        let outside = home.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("a.sh"), "df").unwrap();
        symlink(&outside, home.path().join("nodes")).unwrap();
        assert!(asset(home.path(), Path::new("nodes/a.sh")).is_err());
        assert!(asset(home.path(), Path::new("outside/a.sh")).is_ok());
        assert!(asset(home.path(), Path::new("outside")).is_err());
    }
}
