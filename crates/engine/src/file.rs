//! Files outside the data directory that are replaced whole: the master key, and the settings
//! beside a workflow. Whoever looks sees the old content or the new.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};

/// What the system said about a file.
pub(crate) fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path, source: Arc::new(source) }
}

/// A file's content, or none when it is not there.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
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

/// Why a file is not for its owner alone.
pub(crate) fn exposed(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Some(format!("others may read it (mode {mode:o}); chmod 600 it"));
    }
    let foreign = metadata.uid() != rustix::process::geteuid().as_raw();
    foreign.then(|| "it belongs to another user; chown it".to_owned())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
