//! Which processes there are below another, as `/proc` tells it.

use std::collections::BTreeMap;
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
