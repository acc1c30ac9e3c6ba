//! `shell`: runs a command and keeps what came of it.
//!
//! A command that fails has an outcome like any other: its exit code. The process gets a
//! group of its own, an environment that holds only what it is given and the little that
//! programs cannot do without, and an end when its time is over.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::settings;

/// How much of each stream is kept: its end, where programs say what went wrong.
const KEPT_MAX: usize = 16 << 10;
/// How much of the output is told in the notes.
const TOLD_MAX: usize = 2048;
/// What a command inherits.
const INHERITED: [&str; 8] = ["HOME", "LANG", "LC_ALL", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

pub(crate) struct Shell;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// The program and its arguments.
    command: Vec<String>,
    /// Where, from the workspace.
    cwd: Option<PathBuf>,
    /// Variables to set.
    #[serde(default)]
    env: BTreeMap<String, Value>,
    /// What the command reads.
    stdin: Option<Value>,
    /// How long it may take.
    timeout_ms: u64,
}

#[async_trait]
impl Performer for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        let begun = Instant::now();
        let child = spawn(&input, ctx)?;
        let done = finish(child, &input).await?;
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(done.outcome(&input.command, duration_ms))
    }
}

fn spawn(input: &Input, ctx: &Ctx) -> Result<Child, Failed> {
    let (program, arguments) =
        input.command.split_first().ok_or_else(|| Failed("there is no command".into()))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().process_group(0).kill_on_drop(true);
    command.stdin(if input.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in INHERITED {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.env("CAIRN_IDEMPOTENCY_KEY", ctx.idempotency_key.hex());
    command.envs(input.env.iter().map(|(name, value)| (name, text(value))));
    if let Some(folder) = folder(input.cwd.as_deref(), ctx)? {
        command.current_dir(folder);
    }
    command.spawn().map_err(|error| Failed(format!("`{program}` cannot be started: {error}")))
}

/// Where the command runs: in the workspace or below it.
fn folder(cwd: Option<&Path>, ctx: &Ctx) -> Result<Option<PathBuf>, Failed> {
    let Some(cwd) = cwd else { return Ok(ctx.workspace.clone()) };
    let inner = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !cwd.components().all(inner) {
        return Err(Failed(format!("`{}` leaves the workspace", cwd.display())));
    }
    Ok(Some(ctx.workspace.clone().unwrap_or_default().join(cwd)))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What came of a process.
struct Done {
    /// None when its time was over.
    status: Option<ExitStatus>,
    stdout: Tail,
    stderr: Tail,
}

async fn finish(mut child: Child, input: &Input) -> Result<Done, Failed> {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let (Some(mut pipe), Some(given)) = (stdin, &input.stdin) {
            // A command that does not read to the end is not at fault.
            let _ = pipe.write_all(text(given).as_bytes()).await;
        }
    };
    let whole = async {
        let ((), stdout, stderr) = tokio::join!(feed, tail(stdout), tail(stderr));
        (child.wait().await, stdout, stderr)
    };
    let limit = Duration::from_millis(input.timeout_ms);
    let ended = tokio::time::timeout(limit, whole).await;
    // Whatever it left behind goes with it.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    match ended {
        Ok((Ok(status), stdout, stderr)) => Ok(Done { status: Some(status), stdout, stderr }),
        Ok((Err(error), ..)) => Err(Failed(format!("waiting for the command: {error}"))),
        Err(_) => Ok(Done { status: None, stdout: Tail::default(), stderr: Tail::default() }),
    }
}

/// The end of a stream.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    dropped: u64,
}

async fn tail(stream: Option<impl AsyncRead + Unpin>) -> Tail {
    let mut tail = Tail::default();
    let Some(mut stream) = stream else { return tail };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        tail.bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let over = tail.bytes.len().saturating_sub(KEPT_MAX);
        tail.bytes.drain(..over);
        tail.dropped += u64::try_from(over).unwrap_or_default();
    }
    tail
}

