//! Where a command runs: in the run's workspace, or in a folder of its own.

use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cairn_engine::performer::{Ctx, Failed};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use tempfile::{Builder, TempDir};

use crate::workspace::{BYTES_MAX, FILES_MAX};

/// A folder to run in. One that was made for it goes when this is dropped.
pub(crate) struct Folder {
    path: PathBuf,
    /// Whether what is in it has bounds. A project of the user has none.
    bounded: bool,
    _own: Option<TempDir>,
}

impl Folder {
    /// The folder of an automation's command, with the workflow's files in it.
    pub(crate) async fn open(ctx: &Ctx) -> Result<Self, Failed> {
        let (workspace, assets) = (ctx.workspace.clone(), Arc::clone(&ctx.assets));
        let made = tokio::task::spawn_blocking(move || {
            let (path, own) = match workspace {
                Some(path) => (path, None),
                None => {
                    let private = Permissions::from_mode(0o700);
                    let made = Builder::new().prefix("cairn-step-").permissions(private).tempdir();
                    let own = made.map_err(|error| unmade(&error))?;
                    (own.path().to_owned(), Some(own))
                }
            };
            for (name, bytes) in assets.iter() {
                lay_out(&path, name, bytes)?;
            }
            Ok(Self { path, bounded: true, _own: own })
        });
        made.await.unwrap_or_else(|error| Err(unmade(&io::Error::other(error))))
    }

    /// The workspace of a guided run, or a folder in it.
    pub(crate) fn within(cwd: Option<&Path>, ctx: &Ctx) -> Result<Self, Failed> {
        let workspace = ctx.workspace.clone().ok_or_else(|| {
            Failed::new(
                "SHELL_WORKSPACE",
                "the run has no workspace; start it with `workspacePath`",
            )
        })?;
        let Some(cwd) = cwd else {
            return Ok(Self { path: workspace, bounded: false, _own: None });
        };
        let inner = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !cwd.components().all(inner) {
            let message = format!("`{}` leaves the workspace", cwd.display());
            return Err(Failed::new("SHELL_FOLDER", message));
        }
        Ok(Self { path: workspace.join(cwd), bounded: false, _own: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at what a command left in the folder of its run, or in one of its own: more than may
    /// be there is a failure.
    pub(crate) async fn require_small(&self) -> Result<(), Failed> {
        if !self.bounded {
            return Ok(());
        }
        let path = self.path.clone();
        let looked =
            tokio::task::spawn_blocking(move || within_limits(&path, FILES_MAX, BYTES_MAX));
        looked.await.unwrap_or_else(|error| Err(unmade(&io::Error::other(error))))
    }
}

fn within_limits(folder: &Path, files_max: u64, bytes_max: u64) -> Result<(), Failed> {
    let (mut files, mut bytes) = (0_u64, 0_u64);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // What cannot be looked into is removed with the rest.
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            files += 1;
            bytes = bytes.saturating_add(metadata.blocks().saturating_mul(512));
            if metadata.is_dir() {
                folders.push(entry.path());
            }
            let too_much = match () {
                () if files > files_max => format!("more than {files_max} files"),
                () if bytes > bytes_max => format!("files of more than {bytes_max} bytes"),
                () => continue,
            };
            let message = format!(
                "the command left {too_much} in its folder; clean up in it, or write elsewhere"
            );
            return Err(Failed::new("SHELL_FOLDER_TOO_LARGE", message));
        }
    }
    Ok(())
}

/// A folder below another, as it was found without following a link.
pub(crate) struct Below {
    pub(crate) path: PathBuf,
    /// The folder itself, whatever its path leads to later.
    pub(crate) opened: Arc<OwnedFd>,
}

impl Below {
    /// Opens a folder below another, made where it is missing.
    pub(crate) fn open(root: &Path, path: Option<&Path>) -> io::Result<Self> {
        let parts = match path {
            Some(path) => inner(path).ok_or_else(leads_out)?,
            None => Vec::new(),
        };
        let opened = descend(root, &parts).map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => leads_out(),
            error => error.into(),
        })?;
        let path = parts.iter().fold(root.to_owned(), |path, part| path.join(part));
        Ok(Self { path, opened: Arc::new(opened) })
    }

    /// Puts a file below the folder, for reading only.
    pub(crate) fn lay_out(&self, name: &str, bytes: &[u8]) -> Result<(), Failed> {
        lay_out_in(self.opened.as_fd(), name, bytes)
    }

    /// Whether there is a file at a path below the folder, and no link on the way.
    pub(crate) fn has_file(&self, path: &Path) -> bool {
        let Some((file, folders)) =
            inner(path).and_then(|mut parts| parts.pop().map(|file| (file, parts)))
        else {
            return false;
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = None;
        for part in folders {
            let from = folder.as_ref().unwrap_or(&*self.opened);
            match rustix::fs::openat(from, part, flags, Mode::empty()) {
                Ok(found) => folder = Some(found),
                Err(_) => return false,
            }
        }
        let from = folder.as_ref().unwrap_or(&*self.opened);
        let found = rustix::fs::statat(from, file, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
    }
}

/// The names in a path that leads down from where it begins; none when it leads elsewhere.
fn inner(path: &Path) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(names)
}

