//! The record of what this data directory started: what may be ended when its owner is gone.
//!
//! A record names the process that started a command (the owner) and the supervisor of the
//! command, each by id and start time. It is there before the command starts, and its supervisor
//! removes it when nothing of the command is left.
//!
//! Records are not synced to the disk: they outlive every process, and a machine that goes down
//! ends what they name.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use async_trait::async_trait;
use cairn_core::id::SessionId;
use cairn_engine::performer::{Failed, Processes};
use rustix::process::{Pid, Signal, getuid};
use serde_json::{Value, json};

use super::MARK;
use super::cgroup::Cgroup;
use super::descent::{self, Process};
use super::supervisor::KILL_MAX;

/// How the name of a record ends.
const ENDING: &str = ".json";

/// The records of a data directory.
#[derive(Clone, Debug)]
pub struct Records {
    folder: PathBuf,
}

impl Records {
    /// The records in a folder, which need not exist yet.
    #[must_use]
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where a command is recorded.
    pub(super) fn path(&self, session: SessionId, token: &str) -> PathBuf {
        self.folder.join(format!("{session}-{token}{ENDING}"))
    }

    /// Records a supervisor that this process started.
    pub(super) fn add(
        &self,
        session: SessionId,
        token: &str,
        supervisor: Process,
        cgroup: Option<PathBuf>,
    ) -> io::Result<Record> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let owner = Process::own().ok_or_else(|| io::Error::other("/proc cannot be read"))?;
        let (path, place) = (self.path(session, token), Place::here(&self.folder)?);
        let record = Record { path, place, token: token.to_owned(), owner, supervisor, cgroup };
        // Others look at records at any time, and must not see half of one.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(record.to_json().to_string().as_bytes())?;
        file.persist(&record.path)?;
        Ok(record)
    }

    /// Ends what owners that are gone left running, in every session.
    pub fn end_all_left(&self) -> Result<(), Failed> {
        self.end(|_| true)
    }

    fn end(&self, wanted: impl Fn(&str) -> bool) -> Result<(), Failed> {
        let unread = |error: io::Error| {
            let folder = self.folder.display();
            still_running(format!("the records in `{folder}` cannot be read: {error}"))
        };
        let Some(records) = self.read(wanted).map_err(unread)? else { return Ok(()) };
        let here = Place::here(&self.folder).map_err(unread)?;
        let mut stuck = Vec::new();
        for record in records.iter().filter(|record| record.is_left(&here)) {
            stuck.extend(record.end());
        }
        if stuck.is_empty() {
            return Ok(());
        }
        let stuck: Vec<String> = stuck.iter().map(|one| one.pid.to_string()).collect();
        let message = format!(
            "processes of an earlier try cannot be ended: {}; end them by hand",
            stuck.join(", ")
        );
        Err(still_running(message))
    }

    /// The records with a name that is wanted; none when nothing was ever recorded.
    fn read(&self, wanted: impl Fn(&str) -> bool) -> io::Result<Option<Vec<Record>>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let mut records = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !name.ends_with(ENDING) || !wanted(name) {
                continue;
            }
            match fs::read(&path) {
                // Its supervisor removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                bytes => match serde_json::from_slice(&bytes?) {
                    Ok(value) => records.push(Record::read(&path, &value)?),
                    // It takes its place as a whole, so the machine went down since it was
                    // written, and with it what it named.
                    Err(_) => fs::remove_file(&path)?,
                },
            }
        }
        Ok(Some(records))
    }
}

#[async_trait]
impl Processes for Records {
    async fn end_left(&self, session: SessionId) -> Result<(), Failed> {
        let (records, prefix) = (self.clone(), format!("{session}-"));
        let work = move || records.end(|name| name.starts_with(&prefix));
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(still_running(error.to_string())))
    }
}

fn still_running(message: String) -> Failed {
    Failed::new("STEP_STILL_RUNNING", message)
}

/// Where ids of processes mean what they meant when they were recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    /// Since the machine started, which start times count from.
    boot: String,
    /// The namespace of the ids.
    namespace: String,
    /// The folder of the record: what was copied to another data directory is not its own.
    folder: String,
    /// Who started the processes.
    user: u32,
}