impl Tail {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Done {
    fn outcome(&self, command: &[String], duration_ms: u64) -> Outcome {
        let code = self.status.and_then(|status| status.code());
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        let output = json!({
            "duration_ms": duration_ms,
            "exit_code": code,
            "ok": code == Some(0),
            "stderr": stderr,
            "stdout": stdout,
            "timed_out": self.status.is_none(),
            "truncated": self.stdout.dropped + self.stderr.dropped > 0,
        });
        let ended = match (self.status, code) {
            (None, _) => "was stopped when its time was over".to_owned(),
            (Some(_), Some(code)) => format!("ended with exit code {code}"),
            (Some(_), None) => "was ended by a signal".to_owned(),
        };
        let shown = match command {
            [program, flag, line] if program.ends_with("sh") && flag == "-c" => line.clone(),
            other => other.join(" "),
        };
        let mut notes = format!("`{shown}` {ended} after {duration_ms} ms.");
        for (name, text) in [("stdout", &stdout), ("stderr", &stderr)] {
            let text = text.trim();
            if !text.is_empty() {
                let from = text.ceil_char_boundary(text.len().saturating_sub(TOLD_MAX));
                let cut = if from > 0 { "…" } else { "" };
                let end = text.get(from..).unwrap_or_default();
                let fence = fence(end);
                notes.push_str(&format!("\n\n{name}:\n{fence}\n{cut}{end}\n{fence}"));
            }
        }
        Outcome { output, notes, ends: false }
    }
}

/// A fence that is longer than any inside.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use cairn_core::digest::Digest;

    use super::*;

    async fn run(line: &str, more: Value) -> Result<Outcome, Failed> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        let mut config = json!({"command": ["sh", "-c", line], "timeoutMs": 5_000});
        let members = config.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let ctx =
            Ctx { workspace: Some(folder.path().to_owned()), idempotency_key: Digest::of(b"key") };
        Shell.perform(config, &ctx).await
    }

    #[tokio::test]
    async fn a_command_has_its_exit_code_and_both_streams() {
        let done = run("echo out; echo err >&2; exit 3", json!({})).await.unwrap();
        assert_eq!(done.output.get("exit_code"), Some(&json!(3)));
        assert_eq!(done.output.get("ok"), Some(&json!(false)));
        assert_eq!(done.output.get("stdout"), Some(&json!("out\n")));
        assert_eq!(done.output.get("stderr"), Some(&json!("err\n")));
        assert!(done.notes.contains("exit code 3") && done.notes.contains("err"), "{}", done.notes);
    }

    #[tokio::test]
    async fn it_gets_what_it_is_given_and_little_else() {
        let given = json!({"env": {"N": 7, "T": "x y"}, "stdin": "in", "cwd": "inner"});
        let done = run("cat; echo \":$N:$T:$(basename $PWD):$CAIRN_HOME\"; env | wc -l", given);
        let done = done.await.unwrap();
        let out = done.output.get("stdout").unwrap().as_str().unwrap();
        assert!(out.starts_with("in:7:x y:inner:\n"), "{out}");
        let key = run("echo $CAIRN_IDEMPOTENCY_KEY", json!({})).await.unwrap();
        let key = key.output.get("stdout").unwrap().as_str().unwrap().trim().to_owned();
        assert_eq!(key, Digest::of(b"key").hex());
    }

    #[tokio::test]
    async fn its_time_is_limited_and_so_is_that_of_its_children() {
        let begun = Instant::now();
        let line = "sleep 60 & sleep 60";
        let done = run(line, json!({"timeoutMs": 100})).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(done.output.get("timed_out"), Some(&json!(true)));
        assert_eq!(done.output.get("exit_code"), Some(&Value::Null));
    }

    #[tokio::test]
    async fn a_long_output_keeps_its_end() {
        let done = run("yes line | head -c 300000; echo last", json!({})).await.unwrap();
        let out = done.output.get("stdout").unwrap().as_str().unwrap();
        assert!(out.len() <= KEPT_MAX && out.ends_with("last\n"));
        assert_eq!(done.output.get("truncated"), Some(&json!(true)));
        assert!(done.notes.len() < 4096);
    }

    #[tokio::test]
    async fn it_stays_inside_its_workspace() {
        for cwd in ["..", "/etc", "inner/../.."] {
            let error = run("pwd", json!({"cwd": cwd})).await.unwrap_err();
            assert!(error.0.contains("leaves the workspace"), "{error}");
        }
    }
}