fn leads_out() -> io::Error {
    io::Error::other("it leads out of the workspace, or over a link")
}

fn unmade(error: &io::Error) -> Failed {
    Failed::new("SHELL_FOLDER", format!("no folder for the command can be made: {error}"))
}

/// Puts a file of the workflow below a folder, for reading only.
///
/// A file that is there already is replaced only when it looks like one that was put there.
fn lay_out(root: &Path, name: &str, bytes: &[u8]) -> Result<(), Failed> {
    let told = |error: Errno| Failed::new("SHELL_ASSET", format!("`{name}`: {error}"));
    lay_out_in(descend(root, &[]).map_err(told)?.as_fd(), name, bytes)
}

fn lay_out_in(root: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Failed> {
    let failed = |what: String| Failed::new("SHELL_ASSET", format!("`{name}`: {what}"));
    let mut parts: Vec<&str> = name.split('/').collect();
    let odd = |part: &&str| part.is_empty() || *part == "." || *part == "..";
    let Some(file) = parts.pop().filter(|file| !odd(file) && !parts.iter().any(odd)) else {
        return Err(failed("the path leads out of the workspace".to_owned()));
    };
    let told = |error: Errno| failed(format!("cannot be laid out in the workspace: {error}"));
    let mut folder = root.try_clone_to_owned().map_err(|_| told(Errno::MFILE))?;
    for part in parts {
        folder = down(&folder, part).map_err(told)?;
    }
    match present(&mut folder, file, bytes).map_err(told)? {
        Present::Same => return Ok(()),
        Present::Different => {
            return Err(failed(
                "the workspace has another file of this name, which is left alone".to_owned(),
            ));
        }
        Present::Absent => {}
    }
    write(&folder, file, bytes).map_err(told)
}

/// Opens a folder below another, made where it is missing. No link is followed.
fn descend(root: &Path, parts: &[&str]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags, Mode::empty())?;
    parts.iter().try_fold(root, |folder, part| down(&folder, part))
}

