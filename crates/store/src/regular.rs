//! Reading files that somebody else may have put there: nothing but a regular file is opened to
//! be read, so that no pipe is waited for and no device is read without an end.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file. What is no regular file is refused, and not waited for.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = options.custom_flags(flags.cast_signed()).open(path)?;
    match odd(&file.metadata()?) {
        None => Ok(file),
        Some(what) => Err(refused(what)),
    }
}

/// The whole content of a file of at most so many bytes.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    // A socket is known before it is opened, and one that is opened says something else.
    if let Some(what) = fs::metadata(path).ok().as_ref().and_then(odd) {
        return Err(refused(what));
    }
    let file = open(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= max => Ok(bytes),
        _ => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {max} bytes"),
        )),
    }
}

/// The same as text.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, max)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

fn refused(what: &str) -> io::Error {
    let message = format!("it is {what}, and not a regular file");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// What something is that is no regular file.
fn odd(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    Some(match () {
        () if kind.is_file() => return None,
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "something else",
    })
}

/// Why others than its owner may have read a file or put another in its place, with the command
/// that mends it; none when nobody may, or when it is not there.
#[must_use]
pub fn exposed(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if let Some(what) = odd(&metadata) {
        return Some(format!("it is {what}, and not a regular file; remove it"));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.display();
        return Some(format!("others may read it (mode {mode:o}); run `chmod 600 {path}`"));
    }
    foreign(path, &metadata).or_else(|| open_folder(path))
}

/// Why others may put another file into a folder.
fn open_folder(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let metadata = fs::metadata(folder).ok()?;
    let mode = metadata.permissions().mode() & 0o1777;
    // In a sticky folder nobody replaces what is not theirs.
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        let folder = folder.display();
        return Some(format!(
            "others may put another one into its folder (mode {mode:o}); run `chmod 700 {folder}`"
        ));
    }
    // The system's own folders are as good as one's own.
    foreign(folder, &metadata).filter(|_| metadata.uid() != 0)
}

fn foreign(path: &Path, metadata: &Metadata) -> Option<String> {
    let me = rustix::process::geteuid().as_raw();
    let (path, owner) = (path.display(), metadata.uid());
    (owner != me).then(|| format!("it belongs to user {owner}; run `chown {me} {path}`"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use rustix::fs::{CWD, FileType, Mode};

    use super::*;

    fn all(folder: &Path) -> Vec<(PathBuf, &'static str)> {
        let pipe = folder.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let socket = folder.join("socket");
        drop(UnixListener::bind(&socket).unwrap());
        let link = folder.join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        vec![
            (pipe, "a named pipe"),
            (link, "a named pipe"),
            (socket, "a socket"),
            (folder.to_owned(), "a directory"),
            ("/dev/zero".into(), "a device"),
            ("/dev/tty".into(), "a device"),
        ]
    }

    // case: keyring.no-file
    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        for (path, what) in all(folder.path()) {
            let error = read(&path, 1 << 20).unwrap_err().to_string();
            assert!(error.contains(what), "{}: {error}", path.display());
            assert!(exposed(&path).unwrap().contains(what), "{}", path.display());
            let opened = open(&path, OpenOptions::new().read(true).write(true));
            assert!(opened.is_err(), "{}", path.display());
        }
    }

    // case: limit.input
    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        // It has no length, and an end.
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
        assert_eq!(
            read(&folder.path().join("none"), 4).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    // case: keyring.exposed
    #[test]
    fn a_file_is_for_its_owner_and_so_is_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        fs::create_dir(&keys).unwrap();
        let path = keys.join("keyring.json");
        assert_eq!(exposed(&path), None);
        fs::write(&path, "x").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        for (of_file, of_folder, told) in [
            (0o600, 0o700, None),
            (0o400, 0o755, None),
            (0o640, 0o700, Some("chmod 600 ")),
            (0o602, 0o700, Some("chmod 600 ")),
            (0o600, 0o777, Some("chmod 700 ")),
            (0o600, 0o770, Some("chmod 700 ")),
            (0o600, 0o702, Some("chmod 700 ")),
            (0o600, 0o1777, None),
        ] {
            mode(&path, of_file).unwrap();
            mode(&keys, of_folder).unwrap();
            let found = exposed(&path);
            assert_eq!(found.is_some(), told.is_some(), "{of_file:o} {of_folder:o}: {found:?}");
            let found = found.unwrap_or_default();
            assert!(found.contains(told.unwrap_or_default()), "{of_file:o} {of_folder:o}: {found}");
        }
    }
}
