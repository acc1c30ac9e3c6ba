//! Agents that are programs: started in a group of their own, read line by line, and ended with
//! all that they started.
//!
//! What they print is believed, not their exit code: some end with 0 though nothing was done,
//! and some do not end at all.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::request::{Refusal, RefusalKind, Request, Used};
use super::{Login, Means};
use crate::process::{self, Done, End, Job, Keep, Watch};

/// How long a program may take to end once it has answered.
const LINGER: Duration = Duration::from_secs(3);
/// How long a line of events may be.
const LINE_MAX: usize = 8 << 20;
/// How much a program may print.
const BYTES_MAX: u64 = 256 << 20;
/// How much of what it printed is kept to tell why it failed.
const KEPT: usize = 64 << 10;
/// How much of it is told.
const TOLD_MAX: usize = 500;
/// How long a program may take to say its version.
const VERSION_TIME: Duration = Duration::from_secs(20);

/// A program to start.
pub(super) struct Program<'a> {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// What it is given beside those of the request.
    pub(super) variables: Vec<(String, OsString)>,
    /// What it reads.
    pub(super) stdin: Vec<u8>,
    /// The request.
    pub(super) request: &'a Request,
}

/// How a program ended.
pub(super) struct Ended {
    pub(super) end: End,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ended {
    /// Why nothing was answered.
    pub(super) fn refusal(&self, program: &str) -> Refusal {
        let why = match self.end {
            End::Stalled => {
                let message = format!("`{program}` printed nothing for too long and was killed");
                return Refusal::new(RefusalKind::Stalled, message).after(Used::launch());
            }
            End::TimedOut => {
                let message = format!(
                    "`{program}` ran out of time and was killed; give the step a longer `timeout_sec`"
                );
                return Refusal::new(RefusalKind::Stalled, message).after(Used::launch());
            }
            End::TooMuch => {
                let message = format!("`{program}` printed too much and was killed");
                return Refusal::new(RefusalKind::TooMuch, message).after(Used::launch());
            }
            End::Exit(code) => format!("exited with code {code}"),
            End::Signal(signal) => format!("was killed by signal {signal}"),
            End::TooManyProcesses => "was killed: it started too many processes".to_owned(),
            End::OutOfMemory => "was killed: it used too much memory".to_owned(),
            End::Lingered => "was killed".to_owned(),
        };
        let said = last_words(&self.stderr).or_else(|| last_words(&self.stdout));
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        let message = format!("`{program}` {why}, without an answer{said}");
        Refusal::new(kind_of(&said).unwrap_or(RefusalKind::Failed), message).after(Used::launch())
    }
}

/// Runs a program and gives each JSON object that it prints to `event`, which says whether it
/// was the last one that is waited for.
pub(super) async fn run(
    program: Program<'_>,
    means: &Means<'_>,
    event: &mut (dyn FnMut(&Value) -> bool + Send),
) -> Result<Ended, Refusal> {
    let mut line = |bytes: &[u8]| match serde_json::from_slice::<Value>(bytes) {
        Ok(value) if value.is_object() => event(&means.hidden.value(value)),
        // Some print warnings between their events.
        _ => false,
    };
    let bounds = Bounds { keep: Keep::End(KEPT), line: LINE_MAX, bytes: BYTES_MAX };
    start(program, means, bounds, &mut line).await
}

/// Runs a program and keeps all that it prints.
pub(super) async fn run_plain(
    program: Program<'_>,
    means: &Means<'_>,
    max: usize,
) -> Result<Ended, Refusal> {
    let bounds = Bounds { keep: Keep::All(max), line: 0, bytes: max as u64 };
    start(program, means, bounds, &mut |_| false).await
}

/// How much a program may print, and how much of it is kept.
struct Bounds {
    keep: Keep,
    line: usize,
    bytes: u64,
}

async fn start(
    program: Program<'_>,
    means: &Means<'_>,
    bounds: Bounds,
    line: &mut (dyn FnMut(&[u8]) -> bool + Send),
) -> Result<Ended, Refusal> {
    let Program { command, variables, stdin, request } = program;
    let mut all = request.variables.clone();
    for (name, value) in variables {
        all.retain(|(known, _)| *known != name);
        all.push((name, value));
    }
    let job = Job {
        session: request.owner,
        command: &command,
        variables: all,
        folder: &request.folder,
        opened: request.opened.as_deref(),
        stdin,
        keep: bounds.keep,
        timeout: request.timeout,
        strict: true,
        watch: Some(Watch {
            line,
            idle: request.stall,
            linger: LINGER,
            line_max: bounds.line,
            bytes_max: bounds.bytes,
        }),
    };
    let done = process::run(job, means.process).await;
    let Done { end, stdout, stderr } = done.map_err(|failed| {
        let kind = match failed.message.contains("No such file") {
            true => RefusalKind::NotInstalled,
            false => RefusalKind::Failed,
        };
        Refusal::new(kind, failed.message)
    })?;
    // Before anybody cuts something off: the rest of a key is not found any more.
    let hidden = |text: String| means.hidden.text(&text).into_owned();
    Ok(Ended { end, stdout: hidden(stdout.text()), stderr: hidden(stderr.text()) })
}

/// The program of a provider, where it is.
pub(super) fn find(means: &Means<'_>, usual: &str, install: &str) -> Result<PathBuf, Refusal> {
    let command = means.settings.command.clone().unwrap_or_else(|| usual.into());
    let found = if command.components().count() > 1 {
        Some(command.clone()).filter(|path| is_program(path))
    } else {
        in_path(&command)
    };
    found.ok_or_else(|| {
        let message = format!("there is no program `{}`; {install}", command.display());
        Refusal::new(RefusalKind::NotInstalled, message)
    })
}

/// The program of this name, where the system would find it.
pub(super) fn in_path(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What a program says of its version.
pub(super) async fn version(means: &Means<'_>, program: &Path) -> Result<String, Refusal> {
    let folder = tempfile::tempdir().map_err(|error| {
        Refusal::new(RefusalKind::Failed, format!("no folder can be made: {error}"))
    })?;
    let owner = cairn_core::id::SessionId::from_bits(0);
    let mut request = Request::new(owner, "", folder.path().to_owned());
    (request.timeout, request.stall) = (VERSION_TIME, VERSION_TIME);
    request.variables = variables(means, folder.path());
    let command = vec![program.display().to_string(), "--version".to_owned()];
    let program_name = command.first().cloned().unwrap_or_default();
    let asked = Program { command, variables: Vec::new(), stdin: Vec::new(), request: &request };
    let ended = run_plain(asked, means, KEPT).await?;
    match ended.end {
        End::Exit(0) => Ok(ended.stdout.lines().next().unwrap_or_default().trim().to_owned()),
        _ => Err(ended.refusal(&program_name)),
    }
}

/// What every program needs of the engine's own variables.
fn variables(means: &Means<'_>, folder: &Path) -> Vec<(String, OsString)> {
    let here = |name: &str| Some((name.to_owned(), std::env::var_os(name)?));
    let home = match means.settings.login {
        Login::User => here("HOME"),
        Login::Key => Some(("HOME".to_owned(), folder.as_os_str().to_owned())),
    };
    ["LANG", "LC_ALL", "PATH", "TZ"].into_iter().filter_map(here).chain(home).collect()
}

/// The user's home, for a program that the user is logged in to.
pub(super) fn home(means: &Means<'_>) -> Option<(String, OsString)> {
    let user = means.settings.login == Login::User;
    user.then(|| std::env::var_os("HOME")).flatten().map(|home| ("HOME".to_owned(), home))
}

/// A variable with text.
pub(super) fn set(name: &str, value: impl Into<OsString>) -> (String, OsString) {
    (name.to_owned(), value.into())
}

/// The text of a member.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// The number of a member.
pub(super) fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// The end of what a program said, in one line.
fn last_words(text: &str) -> Option<String> {
    let text = text.trim();
    let from = text.ceil_char_boundary(text.len().saturating_sub(TOLD_MAX));
    let line = text.get(from..)?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| cairn_core::text::inert(&line))
}

/// Which of the known ways a message of a vendor tells of.
pub(super) fn kind_of(message: &str) -> Option<RefusalKind> {
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&[
        "401",
        "403",
        "unauthorized",
        "invalid api key",
        "/login",
        "not logged in",
        "api key not",
        "authentication",
    ]) {
        return Some(RefusalKind::NotLoggedIn);
    }
    if says(&["429", "rate limit", "rate_limit", "resource_exhausted", "quota"]) {
        return Some(RefusalKind::RateLimited);
    }
    if says(&["500", "502", "503", "529", "overloaded", "high demand", "internal server error"]) {
        return Some(RefusalKind::Server);
    }
    let away = ["connection", "stream disconnected", "econnre", "fetch failed", "socket"];
    says(&away).then_some(RefusalKind::Unreachable)
}

