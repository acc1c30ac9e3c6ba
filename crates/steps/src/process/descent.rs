//! Which processes there are below another, as `/proc` tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::process::Pid;

/// All processes below this one, the dead that nobody waited for left out.
pub(super) fn below(root: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in all().filter_map(|pid| Some((pid, stat(pid)?))) {
        if !stat.dead {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root.as_raw_nonzero().get()];
    while let Some(next) = open.pop() {
        let list = children.remove(&next).unwrap_or_default();
        found.extend(list.iter().filter_map(|pid| Pid::from_raw(*pid)));
        open.extend(list);
    }
    found
}

/// The processes whose environment has this variable set to this.
pub(super) fn marked(name: &str, value: &str) -> Vec<Pid> {
    let wanted = format!("{name}={value}");
    let has = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|set| set == wanted.as_bytes())
    };
    all().filter(has).filter_map(Pid::from_raw).collect()
}

/// What carries a mark and has no supervisor any more, which is started with the value of the
/// mark as its first argument.
pub(super) fn left(mark: &str, supervisor: &str) -> Vec<Pid> {
    let words = |pid: i32, file: &str| -> Vec<Vec<u8>> {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    };
    let prefix = format!("{mark}=").into_bytes();
    // The marked come first: whoever is started meanwhile has its supervisor in the second look.
    let marked: Vec<(i32, Vec<u8>)> = all()
        .filter_map(|pid| {
            let set = words(pid, "environ").into_iter().find(|set| set.starts_with(&prefix))?;
            Some((pid, set.get(prefix.len()..)?.to_vec()))
        })
        .collect();
    let kept: BTreeSet<Vec<u8>> = all()
        .filter_map(|pid| {
            let mut words = words(pid, "cmdline").into_iter();
            words.next().filter(|name| name == supervisor.as_bytes())?;
            words.next()
        })
        .collect();
    let lost = marked.into_iter().filter(|(_, nonce)| !kept.contains(nonce));
    lost.filter_map(|(pid, _)| Pid::from_raw(pid)).collect()
}

/// How many bytes of memory some processes use together. What they share is only told apart
/// when they seem to use more than this.
pub(super) fn memory(pids: &[Pid], enough: u64) -> u64 {
    let page = rustix::param::page_size() as u64;
    let used = |pid: &Pid| {
        let text = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok()?;
        let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
        Some(pages.saturating_mul(page))
    };
    let all: u64 = pids.iter().filter_map(used).sum();
    if all <= enough {
        return all;
    }
    let own = |pid: &Pid| {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).ok();
        let share = text.as_deref().and_then(share);
        share.or_else(|| used(pid))
    };
    pids.iter().filter_map(own).sum()
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

struct Stat {
    parent: i32,
    dead: bool,
}

fn stat(pid: i32) -> Option<Stat> {
    read_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn read_stat(text: &str) -> Option<Stat> {
    // The name stands in brackets, and can hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let mut parts = rest.split_ascii_whitespace();
    let (state, parent) = (parts.next()?, parts.next()?.parse().ok()?);
    Some(Stat { parent, dead: state == "Z" || state == "X" })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_name_with_brackets_misleads_nobody() {
        let stat = read_stat("7 (a) R 1 (b)) Z 42 7 7 0").unwrap();
        assert_eq!((stat.parent, stat.dead), (42, true));
        assert!(read_stat("7 (a").is_none());
    }

    #[test]
    fn memory_is_counted_once() {
        assert_eq!(share("a b\nRss:   9 kB\nPss:      7 kB\nPss_Anon: 1 kB\n"), Some(7 << 10));
        assert_eq!(share("Rss: 9 kB"), None);
        let own = [rustix::process::getpid()];
        let rough = memory(&own, u64::MAX);
        assert!(rough > 1 << 20, "{rough}");
        let exact = memory(&own, 0);
        assert!(exact > 0 && exact <= rough * 2, "{exact} of {rough}");
    }

    #[test]
    fn what_lost_its_supervisor_is_found() {
        let start = |mark: &str| {
            Command::new("sleep").arg("60").env("CAIRN_TEST_LEFT", mark).spawn().unwrap()
        };
        let keep = |mark: &str| {
            let mut keeper = Command::new("sleep");
            std::os::unix::process::CommandExt::arg0(&mut keeper, "cairn-test-keeper");
            keeper.args([mark, "60"]).spawn().unwrap()
        };
        let mut all = [start("71001"), start("71002"), keep("71001")];
        let pid = |child: &std::process::Child| {
            Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
        };
        let (kept, lost) = (pid(&all[0]), pid(&all[1]));
        // What is between fork and exec still has the old words.
        while left("CAIRN_TEST_LEFT", "cairn-test-keeper") != [lost] {
            std::thread::yield_now();
        }
        all[2].kill().unwrap();
        all[2].wait().unwrap();
        let mut found = left("CAIRN_TEST_LEFT", "cairn-test-keeper");
        found.sort_by_key(|pid| pid.as_raw_nonzero());
        let mut wanted = [kept, lost];
        wanted.sort_by_key(|pid| pid.as_raw_nonzero());
        assert_eq!(found, wanted);
        for child in &mut all[..2] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn children_are_found_by_descent_and_by_mark() {
        let mut child = Command::new("sleep").arg("60").env("CAIRN_TEST", "x1").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(below(rustix::process::getpid()).contains(&pid));
        // What is between fork and exec still has the old environment.
        while !marked("CAIRN_TEST", "x1").contains(&pid) {
            std::thread::yield_now();
        }
        assert!(!marked("CAIRN_TEST", "x").contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!below(rustix::process::getpid()).contains(&pid));
    }
}
