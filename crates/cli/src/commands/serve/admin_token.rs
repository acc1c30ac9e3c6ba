//! The admin token: made once, kept in a file for its owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use cairn_api::error::{Error, Result};

use crate::fresh::{self, ADMIN_TOKEN_PREFIX};

/// The shortest secret that is taken: 160 bits in Crockford.
const SECRET_LEN_MIN: usize = 32;
const FILE_LEN_MAX: u64 = 1024;

/// The admin token.
pub(super) struct AdminToken {
    pub(super) text: String,
    /// Whether nobody has seen it yet.
    pub(super) is_new: bool,
}

/// Reads the token, or makes one when there is none.
pub(super) fn load_or_make(path: &Path) -> Result<AdminToken> {
    let unusable = |what: String| Error::AdminToken { path: path.to_owned(), what };
    match File::open(path) {
        Ok(file) => {
            let text = read(&file).map_err(unusable)?;
            Ok(AdminToken { text, is_new: false })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let text = fresh::admin_token()?;
            write(path, &text).map_err(|source| unwritten(path, source))?;
            Ok(AdminToken { text, is_new: true })
        }
        Err(error) => Err(unusable(error.to_string())),
    }
}

/// There is no token to put right: it is the data directory that cannot be written.
fn unwritten(path: &Path, source: io::Error) -> Error {
    let context = format!("writing {}", path.display());
    Error::from(cairn_store::Error::Io { context, source: source.into() })
}

fn read(file: &File) -> std::result::Result<String, String> {
    let told = |error: io::Error| error.to_string();
    let metadata = file.metadata().map_err(told)?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(format!("others can read it (mode {:04o})", metadata.mode() & 0o777));
    }
    let mut text = String::new();
    file.take(FILE_LEN_MAX).read_to_string(&mut text).map_err(told)?;
    let text = text.trim_end();
    let secret = text.strip_prefix(ADMIN_TOKEN_PREFIX).unwrap_or_default();
    if secret.len() < SECRET_LEN_MIN || !secret.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(format!("it holds no token that starts with {ADMIN_TOKEN_PREFIX}"));
    }
    Ok(text.to_owned())
}

/// Writes beside the file first: a crash leaves either no token or a whole one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn what(text: &str, mode: u32) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        match load_or_make(&path) {
            Ok(token) => token.text,
            Err(Error::AdminToken { what, .. }) => what,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys").join("admin.token");
        let first = load_or_make(&path).unwrap();
        let second = load_or_make(&path).unwrap();
        assert!(first.is_new && !second.is_new);
        assert_eq!(first.text, second.text);
        assert_eq!(first.text.len(), ADMIN_TOKEN_PREFIX.len() + 52);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_token_that_cannot_be_kept_is_no_fault_of_the_token() {
        let error = load_or_make(Path::new("/proc/nowhere/admin.token")).err().unwrap();
        assert_eq!(error.code(), "STORE_IO");
        assert!(error.to_string().starts_with("writing /proc/nowhere/admin.token: "));
    }

    #[test]
    fn a_token_that_others_can_read_or_guess_is_not_used() {
        let good = format!("{ADMIN_TOKEN_PREFIX}{}", "a".repeat(32));
        assert_eq!(what(&good, 0o600), good);
        assert_eq!(what(&good, 0o400), good);
        assert_eq!(what(&good, 0o640), "others can read it (mode 0640)");
        for text in ["", "cairn_adm_", "cairn_adm_short", &good.replace("aa", "a b"), "hunter2"] {
            assert!(what(text, 0o600).starts_with("it holds no token"), "{text}");
        }
    }
}
