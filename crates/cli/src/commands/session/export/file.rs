//! Writing to a file that the user named.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Writes to what a path stands for: where a link leads, or straight into a device or a pipe.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            OpenOptions::new().write(true).open(path)?.write_all(bytes)
        }
        Ok(_) => replace(&fs::canonicalize(path)?, bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(&followed(path), bytes),
        Err(error) => Err(error),
    }
}

/// Where the links of a path lead when nothing is there yet.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The kernel follows no more than this many, either.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(to) => path = path.with_file_name(to),
            Err(_) => break,
        }
    }
    path
}

/// Writes beside the file first, so that nobody finds half of it under its name.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(name);
    let written = (|| {
        // It may hold what is nobody else's business.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, path)
    })();
    if written.is_err() {
        // What is left of it is of no use to anybody.
        let _ = fs::remove_file(&part);
    }
    written
}
