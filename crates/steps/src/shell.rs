//! `shell`: runs a command and keeps what came of it.
//!
//! A command that fails has an outcome like any other: its exit code. The process gets a
//! group of its own, an environment that holds only what it is given and the little that
//! programs cannot do without, and an end when its time is over.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::path::{Component, Path, PathBuf};
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cairn_core::catalog::StepType;
use cairn_engine::performer::{Ctx, Failed, Outcome, Performer};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::{kinds, settings};

/// How much of each stream is kept: its end, where programs say what went wrong.
const KEPT_MAX: usize = 16 << 10;
/// How much of each stream is told in the notes, which hold 4,096 bytes with all they tell.
const TOLD_MAX: usize = 1400;
/// The same with the fences around it.
const FENCED_MAX: usize = 1600;
/// How much of the command is told.
const COMMAND_MAX: usize = 200;
/// How long the pipes are read after the end.
const GRACE: Duration = Duration::from_millis(250);
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
    fn kind(&self) -> StepType {
        kinds::of("shell")
    }

    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed> {
        let input: Input = settings::read(config)?;
        let begun = Instant::now();
        let tree = spawn(&input, ctx)?;
        let done = finish(tree, &input).await?;
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(done.outcome(&input.command, duration_ms))
    }
}

/// A command and all that it started, which end when this is dropped.
struct Tree {
    leader: Child,
    /// Its process group, until that was killed.
    group: Option<Pid>,
}

impl Tree {
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // There may be nobody left in it.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(input: &Input, ctx: &Ctx) -> Result<Tree, Failed> {
    let (program, arguments) = input
        .command
        .split_first()
        .ok_or_else(|| Failed::new("SHELL_COMMAND", "there is no command"))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().process_group(0).kill_on_drop(true);
    command.stdin(if input.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in INHERITED {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.env("CAIRN_IDEMPOTENCY_KEY", ctx.idempotency_key.hex());
    command.envs(input.env.iter().map(|(name, value)| (name, text(value))));
    command.current_dir(folder(input.cwd.as_deref(), ctx)?);
    let leader = command.spawn();
    let leader = leader.map_err(|error| {
        Failed::new("SHELL_START", format!("`{program}` cannot be started: {error}"))
    })?;
    let group = leader.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    Ok(Tree { leader, group })
}

/// Where the command runs: in the workspace or below it, and nowhere else.
fn folder(cwd: Option<&Path>, ctx: &Ctx) -> Result<PathBuf, Failed> {
    let workspace = ctx.workspace.clone().ok_or_else(|| {
        Failed::new("SHELL_WORKSPACE", "the run has no workspace; start it with `workspacePath`")
    })?;
    let Some(cwd) = cwd else { return Ok(workspace) };
    let inner = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !cwd.components().all(inner) {
        return Err(Failed::new(
            "SHELL_FOLDER",
            format!("`{}` leaves the workspace", cwd.display()),
        ));
    }
    Ok(workspace.join(cwd))
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

async fn finish(mut tree: Tree, input: &Input) -> Result<Done, Failed> {
    let leader = &mut tree.leader;
    let pipes = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take());
    let (mut stdout, mut stderr) = (Tail::default(), Tail::default());
    let limit = Duration::from_millis(input.timeout_ms);
    let ended = {
        let mut streams = Some(Box::pin(async {
            tokio::join!(feed(pipes.0, input), stdout.follow(pipes.1), stderr.follow(pipes.2));
        }));
        // The leader alone says when it is over: what it left behind may hold the pipes.
        let ended = timeout(limit, beside(tree.leader.wait(), &mut streams)).await;
        tree.kill();
        // What was printed last is still in the pipes. Whoever left the group can hold them
        // open, and is not waited for.
        let rest = async {
            let _ = beside(tree.leader.wait(), &mut streams).await;
            if let Some(streams) = &mut streams {
                streams.await;
            }
        };
        let _ = timeout(GRACE, rest).await;
        ended
    };
    let status = match ended {
        Ok(Ok(status)) => Some(status),
        Ok(Err(error)) => {
            return Err(Failed::new("SHELL_WAIT", format!("waiting for the command: {error}")));
        }
        Err(_) => None,
    };
    Ok(Done { status, stdout, stderr })
}

/// Waits for something while something else goes on, as long as that does.
async fn beside<T>(
    main: impl Future<Output = T>,
    other: &mut Option<Pin<Box<impl Future<Output = ()>>>>,
) -> T {
    let mut main = pin!(main);
    poll_fn(|cx| {
        if other.as_mut().is_some_and(|other| other.as_mut().poll(cx).is_ready()) {
            *other = None;
        }
        main.as_mut().poll(cx)
    })
    .await
}

async fn feed(pipe: Option<ChildStdin>, input: &Input) {
    if let (Some(mut pipe), Some(given)) = (pipe, &input.stdin) {
        // A command that does not read to the end is not at fault.
        let _ = pipe.write_all(text(given).as_bytes()).await;
    }
}

/// The end of a stream.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    dropped: u64,
}

impl Tail {
    /// Reads on until the stream ends. Whoever stops waiting keeps what was read.
    async fn follow(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            self.bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
            let over = self.bytes.len().saturating_sub(KEPT_MAX);
            self.bytes.drain(..over);
            self.dropped += u64::try_from(over).unwrap_or_default();
        }
    }

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
            (None, _) => "stopped when its time was over".to_owned(),
            (Some(_), Some(code)) => format!("exit code {code}"),
            (Some(_), None) => "ended by a signal".to_owned(),
        };
        let mut notes = format!("{ended} after {duration_ms} ms: {}", shown(command));
        for (name, text) in [("stdout", &stdout), ("stderr", &stderr)] {
            let text = text.trim();
            if !text.is_empty() {
                notes.push_str(&format!("\n\n{name}:\n{}", fenced(text)));
            }
        }
        Outcome::new(output, notes)
    }
}

