//! Running commands: each under a supervisor that ends all it started, whatever it did to hide.

pub(crate) mod arguments;
mod cgroup;
mod descent;
mod folder;
mod record;
mod supervisor;
pub(crate) mod told;
mod variables;
mod watch;

use std::ffi::OsString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cairn_core::id::SessionId;
use cairn_engine::performer::{Failed, FailureKind};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use descent::Process;
pub(crate) use folder::{Below, Folder};
use record::Record;
pub use record::Records;
pub use supervisor::{NAME, supervise};
use supervisor::{Orders, Report};
pub(crate) use variables::{Variables, is_denied};
pub(crate) use watch::Watch;

/// The variable that tells the processes of a command whose they are.
const MARK: &str = "CAIRN_RUN";
/// How long the end of a command that was stopped is waited for.
const END_MAX: Duration = Duration::from_secs(5);
/// How long the pipes are read when the supervisor is gone.
const GRACE: Duration = Duration::from_millis(250);
/// How long it takes at most from the order to stop a command until all is known of it.
pub(crate) const STOP_MAX: Duration = Duration::from_secs(7);
/// How many processes a command of an automation may have at once.
pub const PROCESSES_MAX: usize = 64;
/// How much memory the processes of a command of an automation may use, when nobody says.
pub const MEMORY_MAX: u64 = 2 << 30;

/// The signal that ends whoever writes a file that is too large.
const FILE_SIGNAL: i32 = Signal::XFSZ.as_raw();
/// What a shell makes of it.
const FILE_EXIT: i32 = 128 + FILE_SIGNAL;

/// How commands are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program that is a supervisor when it is started as [`NAME`].
    pub supervisor: PathBuf,
    /// Dangerous variables that workflows may set all the same.
    pub allow_env: Vec<String>,
    /// How many bytes of memory the processes of a command of an automation may use.
    pub memory_max: u64,
    /// Where what is started is recorded.
    pub records: Records,
}

/// What keeps commands apart from the rest of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Isolation {
    /// The control group in which theirs are made, where there is one of version 2.
    pub cgroup: Option<PathBuf>,
}

/// What there is here.
#[must_use]
pub fn isolation() -> Isolation {
    Isolation { cgroup: supervisor::cgroup_base() }
}

/// A command to run.
pub(crate) struct Job<'a> {
    /// The session that its step belongs to.
    pub(crate) session: SessionId,
    /// The program and its arguments.
    pub(crate) command: &'a [String],
    /// All its variables.
    pub(crate) variables: Vec<(String, OsString)>,
    /// Where.
    pub(crate) folder: &'a Path,
    /// The folder as it was opened, where its path may lead elsewhere by now.
    pub(crate) opened: Option<&'a OwnedFd>,
    /// What it reads.
    pub(crate) stdin: Vec<u8>,
    /// How much of what it prints is kept.
    pub(crate) keep: Keep,
    /// After how long it is stopped; what it printed until then is kept.
    pub(crate) timeout: Duration,
    /// Whether it belongs to an automation, which has narrower limits.
    pub(crate) strict: bool,
    /// Who follows what it prints, line by line, while it runs.
    pub(crate) watch: Option<Watch<'a>>,
}

/// How much is kept of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The end of it.
    End(usize),
    /// All of it, and a command that prints more is stopped.
    All(usize),
}

/// What came of a command.
pub(crate) struct Done {
    pub(crate) end: End,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Exit(i32),
    Signal(i32),
    TimedOut,
    /// It printed more than it may.
    TooMuch,
    TooManyProcesses,
    OutOfMemory,
    /// It printed nothing for longer than it may.
    Stalled,
    /// It had said all it was to say, and did not end.
    Lingered,
}

