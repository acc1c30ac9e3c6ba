//! What is ended when the owner of a command is gone, and what is left alone: whose a process
//! is, its record in the data directory says and nothing else.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use cairn_core::id::SessionId;
use cairn_engine::performer::{Performers, Processes as _};
use cairn_steps::catalog;
use cairn_steps::process::Records;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::shell::{runs, unique_seconds};
use crate::world::{ctx, settings, until};

/// The session of [`ctx`].
const SESSION: SessionId = SessionId::from_bits(1);
/// Commands that leave something behind, however they hide it.
const HIDDEN: [&str; 3] =
    ["sleep {}", "setsid sleep {} & sleep 50", "(setsid sh -c 'sleep {} & exit' &); sleep 50"];

/// A command under way, as a data directory knows it.
struct Started {
    folder: tempfile::TempDir,
    performers: Performers,
    mark: String,
    /// It goes on until it is dropped.
    work: JoinHandle<()>,
}

impl Started {
    async fn new(line: &str) -> Self {
        let (folder, seconds) = (tempfile::tempdir().unwrap(), unique_seconds());
        let performers = catalog::all(&settings(folder.path()));
        let (shell, line) =
            (performers.get("shell").cloned().unwrap(), line.replace("{}", &seconds));
        let work = tokio::spawn(async move {
            // What comes of it is of no interest: it is to be ended.
            drop(shell.perform(json!({"command": line}), &ctx()).await);
        });
        let mark = format!("sleep\0{seconds}");
        until("the command runs", || runs(&mark)).await;
        Self { folder, performers, mark, work }
    }

    fn record(&self) -> PathBuf {
        let all = records(self.folder.path());
        assert_eq!(all.len(), 1, "{all:?}");
        all.into_iter().next().unwrap()
    }

    /// Changes what its record says.
    fn change(&self, pointer: &str, change: impl Fn(&Value) -> Value) {
        let path = self.record();
        let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let member = record.pointer_mut(pointer).unwrap();
        *member = change(member);
        // Whole, as it is written.
        let draft = path.with_extension("draft");
        fs::write(&draft, record.to_string()).unwrap();
        fs::rename(draft, path).unwrap();
    }

    /// Makes it what an owner that is gone left behind.
    fn orphan(&self) {
        self.change("/owner/start", earlier);
    }