/// A command on one line, or its beginning.
fn shown(command: &[String]) -> String {
    let whole = match command {
        [program, flag, line] if program.ends_with("sh") && flag == "-c" => line.clone(),
        other => other.join(" "),
    };
    let line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = line.get(..line.floor_char_boundary(COMMAND_MAX)).unwrap_or_default();
    let cut = if start.len() < line.len() { "…" } else { "" };
    match longest_run(start) {
        0 => format!("`{start}{cut}`"),
        run => {
            let ticks = "`".repeat(run + 1);
            format!("{ticks} {start}{cut} {ticks}")
        }
    }
}

/// The end of a text between fences that are longer than any inside.
fn fenced(text: &str) -> String {
    let mut max = TOLD_MAX;
    loop {
        let from = text.ceil_char_boundary(text.len().saturating_sub(max));
        let end = text.get(from..).unwrap_or_default();
        let fence = "`".repeat(longest_run(end).max(2) + 1);
        let over = (end.len() + 2 * fence.len()).saturating_sub(FENCED_MAX);
        if over == 0 {
            let cut = if from > 0 { "…" } else { "" };
            return format!("{fence}\n{cut}{end}\n{fence}");
        }
        // A backtick less makes both fences shorter, too.
        max -= over.div_ceil(3);
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cairn_core::digest::Digest;

    use super::*;

    async fn run(line: &str, more: Value) -> Result<Outcome, Failed> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        let mut config = json!({"command": ["sh", "-c", line], "timeoutMs": 5_000});
        let members = config.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        Shell.perform(config, &ctx(folder.path())).await
    }

    fn ctx(folder: &Path) -> Ctx {
        Ctx {
            workflow_id: "project.test".into(),
            workspace: Some(folder.to_owned()),
            idempotency_key: Digest::of(b"key"),
            timeout: Duration::from_secs(5),
            assets: std::sync::Arc::default(),
            secrets: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_command_has_its_exit_code_and_both_streams() {
        let done = run("echo out; echo err >&2; exit 3", json!({})).await.unwrap();
        assert_eq!(done.output.get("exit_code"), Some(&json!(3)));
        assert_eq!(done.output.get("ok"), Some(&json!(false)));
        assert_eq!(done.output.get("stdout"), Some(&json!("out\n")));
        assert_eq!(done.output.get("stderr"), Some(&json!("err\n")));
        assert!(done.notes.starts_with("exit code 3 after "), "{}", done.notes);
        assert!(done.notes.contains(": `echo out; echo err >&2; exit 3`\n"), "{}", done.notes);
        assert!(done.notes.ends_with("\n\nstderr:\n```\nerr\n```"), "{}", done.notes);
    }

    #[tokio::test]
    async fn it_gets_what_it_is_given_and_little_else() {
        let given = json!({"env": {"N": 7, "T": "x y"}, "stdin": "in", "cwd": "inner"});
        let done = run("cat; echo \":$N:$T:$(basename $PWD)\"", given).await.unwrap();
        assert_eq!(done.output.get("stdout"), Some(&json!("in:7:x y:inner\n")));
        // A shell would add some of its own.
        let given = json!({"command": ["env", "-0"], "env": {"N": 7, "T": "x y"}});
        let seen = run("", given).await.unwrap();
        let seen = seen.output.get("stdout").unwrap().as_str().unwrap().to_owned();
        let names = seen.split_terminator('\0').map(|set| set.split_once('=').unwrap().0);
        let names: BTreeSet<&str> = names.collect();
        let inherited = INHERITED.into_iter().filter(|name| std::env::var_os(name).is_some());
        let given = ["CAIRN_IDEMPOTENCY_KEY", "N", "T"].into_iter();
        assert_eq!(names, inherited.chain(given).collect());
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "there is more to be had");
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
    async fn what_it_leaves_behind_does_not_hold_it_up() {
        // The second one leaves the group, too, so that only the pipes know of it.
        for line in ["sleep 30 & echo started", "setsid sleep 3 & echo started"] {
            let begun = Instant::now();
            let done = run(line, json!({"timeoutMs": 20_000})).await.unwrap();
            assert!(begun.elapsed() < Duration::from_secs(3), "{line}");
            assert_eq!(done.output.get("exit_code"), Some(&json!(0)), "{line}");
            assert_eq!(done.output.get("timed_out"), Some(&json!(false)), "{line}");
            assert_eq!(done.output.get("stdout"), Some(&json!("started\n")), "{line}");
        }
    }

    #[tokio::test]
    async fn what_was_printed_before_its_time_was_over_is_kept() {
        let line = "echo half; echo why >&2; sleep 60";
        let done = run(line, json!({"timeoutMs": 1_000})).await.unwrap();
        assert_eq!(done.output.get("timed_out"), Some(&json!(true)));
        assert_eq!(done.output.get("stdout"), Some(&json!("half\n")));
        assert_eq!(done.output.get("stderr"), Some(&json!("why\n")));
    }

    #[tokio::test]
    async fn nothing_of_it_outlives_whoever_waited() {
        use std::io::Read as _;

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        // A reader of the pipe sees its end when nobody is left who could write.
        let line = "(echo up; sleep 60; echo on) > pipe & wait";
        let config = json!({"command": ["sh", "-c", line], "timeoutMs": 50_000});
        let ctx = ctx(folder.path());
        let up = tokio::task::spawn_blocking(move || {
            let mut pipe = std::fs::File::open(pipe).unwrap();
            pipe.read_exact(&mut [0; 3]).unwrap();
            pipe
        });
        let mut pipe = tokio::select! {
            ended = Shell.perform(config, &ctx) => panic!("it ended: {ended:?}"),
            up = up => up.unwrap(),
        };
        let begun = Instant::now();
        let mut rest = String::new();
        tokio::task::spawn_blocking(move || {
            pipe.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "");
        })
        .await
        .unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_long_output_keeps_its_end() {
        let done = run("yes line | head -c 300000; echo last", json!({})).await.unwrap();
        let out = done.output.get("stdout").unwrap().as_str().unwrap();
        assert!(out.len() <= KEPT_MAX && out.ends_with("last\n"));
        assert_eq!(done.output.get("truncated"), Some(&json!(true)));
    }

    #[tokio::test]
    async fn its_notes_have_room_for_all_they_tell() {
        let ticks = "head -c 9000 /dev/zero | tr '\\0' '`'";
        let both = |line: &str| format!("{line}; {line} >&2; exit 7 # {}", "`é".repeat(999));
        for line in [both("yes line | head -c 9000"), both(ticks), "`".repeat(999)] {
            let notes = run(&line, json!({})).await.unwrap().notes;
            assert!(notes.len() < 4096, "{} bytes", notes.len());
            let fence = notes.lines().last().unwrap();
            assert!(fence.starts_with("```") && fence.bytes().all(|byte| byte == b'`'), "{notes}");
            let fences = notes.lines().filter(|line| *line == fence).count();
            assert_eq!(fences % 2, 0, "{notes}");
        }
    }

    #[tokio::test]
    async fn it_stays_inside_its_workspace() {
        for cwd in ["..", "/etc", "inner/../.."] {
            let error = run("pwd", json!({"cwd": cwd})).await.unwrap_err();
            assert!(error.message.contains("leaves the workspace"), "{error}");
        }
    }
}
