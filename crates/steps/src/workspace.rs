//! The folders that runs work in: one for each run that has a step which needs one.
//!
//! A folder is there from the first such step until its run is retired, whatever happens to the
//! engine in between. It is about this machine, like the processes of a run: no other backend of
//! the store carries it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use cairn_core::id::RunId;
use cairn_engine::performer::{self, Failed};

/// How many files and folders the workspace of a run may hold.
pub(crate) const FILES_MAX: u64 = 10_000;
/// How much room they may take.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

/// The folders of runs, below one folder.
#[derive(Clone, Debug)]
pub struct Workspaces {
    root: PathBuf,
}

impl Workspaces {
    /// Those below this folder, which need not exist.
    #[must_use]
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where the folder of a run is.
    #[must_use]
    pub fn path(&self, run: RunId) -> PathBuf {
        self.root.join(run.to_string())
    }
}

#[async_trait]
impl performer::Workspaces for Workspaces {
    async fn open(&self, run: RunId, forked_from: Option<RunId>) -> Result<PathBuf, Failed> {
        let (root, path) = (self.root.clone(), self.path(run));
        let from = forked_from.map(|from| self.path(from));
        let made =
            tokio::task::spawn_blocking(move || make(&root, &path, from.as_deref()).map(|()| path));
        let made = made.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        made.map_err(|error| {
            let message = format!("the run's workspace cannot be made: {error}");
            Failed::new("WORKSPACE_UNUSABLE", message)
        })
    }

    async fn remove(&self, runs: &[RunId]) {
        let own = |run: &RunId| [self.path(*run), sessions(&self.path(*run))];
        let paths: Vec<PathBuf> = runs.iter().flat_map(own).collect();
        // One that cannot be removed holds up nothing else; it stays for a person to look at.
        let removal = move || paths.iter().for_each(|path| drop(fs::remove_dir_all(path)));
        let _ = tokio::task::spawn_blocking(removal).await;
    }
}

/// Where the conversations of a run are kept: beside its folder, where no step of it works.
pub(crate) fn sessions(folder: &Path) -> PathBuf {
    folder.with_extension("sessions")
}

/// Makes a folder, whole or not at all.
fn make(root: &Path, path: &Path, from: Option<&Path>) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    let Some(from) = from.filter(|from| from.is_dir()) else { return private(path) };
    // A copy that a crash cut off is under another name, and is begun again.
    let draft = path.with_extension("draft");
    if draft.is_dir() {
        fs::remove_dir_all(&draft)?;
    }
    private(&draft)?;
    let mut room = Room { files: FILES_MAX, bytes: BYTES_MAX };
    copy(from, &draft, &mut room)?;
    fs::rename(&draft, path)
}

fn private(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        // Another step of the run was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// How much may still be copied.
struct Room {
    files: u64,
    bytes: u64,
}

/// Copies what is in a folder. Links are copied as links; sockets and devices are left out.
fn copy(from: &Path, to: &Path, room: &mut Room) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        let bytes = entry.metadata()?.len();
        let left = room.files.checked_sub(1).zip(room.bytes.checked_sub(bytes));
        let Some((files, bytes)) = left else {
            return Err(io::Error::other("the workspace it is a copy of is too large"));
        };
        *room = Room { files, bytes };
        if kind.is_dir() {
            private(&target)?;
            copy(&entry.path(), &target, room)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
            let mode = entry.metadata()?.permissions().mode();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cairn_engine::performer::Workspaces as _;

    use super::*;

    #[tokio::test]
    async fn a_fork_gets_a_copy_and_a_retired_run_loses_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::new(root.path().join("workspaces"));
        let (first, fork) = (RunId::from_bits(1), RunId::from_bits(2));
        let folder = workspaces.open(first, None).await.unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(folder.join("deep")).unwrap();
        fs::write(folder.join("deep/f"), "hi").unwrap();
        symlink("/etc/passwd", folder.join("link")).unwrap();
        assert_eq!(workspaces.open(first, None).await.unwrap(), folder);

        let copied = workspaces.open(fork, Some(first)).await.unwrap();
        assert_eq!(fs::read_to_string(copied.join("deep/f")).unwrap(), "hi");
        assert_eq!(fs::read_link(copied.join("link")).unwrap(), Path::new("/etc/passwd"));
        fs::write(copied.join("deep/f"), "other").unwrap();
        assert_eq!(fs::read_to_string(folder.join("deep/f")).unwrap(), "hi");

        workspaces.remove(&[first, RunId::from_bits(9)]).await;
        assert!(!folder.exists() && copied.exists());
        let late = workspaces.open(RunId::from_bits(3), Some(first)).await.unwrap();
        assert_eq!(fs::read_dir(late).unwrap().count(), 0);
    }
}