/// Opens a folder in another, made if it is missing. No link is followed.
fn down(folder: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::mkdirat(folder, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

enum Present {
    Absent,
    Same,
    Different,
}

fn present(folder: &mut OwnedFd, file: &str, bytes: &[u8]) -> rustix::io::Result<Present> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let found = match rustix::fs::openat(folder.as_fd(), file, flags, Mode::empty()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(Present::Absent),
        Err(Errno::LOOP) => return Ok(Present::Different),
        Err(error) => return Err(error),
    };
    let mode = rustix::fs::fstat(&found)?.st_mode;
    let kept = std::fs::read(format!("/proc/self/fd/{}", raw(&found))).unwrap_or_default();
    Ok(match (kept == bytes, mode & 0o222) {
        (true, _) => Present::Same,
        (false, 0) => Present::Absent,
        (false, _) => Present::Different,
    })
}

fn raw(file: &OwnedFd) -> i32 {
    use std::os::fd::AsRawFd as _;
    file.as_raw_fd()
}

/// Writes a file beside its place and puts it there in one move.
fn write(folder: &OwnedFd, file: &str, bytes: &[u8]) -> rustix::io::Result<()> {
    // Side by side steps may lay out the same file.
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|_| Errno::IO)?;
    let draft = format!(".{file}.{:x}", u64::from_le_bytes(number));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let open = rustix::fs::openat(folder, draft.as_str(), flags, Mode::from_raw_mode(0o600))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&open, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    // A script may be started by its name.
    rustix::fs::fchmod(&open, Mode::from_raw_mode(0o555))?;
    let moved = rustix::fs::renameat(folder, draft.as_str(), folder, file);
    if moved.is_err() {
        let _ = rustix::fs::unlinkat(folder, draft.as_str(), AtFlags::empty());
    }
    moved
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn files_of_the_workflow_are_laid_out_for_reading() {
        let root = tempfile::tempdir().unwrap();
        lay_out(root.path(), "nodes/a/check.sh", b"one").unwrap();
        let file = root.path().join("nodes/a/check.sh");
        assert_eq!(fs::read(&file).unwrap(), b"one");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o555);
        lay_out(root.path(), "nodes/a/check.sh", b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(root.path().join("nodes/a")).unwrap().count(), 1);
    }

    #[test]
    fn what_somebody_else_put_there_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("mine"), "own").unwrap();
        let error = lay_out(root.path(), "mine", b"other").unwrap_err();
        assert!(error.message.contains("another file"), "{error}");
        assert_eq!(fs::read(root.path().join("mine")).unwrap(), b"own");
        lay_out(root.path(), "mine", b"own").unwrap();
    }

    // case: path.leads-out
    #[test]
    fn no_path_and_no_link_leads_out() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join("nodes")).unwrap();
        symlink(outside.path().join("x"), root.path().join("link")).unwrap();
        for path in ["nodes/x", "../x", "a/../x", "/x", "", "a//x", "link"] {
            let error = lay_out(root.path(), path, b"x").unwrap_err();
            assert_eq!(error.code, "SHELL_ASSET", "{path}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    // case: path.link-folder
    #[test]
    fn a_folder_below_another_is_found_without_following_a_link() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), "").unwrap();
        symlink(outside.path(), root.path().join("sub")).unwrap();
        symlink(outside.path().join("x"), root.path().join("file")).unwrap();
        for path in ["sub", "sub/deep", "../x", "/tmp", "a/../../x", "file"] {
            assert!(Below::open(root.path(), Some(Path::new(path))).is_err(), "{path}");
        }
        let below = Below::open(root.path(), Some(Path::new("./a/b"))).unwrap();
        assert!(below.path.ends_with("a/b") && below.path.is_dir());
        below.lay_out("docs/one.md", b"one").unwrap();
        symlink(outside.path(), below.path.join("out")).unwrap();
        assert!(below.lay_out("out/x", b"two").is_err());
        assert_eq!(fs::read(outside.path().join("x")).unwrap(), b"");
        assert!(below.has_file(Path::new("docs/one.md")));
        for path in ["docs", "out/x", "none", "../../file", "", "docs/one.md/x"] {
            assert!(!below.has_file(Path::new(path)), "{path}");
        }
        // The path may lead elsewhere later; the folder is the one that was opened.
        fs::rename(&below.path, root.path().join("moved")).unwrap();
        symlink(outside.path(), &below.path).unwrap();
        below.lay_out("late", b"late").unwrap();
        assert!(root.path().join("moved/late").is_file() && !outside.path().join("late").exists());
    }

    // case: path.quota
    #[tokio::test]
    async fn a_folder_is_for_its_owner_alone_and_has_bounds() {
        let folder = Folder::open(&crate::settings::tests::ctx()).await.unwrap();
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
        fs::create_dir(folder.path().join("deep")).unwrap();
        for name in ["a", "b", "deep/c"] {
            fs::write(folder.path().join(name), vec![7; 10_000]).unwrap();
        }
        std::os::unix::fs::symlink("/", folder.path().join("root")).unwrap();
        assert_eq!(folder.require_small().await, Ok(()));
        let told = |files, bytes| within_limits(folder.path(), files, bytes).map_err(|e| e.message);
        assert_eq!(told(5, 1 << 20), Ok(()));
        assert!(told(4, 1 << 20).unwrap_err().contains("more than 4 files"));
        assert!(told(5, 20_000).unwrap_err().contains("more than 20000 bytes"));
    }
}