/// Runs a command to its end. Whoever drops the future ends it and all that it started.
pub(crate) async fn run(mut job: Job<'_>, options: &Options) -> Result<Done, Failed> {
    let nonce = nonce()?;
    let variables = supervisor::written(&job.variables);
    let (mut child, record) = start(&job, options, &nonce)?;
    let mut line = child.stdin.take();
    let pipes = (child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Stream::new(job.keep), Stream::new(job.keep));
    let mut watch = job.watch.take();
    let mut stopped = {
        let streams = async {
            feed(&mut line, &[&variables, &job.stdin]).await;
            let printed = async {
                match &mut watch {
                    Some(watch) => watch.follow(pipes.0, &mut stdout).await,
                    None => stdout.follow(pipes.0).await,
                }
            };
            tokio::try_join!(printed, stderr.follow(pipes.1)).map(drop)
        };
        // What was printed last may still be in the pipes when the supervisor is gone. It ends
        // last of all, unless the command killed it.
        let gone = async {
            let _ = child.wait().await;
            tokio::time::sleep(GRACE).await;
        };
        let work = async {
            tokio::select! {
                read = streams => read,
                () = gone => Ok(()),
            }
        };
        match timeout(job.timeout, work).await {
            Ok(Ok(())) => None,
            Ok(Err(over)) => Some(over.end()),
            Err(_) => Some(End::TimedOut),
        }
    };
    // The end of its line tells the supervisor to end everything.
    drop(line.take());
    let ended = timeout(END_MAX, child.wait()).await;
    let report = Report::split(&mut stderr.bytes, &nonce);
    if ended.is_err() || (report.is_none() && stopped != Some(End::TooMuch)) {
        // The command got rid of its supervisor.
        let _ = child.start_kill();
        // What does not end is looked for again by whoever comes after this process.
        let _ = tokio::task::spawn_blocking(move || record.end()).await;
    }
    if stdout.cut() | stderr.cut() {
        stopped = stopped.or(Some(End::TooMuch));
    }
    let end = match (stopped, report) {
        (Some(stopped), _) => stopped,
        (None, Some(Report::Exit(code))) => End::Exit(code),
        (None, Some(Report::Signal(signal))) => End::Signal(signal),
        (None, Some(Report::Processes)) => End::TooManyProcesses,
        (None, Some(Report::Memory)) => End::OutOfMemory,
        (None, Some(Report::Off) | None) => End::Signal(Signal::KILL.as_raw()),
        (None, Some(Report::Start(error))) => return Err(unstarted(&job, &error)),
    };
    Ok(Done { end, stdout, stderr })
}

/// Starts a supervisor and records it.
///
/// It starts the command when it is given the command's variables, and ends when this process
/// does before that. So nothing runs that is not recorded.
fn start(job: &Job<'_>, options: &Options, nonce: &str) -> Result<(Child, Record), Failed> {
    let cgroup = supervisor::cgroup_base();
    let orders = Orders {
        nonce: nonce.to_owned(),
        strict: job.strict,
        processes_max: if job.strict { PROCESSES_MAX } else { 0 },
        memory_max: if job.strict { options.memory_max } else { 0 },
        cgroup: cgroup.clone(),
        record: options.records.path(job.session, nonce),
        command: job.command.iter().map(OsString::from).collect(),
    };
    let mut command = Command::new(&options.supervisor);
    let folder = match job.opened {
        // The supervisor goes there before it is what it is, while it still has what is open here.
        Some(opened) => PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())),
        None => job.folder.to_owned(),
    };
    command.arg0(NAME).args(orders.to_args()).current_dir(folder);
    // What the command is given, secrets too, comes over the line: others can read what a
    // process was started with.
    command.env_clear().env(MARK, nonce);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| unstarted(job, &error.to_string()))?;
    // Nobody has waited for it yet, so the id is its own.
    let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let supervisor = id.and_then(Process::with_id);
    let supervisor = supervisor.ok_or_else(|| unstarted(job, "it is gone already"))?;
    let record = options.records.add(job.session, nonce, supervisor, cgroup);
    Ok((child, record.map_err(|error| unstarted(job, &error.to_string()))?))
}

fn unstarted(job: &Job<'_>, error: &str) -> Failed {
    let program = job.command.first().map_or("", String::as_str);
    Failed::new("SHELL_START", format!("`{program}` cannot be started: {error}"))
}

/// A word that no command can guess.
fn nonce() -> Result<String, Failed> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failed::new("SHELL_START", format!("the system gives no random bytes: {error}"))
    })?;
    Ok(u128::from_le_bytes(bytes).to_string())
}

async fn feed(line: &mut Option<ChildStdin>, parts: &[&[u8]]) {
    let Some(line) = line else { return };
    for part in parts {
        // A supervisor that is gone already says why on its other streams.
        let _ = line.write_all(&(part.len() as u64).to_le_bytes()).await;
        let _ = line.write_all(part).await;
    }
    let _ = line.flush().await;
}

