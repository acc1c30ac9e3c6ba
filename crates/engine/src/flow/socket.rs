//! What other processes say to the runs of a session that this one owns.
//!
//! The owner of a session listens on a socket of its own in the data directory. A line of
//! JSON asks, a line of JSON answers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::{Answer, Command, Verdict};
use cairn_core::id::{ChangeId, RunId, SessionId};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::lane::Lane;
use crate::error::{Error, Result};

/// How long a line may be.
const LINE_MAX: u64 = 1 << 20;
/// How long the other side may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the owner of a session listens.
pub(super) fn path(folder: &Path, session: SessionId) -> PathBuf {
    // The path of a socket may have 107 bytes, so the prefix of the id is left out.
    let name = session.to_string();
    folder.join(name.trim_start_matches("sess_")).with_extension("sock")
}

/// Hears what other processes say, for as long as the lane is there.
pub(super) fn listen(folder: &Path, lane: Lane) -> Option<tokio::task::AbortHandle> {
    std::fs::create_dir_all(folder).ok()?;
    let path = path(folder, lane.session);
    // Whoever listened there before is gone: the session is ours.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).ok()?;
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let lane = lane.clone();
            tokio::spawn(async move {
                let _ = tokio::time::timeout(PATIENCE, hear(stream, &lane)).await;
            });
        }
    });
    Some(task.abort_handle())
}

async fn hear(stream: UnixStream, lane: &Lane) -> std::io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut line = String::new();
    BufReader::new(from.take(LINE_MAX)).read_line(&mut line).await?;
    let answer = match read(&line) {
        Some((run, command)) => match lane.tell(run, command).await {
            Ok(()) => json!({"ok": true}),
            Err(error) => json!({"code": error.code(), "message": error.to_string()}),
        },
        None => json!({"code": "VALIDATION_ERROR", "message": "the command is not one I know"}),
    };
    to.write_all(format!("{answer}\n").as_bytes()).await
}

/// Says something to a run of another process; none when nobody listens there.
pub(super) async fn tell(
    folder: &Path,
    session: SessionId,
    run: RunId,
    command: &Command,
) -> Option<Result<()>> {
    let line = written(run, command)?;
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
