//! Control groups of version 2, where this process may make some.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::supervisor::{NAME, Orders, Report};

/// The control group of one command.
pub(super) struct Cgroup {
    base: PathBuf,
    folder: PathBuf,
}

impl Cgroup {
    /// The folder of this process's own group, if it is one of version 2 and can have groups
    /// below it.
    pub(super) fn base(own: &Path, mount: &Path) -> Option<PathBuf> {
        let own = fs::read_to_string(own).ok()?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let base = mount.join(path);
        let writable = || rustix::fs::access(&base, rustix::fs::Access::WRITE_OK).is_ok();
        (base.join("cgroup.procs").exists() && base.join("cgroup.kill").exists() || is_root(&base))
            .then_some(())
            .filter(|()| writable())
            .map(|()| base)
    }

    /// The group of the command with this token, which need not be there.
    pub(super) fn of(base: &Path, token: &str) -> Self {
        Self { base: base.to_owned(), folder: base.join(format!("{NAME}-{token}")) }
    }

    /// Makes a group and goes into it, so that whatever is started now is in it too.
    pub(super) fn enter(base: &Path, token: &str, orders: &Orders) -> io::Result<Self> {
        let group = Self::of(base, token);
        fs::create_dir(&group.folder)?;
        let limits = [("pids.max", orders.processes_max as u64), ("memory.max", orders.memory_max)];
        for (file, max) in limits.into_iter().filter(|(_, max)| *max > 0) {
            let file = group.folder.join(file);
            // Which limits there are is up to whoever made the group above.
            if file.exists() {
                fs::write(file, max.to_string())?;
            }
        }
        if let Err(error) = fs::write(group.folder.join("cgroup.procs"), "0") {
            group.remove();
            return Err(error);
        }
        Ok(group)
    }

    /// Goes back to where it came from; what was started meanwhile stays.
    pub(super) fn leave(self) -> io::Result<Self> {
        fs::write(self.base.join("cgroup.procs"), "0")?;
        Ok(self)
    }

    /// Which limit was reached, if one was.
    pub(super) fn broken(&self) -> Option<Report> {
        let happened = |file: &str, event: &str| {
            let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix(event)?.trim().parse().ok());
            count.is_some_and(|count: u64| count > 0)
        };
        if happened("pids.events", "max ") {
            return Some(Report::Processes);
        }
        happened("memory.events", "oom_kill ").then_some(Report::Memory)
    }

    /// Kills all that is in it.
    pub(super) fn kill(&self) {
        // Where the kernel is too old for it, the caller finds them one by one.
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
    }

    /// Removes it. What is not empty stays until the next start.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The topmost group has no file to kill it by.
fn is_root(base: &Path) -> bool {
    base.join("cgroup.controllers").exists() && !base.join("cgroup.events").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the files that a group of version 2 has.
    fn group(folder: &Path) {
        for file in ["cgroup.procs", "cgroup.kill", "cgroup.events", "cgroup.controllers"] {
            fs::write(folder.join(file), "").unwrap();
        }
    }

    #[test]
    fn the_own_group_is_found_where_there_is_one_of_version_2() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(&own, "4:memory:/x\n0::/a/b\n").unwrap();
        assert_eq!(Cgroup::base(&own, folder.path()), None, "it has no files");
        group(&inner);
        assert_eq!(Cgroup::base(&own, folder.path()), Some(inner));
        fs::write(&own, "4:memory:/x\n").unwrap();
        assert_eq!(Cgroup::base(&own, folder.path()), None, "version 1");
    }

    #[test]
    fn a_command_gets_limits_and_breaking_them_is_seen() {
        let base = tempfile::tempdir().unwrap();
        group(base.path());
        let orders = Orders {
            nonce: "n1".into(),
            strict: true,
            processes_max: 64,
            memory_max: 1 << 30,
            cgroup: None,
            record: PathBuf::new(),
            command: Vec::new(),
        };
        let cgroup = Cgroup::enter(base.path(), "one", &orders).unwrap();
        let file = |name: &str| base.path().join("cairn-exec-one").join(name);
        assert_eq!(fs::read_to_string(file("cgroup.procs")).unwrap(), "0");
        assert!(!file("pids.max").exists(), "there is no such limit here");
        assert!(Cgroup::enter(base.path(), "one", &orders).is_err(), "a name is used once");
        let cgroup = cgroup.leave().unwrap();
        assert_eq!(fs::read_to_string(base.path().join("cgroup.procs")).unwrap(), "0");
        assert_eq!(cgroup.broken(), None);
        fs::write(file("memory.events"), "oom 1\noom_kill 1\n").unwrap();
        assert_eq!(cgroup.broken(), Some(Report::Memory));
        fs::write(file("pids.events"), "max 2\n").unwrap();
        assert_eq!(cgroup.broken(), Some(Report::Processes));
        cgroup.kill();
        assert_eq!(fs::read_to_string(file("cgroup.kill")).unwrap(), "1");
    }
}