/// The kind of refusal that a status of an endpoint stands for.
pub(super) const fn kind_of_status(status: u64) -> RefusalKind {
    match status {
        401 | 403 => RefusalKind::NotLoggedIn,
        429 => RefusalKind::RateLimited,
        500.. => RefusalKind::Server,
        _ => RefusalKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_vendors_say_is_known() {
        for (message, kind) in [
            ("Invalid API key · Please run /login", Some(RefusalKind::NotLoggedIn)),
            ("unexpected status 401 Unauthorized", Some(RefusalKind::NotLoggedIn)),
            ("API Error: 429 rate_limit_error", Some(RefusalKind::RateLimited)),
            ("RESOURCE_EXHAUSTED", Some(RefusalKind::RateLimited)),
            ("We're currently experiencing high demand", Some(RefusalKind::Server)),
            ("stream disconnected before completion", Some(RefusalKind::Unreachable)),
            ("something odd", None),
        ] {
            assert_eq!(kind_of(message), kind, "{message}");
        }
        assert_eq!(kind_of_status(403), RefusalKind::NotLoggedIn);
        assert_eq!(kind_of_status(529), RefusalKind::Server);
    }

    #[test]
    fn the_last_words_are_short_and_inert() {
        assert_eq!(last_words("  \n"), None);
        assert_eq!(last_words("a\n  b\u{1b}[31m").as_deref(), Some("a b\\u{1b}[31m"));
        assert!(last_words(&"é".repeat(2_000)).unwrap().len() <= TOLD_MAX);
    }
}
