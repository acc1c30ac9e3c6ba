//! One worker process, seen from the outside.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Instant;

use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::error::{Code, Error};
use crate::frame;

/// The signal that ends a process whose time on the processor is over.
const SIGXCPU: i32 = 24;
const SIGKILL: i32 = 9;

/// One worker process.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Whether it has a network of its own, with nothing in it.
    pub(crate) is_apart: bool,
    /// Since when it has nothing to do.
    pub(crate) since: Instant,
}

impl Process {
    /// Starts a process, and waits until it has limited itself.
    pub(crate) async fn start(program: &Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| {
            let program = program.display();
            Error::new(Code::Crash, format!("no worker could be started from {program}: {error}"))
        };
        let mut child = Command::new(program)
            .arg0(crate::NAME)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::new(Code::Crash, "a worker has no pipes"));
        };
        let Ok(hello) = frame::receive(&mut output).await else {
            return Err(ended(&mut child).await);
        };
        let is_apart = hello.get("apart").and_then(Value::as_bool).unwrap_or_default();
        Ok(Self { child, input, output, is_apart, since: Instant::now() })
    }

    /// Hands it a job, and waits for the answer.
    pub(crate) async fn ask(&mut self, job: &[u8]) -> Result<Value, Error> {
        let answer = match frame::send(&mut self.input, job).await {
            Ok(()) => frame::receive(&mut self.output).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => read(answer),
            Err(_) => Err(ended(&mut self.child).await),
        }
    }

    /// Whether it can be given another job.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

fn read(answer: Value) -> Result<Value, Error> {
    let Value::Object(mut fields) = answer else {
        return Err(Error::new(Code::Crash, "the worker's answer is not one"));
    };
    if let Some(value) = fields.remove("value") {
        return Ok(value);
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let code = Code::named(text("code")).unwrap_or(Code::Crash);
    Err(Error::new(code, text("message")))
}

/// Says why a process ended.
async fn ended(child: &mut Child) -> Error {
    // What a dying process says is short; the rest would be somebody's data.
    const SAID_MAX: u64 = 4 << 10;
    let mut said = Vec::new();
    if let Some(errors) = child.stderr.take() {
        let _ = errors.take(SAID_MAX).read_to_end(&mut said).await;
    }
    let _ = child.start_kill();
    match child.wait().await {
        Ok(status) => told(status, &String::from_utf8_lossy(&said)),
        Err(error) => Error::new(Code::Crash, format!("the worker is gone: {error}")),
    }
}

fn told(status: ExitStatus, said: &str) -> Error {
    if said.contains("memory allocation of") || said.contains("capacity overflow") {
        return Error::new(Code::Memory, "it takes more memory than an expression may have");
    }
    if said.contains("overflowed its stack") {
        return Error::new(Code::Crash, "it nests or calls itself deeper than can be evaluated");
    }
    match status.signal() {
        Some(SIGXCPU | SIGKILL) => Error::new(Code::Timeout, "it takes more time than it may"),
        _ => {
            let last = said.lines().last().unwrap_or_default();
            Error::new(Code::Crash, format!("the worker ended with {status}: {last}"))
        }
    }
}
