//! Whether this machine can keep the store's promises.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::durable::failed;
use super::fs::{Disk, Fs as _};
use crate::error::{Error, Result};
use crate::port::documents::Name;

/// What a look at a data directory found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkup {
    /// What kind of file system it is on.
    pub filesystem: String,
    /// Whether that kind keeps what the store needs.
    pub supported: bool,
    /// How many bytes are free.
    pub free_bytes: u64,
    /// How many there are.
    pub total_bytes: u64,
    /// How long it took to make a small write durable, in microseconds, fastest first.
    pub sync_us: Vec<u64>,
    /// Who may read and write the directory.
    pub root_mode: u32,
    /// Who may read and write the key ring, if there is one.
    pub keyring_mode: Option<u32>,
    /// Whether files can be made in it.
    pub writable: bool,
    /// How many sessions it holds.
    pub sessions: usize,
}

const SYNCS: usize = 32;

/// Looks at a data directory. It has to be there.
pub fn doctor(root: &Path) -> Result<Checkup> {
    let (filesystem, supported) = filesystem(root)?;
    let space = Disk.space(root).map_err(failed("measuring", root))?;
    // A directory in which nothing can be written has no times to show; the report says so.
    let sync_us = measure_syncs(root).unwrap_or_default();
    let missing = || failed("reading", root)(std::io::ErrorKind::NotFound.into());
    let root_mode = mode_of(root).ok_or_else(missing)?;
    let sessions = fs::read_dir(root.join("sessions")).map_or(0, Iterator::count);
    Ok(Checkup {
        filesystem,
        supported,
        free_bytes: space.free,
        total_bytes: space.total,
        writable: !sync_us.is_empty(),
        sync_us,
        root_mode,
        keyring_mode: mode_of(&root.join("keys").join("keyring.json")),
        sessions,
    })
}

fn measure_syncs(root: &Path) -> std::io::Result<Vec<u64>> {
    let path = root.join(format!(".checkup-{}", std::process::id()));
    let measured = (|| {
        let mut file = fs::File::create_new(&path)?;
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let start = Instant::now();
            file.write_all(&[b'x'; 512])?;
            file.sync_data()?;
            times.push(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        times.sort_unstable();
        Ok(times)
    })();
    fs::remove_file(&path)?;
    measured
}

/// Who may read and write a document, if it is there: the low nine bits.
#[must_use]
pub fn document_mode(root: &Path, name: &Name) -> Option<u32> {
    mode_of(&root.join(name.as_str()))
}

/// Who may read and write a path: the low nine bits.
pub(super) fn mode_of(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o777)
}

/// Something in a data directory that others can get at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exposed {
    /// What.
    pub path: PathBuf,
    /// Who may read and write it: the low nine bits.
    pub mode: u32,
    /// Whether others may put something else in its place.
    pub writable: bool,
}

impl Exposed {
    /// What is wrong, with the command that fixes it.
    #[must_use]
    pub fn told(&self) -> String {
        let (mode, path) = (self.mode, self.path.display());
        let what = if self.writable { "change" } else { "read" };
        format!("others may {what} it (mode {mode:o}); run `chmod -R go-rwx {path}`")
    }
}

/// What others can get at in a data directory: itself, and what is directly in it. Whatever is
/// deeper is made for its owner alone, in folders that are.
#[must_use]
pub fn exposed(root: &Path) -> Vec<Exposed> {
    let inside =
        fs::read_dir(root).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<Exposed> =
        [root.to_owned()].into_iter().chain(inside).filter_map(others).collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn others(path: PathBuf) -> Option<Exposed> {
    // What is gone by now is nobody's, and a link has no mode of its own.
    let metadata = fs::symlink_metadata(&path).ok().filter(|found| !found.is_symlink())?;
    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(Exposed { path, mode, writable: mode & 0o022 != 0 })
}

/// Makes the data directory, for its owner alone.
pub(super) fn prepare_root(root: &Path) -> Result<()> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for path in root.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()) {
        missing.push(path.to_owned());
    }
    for path in missing.iter().rev() {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            // Another process was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => made.map_err(failed("making", path))?,
        }
        super::durable::sync_parent(&Disk, path)?;
    }
    if root.is_dir() {
        return Ok(());
    }
    Err(failed("opening", root)(std::io::Error::from(std::io::ErrorKind::NotADirectory)))
}

/// Refuses a file system whose locks, renames or syncs mean something else.
pub(super) fn require_sound_filesystem(root: &Path) -> Result<()> {
    match filesystem(root)? {
        (_, true) => Ok(()),
        (found, false) => Err(Error::Filesystem { path: root.to_owned(), found }),
    }
}

fn filesystem(root: &Path) -> Result<(String, bool)> {
    let stat = rustix::fs::statfs(root).map_err(|e| failed("measuring", root)(e.into()))?;
    Ok(kind(stat.f_type as u64 & 0xffff_ffff))
}

/// The kind of file system with this number, and whether it is one that keeps what the store
/// needs: locks, renames and syncs that mean what they say.
fn kind(number: u64) -> (String, bool) {
    let (name, supported) = match number {
        0xef53 => ("ext4", true),
        0x5846_5342 => ("xfs", true),
        0x9123_683e => ("btrfs", true),
        0x2fc1_2fc1 => ("zfs", true),
        0xf2f5_2010 => ("f2fs", true),
        0x794c_7630 => ("overlayfs", true),
        0x0102_1994 => ("tmpfs", true),
        0x6969 => ("nfs", false),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => ("smb", false),
        0x0102_1997 => ("9p", false),
        0x6573_5546 => ("fuse", false),
        other => return (format!("an unknown file system ({other:#x})"), false),
    };
    (name.to_owned(), supported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_or_unknown_is_refused() {
        for number in [0x6969, 0xff53_4d42, 0x0102_1997, 0x6573_5546, 0, 0xdead_beef] {
            assert!(!kind(number).1, "{number:#x}");
        }
        assert_eq!(kind(0xef53), ("ext4".to_owned(), true));
        let here = tempfile::tempdir().unwrap();
        require_sound_filesystem(here.path()).unwrap();
        // Whatever the kernel shows there, it is no disk.
        let proc = require_sound_filesystem(Path::new("/proc")).unwrap_err();
        assert_eq!(proc.code(), "STORE_FILESYSTEM");
    }
}
