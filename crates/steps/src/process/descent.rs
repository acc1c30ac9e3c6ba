//! Which processes there are, as `/proc` tells it, and how they are ended.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

/// A process. An id is given to another process once its own is gone; the id and the start time
/// together are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// When it started, in ticks since the machine did.
    pub(super) start: u64,
}

impl Process {
    /// The process that has an id now.
    pub(super) fn with_id(pid: Pid) -> Option<Self> {
        let stat = stat(pid.as_raw_nonzero().get())?;
        Some(Self { pid, start: stat.start })
    }

    /// The process that asks.
    pub(super) fn own() -> Option<Self> {
        Self::with_id(getpid())
    }

    /// Whether it still runs. One that is dead and that nobody waited for does not.
    pub(super) fn is_alive(self) -> bool {
        stat(self.pid.as_raw_nonzero().get())
            .is_some_and(|stat| stat.start == self.start && !stat.dead)
    }

    /// Sends it a signal, and to no other that has its id by now.
    pub(super) fn signal(self, signal: Signal) {
        // The handle is opened first: when the start time is right after that, it is the handle
        // of this process, or of an earlier one that no signal reaches any more.
        let handle = pidfd_open(self.pid, PidfdFlags::empty());
        if !self.is_alive() {
            return;
        }
        // It may be gone by now.
        let _ = match handle {
            Ok(handle) => pidfd_send_signal(handle, signal),
            // Kernels before 5.3 have no handles of processes.
            Err(Errno::NOSYS) => kill_process(self.pid, signal),
            Err(gone) => Err(gone),
        };
    }
}

/// All processes below this one, the dead that nobody waited for left out.
pub(super) fn below(root: Pid) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<(i32, u64)>> = BTreeMap::new();
    for (pid, stat) in all().filter_map(|pid| Some((pid, stat(pid)?))) {
        if !stat.dead {
            children.entry(stat.parent).or_default().push((pid, stat.start));
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root.as_raw_nonzero().get()];
    while let Some(next) = open.pop() {
        let list = children.remove(&next).unwrap_or_default();
        let process =
            |&(pid, start): &(i32, u64)| Some(Process { pid: Pid::from_raw(pid)?, start });
        found.extend(list.iter().filter_map(process));
        open.extend(list.iter().map(|(pid, _)| *pid));
    }
    found
}

/// This process and all above it.
pub(super) fn lineage() -> Vec<Pid> {
    let above = |pid: &Pid| Pid::from_raw(stat(pid.as_raw_nonzero().get())?.parent);
    std::iter::successors(Some(getpid()), above).collect()
}

/// The processes of a user whose environment has this variable set to this, and that started no
/// earlier than another.
pub(super) fn marked(name: &str, value: &str, user: u32, since: u64) -> Vec<Process> {
    let wanted = format!("{name}={value}");
    let has = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|set| set == wanted.as_bytes())
    };
    let found = all().filter_map(|pid| {
        let stat = stat(pid).filter(|stat| !stat.dead && stat.start >= since)?;
        let process = Process { pid: Pid::from_raw(pid)?, start: stat.start };
        // The last look is at the start time: what was read belongs to this process.
        (has(pid) && user_of(pid) == Some(user) && process.is_alive()).then_some(process)
    });
    found.collect()
}

/// Kills what is found, and what is started meanwhile.
pub(super) fn kill_all(find: impl Fn() -> Vec<Process>, until: Instant) {
    // Whoever is stopped starts no others, so that the second round ends.
    for signal in [Signal::STOP, Signal::KILL] {
        let mut seen: Vec<Process> = Vec::new();
        while Instant::now() < until {
            let found = find();
            let fresh = |one: &&Process| signal == Signal::KILL || !seen.contains(*one);
            let fresh: Vec<Process> = found.iter().filter(fresh).copied().collect();
            if fresh.is_empty() {
                break;
            }
            for process in fresh {
                process.signal(signal);
            }
            seen = found;
            std::thread::yield_now();
        }
    }
}

/// How many bytes of memory some processes use together. What they share is only told apart
/// when they seem to use more than this.
pub(super) fn memory(processes: &[Process], enough: u64) -> u64 {
    let page = rustix::param::page_size() as u64;
    let used = |process: &Process| {
        let pid = process.pid.as_raw_nonzero();
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
        Some(pages.saturating_mul(page))
    };
    let all: u64 = processes.iter().filter_map(used).sum();
    if all <= enough {
        return all;
    }
    let own = |process: &Process| {
        let pid = process.pid.as_raw_nonzero();
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
        let share = text.as_deref().and_then(share);
        share.or_else(|| used(process))
    };
    processes.iter().filter_map(own).sum()
}

/// What a process uses, each page divided by how many have it.
fn share(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The user that a process belongs to.
fn user_of(pid: i32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

struct Stat {
    parent: i32,
    dead: bool,
    start: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    read_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn read_stat(text: &str) -> Option<Stat> {
    // The name stands in brackets, and can hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut parts = rest.split_ascii_whitespace();
    let (state, parent) = (parts.next()?, parts.next()?.parse().ok()?);
    // The start time is field 22; the state is field 3.
    let start = parts.nth(17)?.parse().ok()?;
    Some(Stat { parent, dead: state == "Z" || state == "X", start })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_name_with_brackets_misleads_nobody() {
        let line = "7 (a) R 1 (b)) Z 42 7 7 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 98765 1 2";
        let stat = read_stat(line).unwrap();
        assert_eq!((stat.parent, stat.dead, stat.start), (42, true, 98765));
        assert!(read_stat("7 (a").is_none());
    }

    #[test]
    fn memory_is_counted_once() {
        assert_eq!(share("a b\nRss:   9 kB\nPss:      7 kB\nPss_Anon: 1 kB\n"), Some(7 << 10));
        assert_eq!(share("Rss: 9 kB"), None);
        let own = [Process::own().unwrap()];
        let rough = memory(&own, u64::MAX);
        assert!(rough > 1 << 20, "{rough}");
        let exact = memory(&own, 0);
        assert!(exact > 0 && exact <= rough * 2, "{exact} of {rough}");
    }

    #[test]
    fn children_are_found_by_descent_and_by_mark() {
        let mut child = Command::new("sleep").arg("60").env("CAIRN_TEST", "x1").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let process = Process::with_id(pid).unwrap();
        assert!(below(getpid()).contains(&process));
        let user = rustix::process::getuid().as_raw();
        // What is between fork and exec still has the old environment.
        while marked("CAIRN_TEST", "x1", user, 0) != [process] {
            std::thread::yield_now();
        }
        assert_eq!(marked("CAIRN_TEST", "x1", user, process.start), [process]);
        for others in [
            marked("CAIRN_TEST", "x", user, 0),
            marked("CAIRN_TEST", "x1", user + 1, 0),
            marked("CAIRN_TEST", "x1", user, process.start + 1),
        ] {
            assert_eq!(others, []);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!below(getpid()).contains(&process) && !process.is_alive());
    }

    #[test]
    fn a_signal_reaches_no_other_process_with_the_same_id() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let process = Process::with_id(pid).unwrap();
        let earlier = Process { start: process.start - 1, ..process };
        earlier.signal(Signal::KILL);
        assert!(!earlier.is_alive() && process.is_alive());
        process.signal(Signal::KILL);
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(9));
    }

    #[test]
    fn whoever_asks_stands_at_the_end_of_its_lineage() {
        let lineage = lineage();
        assert_eq!(lineage.first(), Some(&getpid()));
        assert_eq!(lineage.get(1).copied(), rustix::process::getppid());
    }
}
