//! What other processes say to the runs of a session that this one owns.
//!
//! The owner of a session listens on a socket of its own in the data directory. A line of
//! JSON asks, a line of JSON answers.

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::{Answer, Command, Verdict};
use cairn_core::id::{ChangeId, RunId, SessionId};
use cairn_core::text::Slug;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use super::Inner;
use super::hand::log::is_telling;
use super::lane::Lane;
use crate::error::{Error, Result};

/// How long the path of a socket may be.
const PATH_MAX: usize = 107;
/// How long a line may be.
const LINE_MAX: u64 = 1 << 20;
/// How long the other side may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long somebody is told what happens to a run.
const FOLLOWED_MAX: Duration = Duration::from_secs(120);

/// Where the owner of a session listens.
pub(super) fn path(folder: &Path, session: SessionId) -> PathBuf {
    // The path of a socket is short, so the prefix of the id is left out.
    let name = session.to_string();
    folder.join(name.trim_start_matches("sess_")).with_extension("sock")
}

/// Whether the owner of a session listens; none where nobody could.
pub(super) async fn is_heard(folder: &Path, session: SessionId) -> Option<bool> {
    let path = path(folder, session);
    if path.as_os_str().len() > PATH_MAX {
        return None;
    }
    Some(UnixStream::connect(path).await.is_ok())
}

/// Hears what other processes say, for as long as the lane is there.
pub(super) fn listen(
    folder: &Path,
    lane: Lane,
    inner: Weak<Inner>,
) -> Option<tokio::task::AbortHandle> {
    std::fs::create_dir_all(folder).ok()?;
    let path = path(folder, lane.session);
    // Whoever listened there before is gone: the session is ours.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).ok()?;
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (lane, inner) = (lane.clone(), inner.clone());
            tokio::spawn(async move {
                let _ = tokio::time::timeout(FOLLOWED_MAX, hear(stream, &lane, &inner)).await;
            });
        }
    });
    Some(task.abort_handle())
}

async fn hear(stream: UnixStream, lane: &Lane, inner: &Weak<Inner>) -> std::io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut line = String::new();
    let mut from = BufReader::new(from.take(LINE_MAX));
    tokio::time::timeout(PATIENCE, from.read_line(&mut line)).await??;
    if let Some(run) = followed(&line) {
        return tokio::select! {
            told = tell_on(&mut to, run, inner) => told,
            // Whoever has heard enough closes the connection.
            _ = from.read_u8() => Ok(()),
        };
    }
    if let Some(asked) = Begin::read(&line) {
        let answer = match inner.upgrade() {
            Some(inner) => match inner.begin_for(asked).await {
                Ok(()) => json!({"ok": true}),
                Err(error) => json!({"code": error.code(), "message": error.to_string()}),
            },
            None => return Ok(()),
        };
        return to.write_all(format!("{answer}\n").as_bytes()).await;
    }
    let answer = match read(&line) {
        Some((run, command)) => {
            match tokio::time::timeout(PATIENCE, lane.tell(run, command)).await? {
                Ok(()) => json!({"ok": true}),
                Err(error) => json!({"code": error.code(), "message": error.to_string()}),
            }
        }
        None => json!({"code": "VALIDATION_ERROR", "message": "the command is not one I know"}),
    };
    to.write_all(format!("{answer}\n").as_bytes()).await
}

/// A run that another process asks for, of the workflow as it knows it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Begin {
    pub(super) run: RunId,
    pub(super) workflow: String,
    pub(super) hash: String,
    pub(super) trigger: Option<Slug>,
    /// What templates see as `event`.
    pub(super) event: Value,
}

impl Begin {
    fn written(&self) -> Value {
        json!({
            "do": "begin", "run": self.run.to_string(), "workflow": self.workflow,
            "hash": self.hash, "trigger": self.trigger, "event": self.event,
        })
    }

