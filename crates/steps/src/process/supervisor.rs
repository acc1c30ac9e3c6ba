//! The process between the engine and a command: it sees to it that nothing outlives a step.
//!
//! It makes a session of its own, takes what it must not have away from itself, and starts
//! the command. Whatever the command starts becomes this process's child when its parent
//! ends, so it finds all of them however they hid. Its standard input is a line to the
//! engine: first the command's variables and what it reads, then nothing, and its end means that
//! the step was cancelled or the engine is gone.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, WaitStatus, getpid, setrlimit, wait};

use super::cgroup::Cgroup;
use super::{MARK, descent};

/// What this program calls itself when it is started as a supervisor.
pub const NAME: &str = "cairn-exec";
/// How often the processes of a command are counted.
const LOOK: Duration = Duration::from_millis(100);
/// How long killing goes on.
pub(super) const KILL_MAX: Duration = Duration::from_secs(4);
/// How large a file may get that an automation writes.
const FILE_MAX: u64 = 1 << 30;

/// What a supervisor is told on its command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Orders {
    /// What stands before its last words, so that the engine knows them.
    pub(super) nonce: String,
    /// Whether the command belongs to an automation, which has narrower limits.
    pub(super) strict: bool,
    /// How many processes there may be at once; any number when it is 0.
    pub(super) processes_max: usize,
    /// How many bytes of memory they may use together; any number when it is 0.
    pub(super) memory_max: u64,
    /// The folder in which it may make a control group.
    pub(super) cgroup: Option<PathBuf>,
    /// Its record in the data directory, which it removes once nothing of the command is left.
    pub(super) record: PathBuf,
    /// The program and its arguments.
    pub(super) command: Vec<OsString>,
}

impl Orders {
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let strict = if self.strict { "strict" } else { "plain" };
        let cgroup = self.cgroup.as_ref().map_or("-".into(), |path| path.clone().into_os_string());
        let fixed = [self.nonce.clone().into(), strict.into()];
        let limits = [self.processes_max.to_string(), self.memory_max.to_string()];
        let fixed = fixed.into_iter().chain(limits.map(OsString::from)).chain([cgroup]);
        let fixed = fixed.chain([self.record.clone().into_os_string()]);
        fixed.chain(self.command.iter().cloned()).collect()
    }

    fn read(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut text = || args.next().and_then(|arg| arg.into_string().ok());
        let (nonce, strict) = (text()?, text()? == "strict");
        let (processes_max, memory_max) = (text()?.parse().ok()?, text()?.parse().ok()?);
        let cgroup = args.next().filter(|path| path != "-").map(PathBuf::from);
        let record = args.next()?.into();
        let command = args.collect();
        Some(Self { nonce, strict, processes_max, memory_max, cgroup, record, command })
    }
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Report {
    Exit(i32),
    Signal(i32),
    /// It had more processes than it may.
    Processes,
    /// It used more memory than it may.
    Memory,
    /// It could not be started.
    Start(String),
    /// The engine called it off, or went away.
    Off,
}

impl Report {
    /// The last words of a supervisor.
    fn words(&self, nonce: &str) -> String {
        let report = match self {
            Self::Exit(code) => format!("exit {code}"),
            Self::Signal(signal) => format!("signal {signal}"),
            Self::Processes => "processes".to_owned(),
            Self::Memory => "memory".to_owned(),
            Self::Start(error) => format!("start {error}"),
            Self::Off => "off".to_owned(),
        };
        format!("\0{nonce} {report}\n")
    }

    /// Takes the last words off the end of what a command wrote.
    pub(super) fn split(bytes: &mut Vec<u8>, nonce: &str) -> Option<Self> {
        let mark = format!("\0{nonce} ").into_bytes();
        let at = bytes.windows(mark.len()).rposition(|window| window == mark)?;
        let words = bytes.split_off(at);
        let words = String::from_utf8_lossy(words.get(mark.len()..)?).trim_end().to_owned();
        let (kind, rest) = words.split_once(' ').unwrap_or((&words, ""));
        Some(match kind {
            "exit" => Self::Exit(rest.parse().ok()?),
            "signal" => Self::Signal(rest.parse().ok()?),
            "processes" => Self::Processes,
            "memory" => Self::Memory,
            "start" => Self::Start(rest.to_owned()),
            "off" => Self::Off,
            _ => return None,
        })
    }
}