/// Why a command is not read on.
enum Over {
    /// More was printed than is kept.
    TooMuch,
    /// Nothing was printed for too long.
    Stalled,
    /// Nothing was left to be said.
    Lingered,
}

impl Over {
    const fn end(&self) -> End {
        match self {
            Self::TooMuch => End::TooMuch,
            Self::Stalled => End::Stalled,
            Self::Lingered => End::Lingered,
        }
    }
}

/// What a command printed.
pub(crate) struct Stream {
    keep: Keep,
    bytes: Vec<u8>,
    /// How much is missing.
    pub(crate) dropped: u64,
}

impl Stream {
    const fn new(keep: Keep) -> Self {
        Self { keep, bytes: Vec::new(), dropped: 0 }
    }

    /// Reads on until the stream ends. Whoever stops waiting keeps what was read.
    async fn follow(&mut self, stream: Option<impl AsyncRead + Unpin>) -> Result<(), Over> {
        let Some(mut stream) = stream else { return Ok(()) };
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            self.take(buffer.get(..read).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Keeps what was read, as far as it is kept.
    fn take(&mut self, read: &[u8]) -> Result<(), Over> {
        // The last words of the supervisor come on top.
        const WORDS_MAX: usize = 512;
        self.bytes.extend_from_slice(read);
        match self.keep {
            Keep::End(max) => {
                let over = self.bytes.len().saturating_sub(max + WORDS_MAX);
                self.bytes.drain(..over);
                self.dropped += over as u64;
            }
            Keep::All(max) if self.bytes.len() > max + WORDS_MAX => {
                self.dropped += (self.bytes.len() - max) as u64;
                self.bytes.truncate(max);
                return Err(Over::TooMuch);
            }
            Keep::All(_) => {}
        }
        Ok(())
    }

    /// Cuts off what is over the limit now that the supervisor's words are gone, and says
    /// whether there was any.
    fn cut(&mut self) -> bool {
        let Keep::All(max) = self.keep else { return false };
        let over = self.bytes.len().saturating_sub(max);
        self.bytes.truncate(max);
        self.dropped += over as u64;
        over > 0
    }

    /// Whether it has bytes that are no text. What was cut off in the middle of a character is.
    pub(crate) fn is_lossy(&self) -> bool {
        std::str::from_utf8(&self.bytes)
            .is_err_and(|error| error.error_len().is_some() || self.dropped == 0)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl End {
    /// Why a command does not count as done, if it does not.
    pub(crate) fn fault(self) -> Option<Failed> {
        let (code, message, kind) = match self {
            Self::Exit(0) => return None,
            Self::Exit(FILE_EXIT) | Self::Signal(FILE_SIGNAL) => (
                "SHELL_FILE_TOO_LARGE",
                "the command was stopped: it wrote a file of more than 1 GiB".to_owned(),
                FailureKind::Permanent,
            ),
            Self::Exit(code) => (
                "SHELL_EXIT",
                format!("the command ended with exit code {code}"),
                FailureKind::ExitCode,
            ),
            Self::Signal(signal) => (
                "SHELL_SIGNAL",
                format!("the command was ended by signal {signal}"),
                FailureKind::ExitCode,
            ),
            Self::TimedOut => return Some(timed_out()),
            Self::TooMuch => (
                "SHELL_OUTPUT_TOO_LARGE",
                "the command was stopped: it printed more than 1 MiB; let it write a file instead"
                    .to_owned(),
                FailureKind::InvalidOutput,
            ),
            Self::TooManyProcesses => (
                "SHELL_PROCESSES",
                format!(
                    "the command was stopped: it had more than {PROCESSES_MAX} processes at once"
                ),
                FailureKind::Permanent,
            ),
            Self::Stalled => (
                "SHELL_STALLED",
                "the command was stopped: it printed nothing for too long".to_owned(),
                FailureKind::Timeout,
            ),
            // It was ended after all that was waited for.
            Self::Lingered => return None,
            Self::OutOfMemory => (
                "SHELL_MEMORY",
                "the command was stopped: it used more memory than it may".to_owned(),
                FailureKind::Permanent,
            ),
        };
        Some(Failed::of(kind, code, message))
    }
}

/// A step whose time was over before it was done.
pub(crate) fn timed_out() -> Failed {
    let message =
        "the command was stopped when its time was over; give the step a longer `timeout_sec`";
    Failed::of(FailureKind::Timeout, "STEP_TIMEOUT", message)
}
