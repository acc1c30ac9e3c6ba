//! Files outside the data directory that are replaced whole: the master key, and the settings
//! beside a workflow. Whoever looks sees the old content or the new.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_store::regular;

use crate::error::{Error, Result};

/// How long such a file may be.
const BYTES_MAX: u64 = 1 << 20;

/// What the system said about a file.
pub(crate) fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path, source: Arc::new(source) }
}

/// Where a path leads, without links and `..`. What does not exist is where it would be.
pub(crate) fn whole(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let resolved = path.ancestors().find_map(|above| {
        let rest = path.strip_prefix(above).ok()?;
        let above = fs::canonicalize(above).ok()?;
        Some(if rest.as_os_str().is_empty() { above } else { above.join(rest) })
    });
    resolved.unwrap_or(path)
}

/// What is compared to know whether a file is still the same, and for the same people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    file: [u64; 3],
    times: [i64; 4],
    whose: [u32; 3],
}

/// The stamp of a file; none when it cannot be looked at.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some(Stamp {
        file: [found.dev(), found.ino(), found.size()],
        times: [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()],
        whose: [found.mode(), found.uid(), found.gid()],
    })
}

/// A file's content, or none when it is not there.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match regular::read(path, BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

/// Puts bytes in a file's place, durably. A new file is for its owner alone; one that is there
/// keeps its mode.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = folder(path);
    let write = || {
        let mode = fs::metadata(path).map_or(0o600, |known| known.permissions().mode() & 0o777);
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(failed(path))
}

/// Makes a directory for its owner alone, and those above it.
pub(crate) fn private_dir(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))
}

/// Renames a file within its folder, durably.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    let rename = || {
        fs::rename(from, to)?;
        File::open(folder(to))?.sync_all()
    };
    rename().map_err(failed(to))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