/// Does the work of a supervisor.
///
/// `args` are those of the command line without the program's name.
pub fn supervise(args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(orders) = Orders::read(args) else { return ExitCode::from(2) };
    let (report, is_over) = match confine(&orders) {
        Ok(()) => run(&orders),
        Err(error) => (Report::Start(error.to_string()), true),
    };
    if is_over {
        // One that stays names processes that are gone, and is removed with the next look.
        let _ = std::fs::remove_file(&orders.record);
    }
    // The engine may be gone.
    let _ = std::io::stderr().write_all(report.words(&orders.nonce).as_bytes());
    ExitCode::SUCCESS
}

/// Takes away what neither this process nor its children need.
fn confine(orders: &Orders) -> rustix::io::Result<()> {
    // Whoever started the engine may have left files open to it.
    close_fds::set_fds_cloexec(3, &[]);
    // Who starts it may have made it a leader already.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(getpid()))?;
    rustix::thread::set_no_new_privs(true)?;
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none)?;
    if orders.strict {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let max = Rlimit { current: Some(FILE_MAX), maximum: Some(FILE_MAX) };
        // The operator may have set less, which stays.
        let _ = setrlimit(Resource::Fsize, max);
    }
    Ok(())
}

/// What a command is given beside its arguments.
struct Given {
    variables: Vec<(OsString, OsString)>,
    /// What it reads.
    input: Vec<u8>,
}

/// Variables, as they go over the line.
pub(super) fn written(variables: &[(String, OsString)]) -> Vec<u8> {
    let one = |(name, value): &(String, OsString)| {
        [name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat()
    };
    variables.iter().flat_map(one).collect()
}

fn read_variables(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    let own = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let one = |set: &[u8]| {
        let at = set.iter().position(|byte| *byte == b'=')?;
        Some((own(set.get(..at)?), own(set.get(at + 1..)?)))
    };
    bytes.split(|byte| *byte == 0).filter_map(one).collect()
}

enum Message {
    /// What the command is given.
    Given(Given),
    /// The engine called it off, or is gone.
    Off,
    Ended(Pid, WaitStatus),
}

/// Runs the command; says how it ended, and whether nothing of it is left.
fn run(orders: &Orders) -> (Report, bool) {
    let (tell, told) = channel();
    let line = tell.clone();
    std::thread::spawn(move || listen(&line));
    let Ok(Message::Given(given)) = told.recv() else { return (Report::Off, true) };
    let base = orders.cgroup.as_deref();
    let cgroup = base.and_then(|base| Cgroup::enter(base, &orders.nonce, orders).ok());
    let started = first_to_go(|| start(orders, given));
    // The limits are for the command, not for whoever watches it.
    let cgroup = cgroup.and_then(|cgroup| cgroup.leave().ok());
    let leader = match started {
        Ok(leader) => leader,
        Err(error) => return (Report::Start(error.to_string()), true),
    };
    std::thread::spawn(move || reap(&tell));
    let report = watch(orders, leader, &told, cgroup.as_ref());
    (report, kill_all(cgroup.as_ref()))
}

/// Reads the engine's line to its end.
fn listen(tell: &Sender<Message>) {
    let mut line = std::io::stdin().lock();
    if let (Some(variables), Some(input)) = (part(&mut line), part(&mut line)) {
        let given = Given { variables: read_variables(&variables), input };
        drop(variables);
        if tell.send(Message::Given(given)).is_ok() {
            // Nothing comes any more: this waits for the end.
            let _ = line.read(&mut [0]);
        }
    }
    let _ = tell.send(Message::Off);
}

/// The next part of what comes over the line, if it comes whole.
fn part(line: &mut impl Read) -> Option<Vec<u8>> {
    let (mut length, mut part) = ([0; 8], Vec::new());
    line.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    let read = line.take(length).read_to_end(&mut part).ok()?;
    (read as u64 == length).then_some(part)
}

/// Starts something that the system ends before all others when it runs out of memory.
fn first_to_go<T>(start: impl FnOnce() -> T) -> T {
    const SCORE: &str = "/proc/self/oom_score_adj";
    let before = std::fs::read(SCORE);
    // Where it cannot be said, the system chooses for itself.
    let _ = std::fs::write(SCORE, "1000");
    let started = start();
    let _ = before.and_then(|before| std::fs::write(SCORE, before));
    started
}

fn start(orders: &Orders, given: Given) -> std::io::Result<Pid> {
    let Given { variables, input } = given;
    let (program, arguments) =
        orders.command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).process_group(0);
    command.env_clear().envs(variables).env(MARK, &orders.nonce);
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // A command that does not read to the end is not at fault.
        std::thread::spawn(move || pipe.write_all(&input));
    }
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    id.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// Waits for every child there is, the adopted ones too.
fn reap(tell: &Sender<Message>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                if tell.send(Message::Ended(pid, status)).is_err() {
                    return;
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

fn watch(
    orders: &Orders,
    leader: Pid,
    told: &Receiver<Message>,
    cgroup: Option<&Cgroup>,
) -> Report {
    loop {
        match told.recv_timeout(LOOK) {
            Ok(Message::Ended(pid, status)) if pid == leader => {
                return cgroup.and_then(Cgroup::broken).unwrap_or_else(|| ended(status));
            }
            Ok(Message::Ended(..) | Message::Given(_)) => {}
            Ok(Message::Off) | Err(RecvTimeoutError::Disconnected) => return Report::Off,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(over) = over(orders) {
                    return over;
                }
                if let Some(broken) = cgroup.and_then(Cgroup::broken) {
                    return broken;
                }
            }
        }
    }
}

/// Which limit the processes of a command are over, if they are over one.
fn over(orders: &Orders) -> Option<Report> {
    if orders.processes_max == 0 && orders.memory_max == 0 {
        return None;
    }
    let below = descent::below(getpid());
    if orders.processes_max > 0 && below.len() > orders.processes_max {
        return Some(Report::Processes);
    }
    let is_over = || descent::memory(&below, orders.memory_max) > orders.memory_max;
    (orders.memory_max > 0 && is_over()).then_some(Report::Memory)
}

fn ended(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exit(code),
        (None, Some(signal)) => Report::Signal(signal),
        (None, None) => Report::Off,
    }
}