    fn read(line: &str) -> Option<Self> {
        let asked: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| asked.get(name).and_then(Value::as_str);
        Some(Self {
            run: text("do").filter(|what| *what == "begin").and(text("run"))?.parse().ok()?,
            workflow: text("workflow")?.to_owned(),
            hash: text("hash")?.to_owned(),
            trigger: text("trigger").map(str::parse).transpose().ok()?,
            event: asked.get("event")?.clone(),
        })
    }
}

/// Has a run begun by another process; says whether it was. None when there is no socket.
pub(super) async fn begin(folder: &Path, session: SessionId, asked: &Begin) -> Option<bool> {
    if !path(folder, session).exists() {
        return None;
    }
    Some(matches!(say(folder, session, &asked.written()).await, Some(Ok(()))))
}

/// The run that somebody wants to follow.
fn followed(line: &str) -> Option<RunId> {
    let asked: Value = serde_json::from_str(line).ok()?;
    let is_that = asked.get("do").and_then(Value::as_str) == Some("follow");
    asked.get("run").filter(|_| is_that)?.as_str()?.parse().ok()
}

/// Writes a line now, and one whenever something happens to a run.
async fn tell_on(to: &mut OwnedWriteHalf, run: RunId, inner: &Weak<Inner>) -> std::io::Result<()> {
    let Some(mut watch) = inner.upgrade().map(|inner| inner.watchers.watch()) else {
        return Ok(());
    };
    to.write_all(b"{\"ok\":true}\n").await?;
    while let Some(told) = watch.next().await {
        let mut own = told.events.iter().filter(|event| event.scope.run() == Some(run));
        if own.any(|event| is_telling(&event.data)) {
            to.write_all(b"{\"moved\":true}\n").await?;
        }
    }
    Ok(())
}

/// What another process tells of a run.
pub(super) struct Told(
    Lines<BufReader<OwnedReadHalf>>,
    #[expect(dead_code, reason = "it closes the connection")] OwnedWriteHalf,
);

impl Told {
    /// Waits until something happens; no when nobody tells any more.
    pub(super) async fn next(&mut self) -> bool {
        matches!(self.0.next_line().await, Ok(Some(_)))
    }
}

/// Follows a run of another process from now on; none when nobody listens there.
pub(super) async fn follow(folder: &Path, session: SessionId, run: RunId) -> Option<Told> {
    let asked = async {
        let stream = UnixStream::connect(path(folder, session)).await?;
        let (from, mut to) = stream.into_split();
        let line = json!({"do": "follow", "run": run.to_string()});
        to.write_all(format!("{line}\n").as_bytes()).await?;
        let mut told = Told(BufReader::new(from).lines(), to);
        // Once this is answered, nothing is missed.
        let listens = told.next().await;
        std::io::Result::Ok(listens.then_some(told))
    };
    tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?
}

/// Says something to a run of another process; none when nobody listens there.
pub(super) async fn tell(
    folder: &Path,
    session: SessionId,
    run: RunId,
    command: &Command,
) -> Option<Result<()>> {
    say(folder, session, &written(run, command)?).await
}