    fn signal_supervisor(&self, signal: &str) {
        let record: Value = serde_json::from_slice(&fs::read(self.record()).unwrap()).unwrap();
        let pid = record["supervisor"]["pid"].to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    async fn end(self) {
        self.work.abort();
        until("it ends when it is called off", || !runs(&self.mark)).await;
    }
}

fn records(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder.join("data/processes")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

fn earlier(start: &Value) -> Value {
    json!(start.as_u64().unwrap() - 1)
}

fn other(text: &Value) -> Value {
    json!(format!("{}-other", text.as_str().unwrap()))
}

/// A process that has nothing to do with any data directory.
fn stranger(token: &str) -> Child {
    Command::new("sleep").arg("60").env("CAIRN_RUN", token).spawn().unwrap()
}

/// Ends a process that was to be left alone, and sees that nobody did it before.
fn assert_alive(mut child: Child) {
    assert_eq!(child.try_wait().unwrap(), None, "it is left alone");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[tokio::test]
async fn a_command_is_recorded_as_long_as_it_runs() {
    let started = Started::new(HIDDEN[0]).await;
    let record: Value = serde_json::from_slice(&fs::read(started.record()).unwrap()).unwrap();
    assert_eq!(record["owner"]["pid"], json!(std::process::id()));
    let folder = started.folder.path().to_owned();
    started.work.abort();
    until("the record goes when the command was called off", || records(&folder).is_empty()).await;
    drop(started);

    let folder = tempfile::tempdir().unwrap();
    let performers = catalog::all(&settings(folder.path()));
    for line in ["true", "exit 3", "kill -9 $$", "kill -9 $PPID; sleep 50"] {
        let shell = performers.get("shell").unwrap();
        shell.perform(json!({"command": line}), &ctx()).await.unwrap();
        assert_eq!(records(folder.path()), [] as [PathBuf; 0], "{line}");
    }
    let shell = performers.get("shell").unwrap();
    shell.perform(json!({"command": ["no-such-program"]}), &ctx()).await.unwrap_err();
    assert_eq!(records(folder.path()), [] as [PathBuf; 0]);
}

// case: process.survivors
#[tokio::test]
async fn what_an_owner_left_is_ended_however_it_hides() {
    for line in HIDDEN {
        for is_supervised in [true, false] {
            let started = Started::new(line).await;
            if is_supervised {
                started.orphan();
            } else {
                // One that stands still does not see that its owner is gone.
                started.signal_supervisor("-STOP");
                started.work.abort();
                started.orphan();
                started.signal_supervisor("-KILL");
            }
            started.performers.end_left(SESSION).await.unwrap();
            assert!(!runs(&started.mark), "{line}, supervised: {is_supervised}");
            assert_eq!(records(started.folder.path()), [] as [PathBuf; 0], "{line}");
        }
    }
}

/// How to change a member of a record.
type Change = (&'static str, fn(&Value) -> Value);

// case: process.not-ours
#[tokio::test]
async fn what_is_not_proven_ours_is_left_alone() {
    let foreign: [(&str, &[Change]); 6] = [
        ("the owner is alive", &[]),
        ("another data directory", &[("/owner/start", earlier), ("/folder", other)]),
        (
            "another user",
            &[("/owner/start", earlier), ("/user", |user| json!(user.as_u64().unwrap() + 1))],
        ),
        ("another namespace of ids", &[("/owner/start", earlier), ("/namespace", other)]),
        ("the machine was started since", &[("/owner/start", earlier), ("/boot", other)]),
        (
            "the id of the supervisor is another's by now",
            &[("/owner/start", earlier), ("/supervisor/start", earlier), ("/token", other)],
        ),
    ];
    for (why, changes) in foreign {
        let started = Started::new(HIDDEN[0]).await;
        for (pointer, change) in changes {
            started.change(pointer, change);
        }
        started.performers.end_left(SESSION).await.unwrap();
        Records::new(started.folder.path().join("data/processes")).end_all_left().unwrap();
        assert!(runs(&started.mark), "{why}");
        started.end().await;
    }
}

#[tokio::test]
async fn only_the_session_that_is_taken_over_loses_its_processes() {
    let started = Started::new(HIDDEN[0]).await;
    started.orphan();
    started.performers.end_left(SessionId::from_bits(2)).await.unwrap();
    assert!(runs(&started.mark));
    started.performers.end_left(SESSION).await.unwrap();
    assert!(!runs(&started.mark));
}

#[tokio::test]
async fn a_variable_alone_makes_nobody_ours() {
    let started = Started::new(HIDDEN[0]).await;
    let strangers = [stranger("x"), stranger("")];
    started.orphan();
    let records = Records::new(started.folder.path().join("data/processes"));
    records.end_left(SESSION).await.unwrap();
    records.end_all_left().unwrap();
    strangers.into_iter().for_each(assert_alive);
}

#[tokio::test]
async fn a_process_that_was_there_before_is_not_ours_whatever_its_token() {
    let early = stranger("a-token");
    let started = Started::new(HIDDEN[0]).await;
    started.orphan();
    started.change("/token", |_| json!("a-token"));
    // Start times are counted in hundredths of a second.
    started.change("/supervisor/start", |start| json!(start.as_u64().unwrap() + 1_000));
    started.performers.end_left(SESSION).await.unwrap();
    assert_alive(early);
    assert!(runs(&started.mark), "the record names another supervisor");
    started.end().await;
}

#[tokio::test]
async fn an_id_that_was_given_to_another_process_is_not_touched() {
    let stranger = stranger("x");
    let started = Started::new(HIDDEN[0]).await;
    let id = stranger.id();
    started.change("/supervisor/pid", |_| json!(id));
    // Nothing that tests start is as old as the machine.
    started.change("/supervisor/start", |_| json!(1));
    started.orphan();
    started.performers.end_left(SESSION).await.unwrap();
    assert_alive(stranger);
    assert!(!runs(&started.mark), "the command is known by its token");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_keeps_a_try_from_being_repeated() {
    let started = Started::new(HIDDEN[0]).await;
    let record = started.record();
    let whole = fs::read(&record).unwrap();
    fs::write(&record, "{}").unwrap();
    let failed = started.performers.end_left(SESSION).await.unwrap_err();
    assert_eq!(failed.code, "STEP_STILL_RUNNING");
    assert!(failed.message.contains("is no record of processes"), "{failed}");
    fs::write(&record, whole).unwrap();
    started.end().await;
}

/// What a machine that went down can leave of a record.
#[tokio::test]
async fn half_a_record_names_nothing_and_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let records = Records::new(folder.path().to_owned());
    for left in ["", "\0\0\0\0", "{\"boot\":"] {
        let path = folder.path().join(format!("{SESSION}-1.json"));
        fs::write(&path, left).unwrap();
        records.end_left(SESSION).await.unwrap();
        assert!(!path.exists(), "{left:?} is looked at again and again");
    }
    // What is whole and says something else is another matter.
    fs::write(folder.path().join(format!("{SESSION}-1.json")), "{}").unwrap();
    let refused = records.end_left(SESSION).await.unwrap_err();
    assert!(refused.message.contains("is no record of processes"), "{}", refused.message);
}