/// Kills all that is below this process, and says whether nothing is left.
fn kill_all(cgroup: Option<&Cgroup>) -> bool {
    if let Some(cgroup) = cgroup {
        cgroup.kill();
    }
    let below = || descent::below(getpid());
    descent::kill_all(below, Instant::now() + KILL_MAX);
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
    below().is_empty()
}

/// Whether the folder of a control group may be used from here.
#[must_use]
pub(super) fn cgroup_base() -> Option<PathBuf> {
    Cgroup::base(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_written() {
        let orders = Orders {
            nonce: "n1".into(),
            strict: true,
            processes_max: 64,
            memory_max: 1 << 30,
            cgroup: Some("/sys/fs/cgroup/x".into()),
            record: "/data/processes/a.json".into(),
            command: vec!["sh".into(), "-c".into(), "-".into()],
        };
        for orders in [Orders { cgroup: None, strict: false, ..orders.clone() }, orders] {
            assert_eq!(Orders::read(orders.to_args().into_iter()), Some(orders));
        }
        assert_eq!(Orders::read(["n1".into()].into_iter()), None);
    }

    #[test]
    fn variables_are_read_as_they_were_written() {
        let given = [("A", "x=y"), ("B", ""), ("C", "two\nlines é")];
        let given = given.map(|(name, value)| (name.to_owned(), OsString::from(value)));
        let read = read_variables(&written(&given));
        assert_eq!(read, given.map(|(name, value)| (OsString::from(name), value)));
        assert_eq!(read_variables(b""), []);
    }

    #[test]
    fn the_last_words_are_taken_off_what_the_command_wrote() {
        for report in [
            Report::Exit(3),
            Report::Signal(9),
            Report::Processes,
            Report::Memory,
            Report::Start("no such file".into()),
            Report::Off,
        ] {
            let mut bytes = b"why\n\0other exit 0\n".to_vec();
            bytes.extend(report.words("abc").bytes());
            assert_eq!(Report::split(&mut bytes, "abc"), Some(report));
            assert_eq!(bytes, b"why\n\0other exit 0\n");
        }
        assert_eq!(Report::split(&mut b"\0abc".to_vec(), "abc"), None);
    }
}
