//! Making files and directories durable, and saying precisely what failed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::fs::{File, Fs, Open};
use super::layout::{SessionDir, temporary};
use crate::error::{Error, Result};

/// An error of reading or writing; nothing that was durable has changed.
pub(super) fn failed(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let context = format!("{doing} {}", path.display());
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { context },
        _ => Error::Io { context, source: Arc::new(source) },
    }
}

/// An error of making durable. The system may have dropped what was written, so whatever
/// depended on it cannot be trusted, and the same call must not be tried again.
pub(super) fn not_durable(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::DurabilityLost { path, source: Arc::new(source) }
}

/// Makes a directory, and its entry durable: one that is there may be a dead process's, and
/// not durable yet.
pub(super) fn ensure_dir(fs: &dyn Fs, path: &Path) -> Result<()> {
    match fs.create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("making", path)(error))
        }
        _ => sync_parent(fs, path),
    }
}

pub(super) fn sync_dir(fs: &dyn Fs, path: &Path) -> Result<()> {
    fs.sync_dir(path).map_err(not_durable(path))
}

pub(super) fn sync_parent(fs: &dyn Fs, path: &Path) -> Result<()> {
    match path.parent() {
        None => Ok(()),
        // A relative path of one name lies in the current directory.
        Some(parent) if parent.as_os_str().is_empty() => sync_dir(fs, Path::new(".")),
        Some(parent) => sync_dir(fs, parent),
    }
}

pub(super) fn sync_file(file: &dyn File, path: &Path) -> Result<()> {
    file.sync().map_err(not_durable(path))
}

/// Puts bytes in a file's place, durably: whoever looks sees the old content or the new.
pub(super) fn replace(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = temporary(path);
    write_whole(fs, &temporary, bytes)?;
    fs.rename(&temporary, path).map_err(failed("renaming to", path))?;
    sync_parent(fs, path)
}

/// Writes a whole file and makes its content durable; its name is the caller's business.
pub(super) fn write_whole(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> Result<()> {
    match fs.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("removing", path)(error));
        }
        _ => {}
    }
    let file = fs.open(path, Open::CreateNew).map_err(failed("making", path))?;
    let written = file.write_all_at(bytes, 0).map_err(failed("writing", path));
    if written.is_err() {
        // A full disk is not helped by a half-written file.
        let _ = fs.remove_file(path);
    }
    written.and_then(|()| sync_file(&*file, path))
}

/// A file's content, or none when it is not there.
pub(super) fn read_if_there(fs: &dyn Fs, path: &Path) -> Result<Option<Vec<u8>>> {
    match fs.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("reading", path)(error)),
    }
}

/// Removes a file if it is there. Its reappearing after a crash must be harmless.
pub(super) fn remove_if_there(fs: &dyn Fs, path: &Path) -> Result<()> {
    match fs.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("removing", path)(error))
        }
        _ => Ok(()),
    }
}

/// Keeps bytes that are about to be cut off or moved away.
pub(super) fn quarantine(fs: &dyn Fs, dir: &SessionDir, name: &str, bytes: &[u8]) -> Result<()> {
    let shelf = dir.quarantine();
    ensure_dir(fs, &shelf)?;
    write_whole(fs, &shelf.join(name), bytes)?;
    sync_dir(fs, &shelf)
}