/// Says a line to the owner of a session, and hears what it says to it.
async fn say(folder: &Path, session: SessionId, line: &Value) -> Option<Result<()>> {
    let asked = async {
        let stream = UnixStream::connect(path(folder, session)).await?;
        let (from, mut to) = stream.into_split();
        to.write_all(format!("{line}\n").as_bytes()).await?;
        let mut answer = String::new();
        BufReader::new(from.take(LINE_MAX)).read_line(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?;
    let answer: Value = serde_json::from_str(&answer).ok()?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    if answer.get("ok").is_some() {
        return Some(Ok(()));
    }
    Some(Err(Error::Told { code: text("code").to_owned(), message: text("message").to_owned() }))
}

/// A command as one line.
fn written(run: RunId, command: &Command) -> Option<Value> {
    let asked = match command {
        Command::Cancel { by, reason } => json!({"do": "cancel", "by": by, "reason": reason}),
        Command::Pause { change, by } => {
            json!({"do": "pause", "by": by, "change": change.to_string()})
        }
        Command::Resume { change, by } => {
            json!({"do": "resume", "by": by, "change": change.to_string()})
        }
        Command::Answer { task, by, answer } => json!({
            "do": "answer", "by": by, "task": task.to_string(),
            "approved": answer.verdict == Verdict::Approved, "values": answer.values,
        }),
        Command::Acknowledge { instance, output } => {
            json!({"do": "acknowledge", "instance": instance, "output": output})
        }
        Command::Resolve { instance, by, decision } => {
            json!({"do": "resolve", "by": by, "instance": instance, "decision": decision})
        }
        Command::ChildFinished { child, status, output } => json!({
            "do": "child_finished", "child": child.to_string(), "status": status, "output": output,
        }),
        _ => return None,
    };
    let mut asked = asked;
    asked.as_object_mut()?.insert("run".to_owned(), json!(run.to_string()));
    Some(asked)
}

fn read(line: &str) -> Option<(RunId, Command)> {
    let asked: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| asked.get(name).and_then(Value::as_str);
    let value = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let by = || Some(text("by")?.to_owned());
    let change = || text("change")?.parse::<ChangeId>().ok();
    let instance = || text("instance")?.parse().ok();
    let command = match text("do")? {
        "cancel" => Command::Cancel { by: by()?, reason: text("reason")?.to_owned() },
        "pause" => Command::Pause { change: change()?, by: by()? },
        "resume" => Command::Resume { change: change()?, by: by()? },
        "answer" => {
            let approved = asked.get("approved").and_then(Value::as_bool)?;
            let verdict = if approved { Verdict::Approved } else { Verdict::Rejected };
            let answer = Answer { verdict, values: value("values") };
            Command::Answer { task: text("task")?.parse().ok()?, by: by()?, answer }
        }
        "acknowledge" => Command::Acknowledge { instance: instance()?, output: value("output") },
        "resolve" => {
            let decision: InterruptDecision = serde_json::from_value(value("decision")).ok()?;
            Command::Resolve { instance: instance()?, by: by()?, decision }
        }
        "child_finished" => Command::ChildFinished {
            child: text("child")?.parse().ok()?,
            status: serde_json::from_value(value("status")).ok()?,
            output: value("output"),
        },
        _ => return None,
    };
    Some((text("run")?.parse().ok()?, command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_asked_for_in_one_line() {
        let mut asked = Begin {
            run: RunId::from_bits(3),
            workflow: "project.review".to_owned(),
            hash: "sha256:x".to_owned(),
            trigger: Some("manual".parse().unwrap()),
            event: json!({"payload": {"n": 1}}),
        };
        assert_eq!(Begin::read(&asked.written().to_string()).as_ref(), Some(&asked));
        asked.trigger = None;
        let line = asked.written().to_string();
        assert_eq!(Begin::read(&line).as_ref(), Some(&asked));
        assert_eq!((read(&line), followed(&line)), (None, None));
        assert_eq!(Begin::read(&line.replace("run_", "x_")), None);
    }

    #[test]
    fn what_is_said_is_heard() {
        let (run, by) = (RunId::from_bits(3), "ada".to_owned());
        let change = ChangeId::from_bits(4);
        let instance = || "each@2::fetch".parse().unwrap();
        let answer = Answer { verdict: Verdict::Rejected, values: json!({"why": "no"}) };
        for command in [
            Command::Cancel { by: by.clone(), reason: "enough".into() },
            Command::Pause { change, by: by.clone() },
            Command::Resume { change, by: by.clone() },
            Command::Answer { task: cairn_core::id::TaskId::from_bits(5), by: by.clone(), answer },
            Command::Acknowledge { instance: instance(), output: json!([1]) },
            Command::Resolve { instance: instance(), by, decision: InterruptDecision::Skip },
            Command::ChildFinished {
                child: run,
                status: cairn_core::event::engine::EndStatus::Failed,
                output: json!(null),
            },
        ] {
            let line = written(run, &command).unwrap().to_string();
            assert_eq!(read(&line), Some((run, command)), "{line}");
        }
        assert_eq!(written(run, &Command::Recover), None, "that is nobody else's to say");
        for line in ["", "{}", r#"{"do":"cancel"}"#, r#"{"do":"recover","run":"run_x"}"#] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