impl Place {
    fn here(folder: &Path) -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let namespace = fs::read_link("/proc/self/ns/pid")?;
        let folder = fs::metadata(folder)?;
        Ok(Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.to_string_lossy().into_owned(),
            folder: format!("{}:{}", folder.dev(), folder.ino()),
            user: getuid().as_raw(),
        })
    }
}

/// A command that was started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    path: PathBuf,
    place: Place,
    /// Random, and in the environment of all processes of the command.
    token: String,
    owner: Process,
    supervisor: Process,
    /// The folder in which its control group is.
    cgroup: Option<PathBuf>,
}

impl Record {
    /// Whether its processes are ours to end, and nobody is there any more who would.
    fn is_left(&self, here: &Place) -> bool {
        if self.place.boot != here.boot {
            // The machine was started again; nothing of it runs.
            self.remove();
            return false;
        }
        self.place == *here && !self.owner.is_alive()
    }

    /// Ends what is left of the command, and gives what does not end.
    pub(super) fn end(&self) -> Vec<Process> {
        let until = Instant::now() + KILL_MAX;
        let cgroup = self.cgroup.as_deref().map(|base| Cgroup::of(base, &self.token));
        if let Some(cgroup) = &cgroup {
            cgroup.kill();
        }
        // As long as the supervisor is there, all that it started is below it, however it hid.
        descent::kill_all(|| self.below(), until);
        if !descent::lineage().contains(&self.supervisor.pid) {
            self.supervisor.signal(Signal::KILL);
            while self.supervisor.is_alive() && Instant::now() < until {
                std::thread::yield_now();
            }
        }
        descent::kill_all(|| self.below(), until);
        if let Some(cgroup) = &cgroup {
            cgroup.remove();
        }
        let alive = [self.supervisor].into_iter().filter(|supervisor| supervisor.is_alive());
        let left: Vec<Process> = alive.chain(self.below()).collect();
        if left.is_empty() {
            self.remove();
        }
        left
    }

    /// The processes of the command, its supervisor left out.
    ///
    /// What outlived the supervisor has no parent that tells whose it is, and any process can
    /// have any id, session or group once ours are gone. The token tells: 128 random bits that
    /// were given to this command alone. It counts only together with a record of this data
    /// directory, for processes of the same user that started after the supervisor did.
    fn below(&self) -> Vec<Process> {
        let mut found = descent::marked(MARK, &self.token, self.place.user, self.supervisor.start);
        if self.supervisor.is_alive() {
            found.extend(descent::below(self.supervisor.pid));
        }
        // Cairn may be run by a command of its own, and does not end itself.
        let spared = descent::lineage();
        found.retain(|one| *one != self.supervisor && !spared.contains(&one.pid));
        found
    }

    fn remove(&self) {
        // One that stays is looked at again.
        let _ = fs::remove_file(&self.path);
    }

    fn to_json(&self) -> Value {
        let process = |one: Process| json!({"pid": one.pid.as_raw_nonzero(), "start": one.start});
        json!({
            "boot": self.place.boot,
            "cgroup": self.cgroup.as_deref().map(Path::to_string_lossy),
            "folder": self.place.folder,
            "namespace": self.place.namespace,
            "owner": process(self.owner),
            "supervisor": process(self.supervisor),
            "token": self.token,
            "user": self.place.user,
        })
    }

    fn read(path: &Path, value: &Value) -> io::Result<Self> {
        Self::from_json(path, value).ok_or_else(|| {
            let message = format!("`{}` is no record of processes", path.display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    fn from_json(path: &Path, value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        let process = |name: &str| {
            let one = value.get(name)?;
            let pid = Pid::from_raw(i32::try_from(one.get("pid")?.as_i64()?).ok()?)?;
            Some(Process { pid, start: one.get("start")?.as_u64()? })
        };
        let place = Place {
            boot: text("boot")?,
            namespace: text("namespace")?,
            folder: text("folder")?,
            user: u32::try_from(value.get("user")?.as_u64()?).ok()?,
        };
        Some(Self {
            path: path.to_owned(),
            place,
            token: text("token")?,
            owner: process("owner")?,
            supervisor: process("supervisor")?,
            cgroup: text("cgroup").map(PathBuf::from),
        })
    }
}
