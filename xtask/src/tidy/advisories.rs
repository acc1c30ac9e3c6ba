//! Packages in versions that are known to be insecure, by the pinned copy of the advisories.

use std::time::{SystemTime, UNIX_EPOCH};

use semver::{Version, VersionReq};

use super::Finding;
use crate::advisories::{FILE, OF};

const LOCK: &str = "Cargo.lock";
/// After how many days the copy counts for nothing.
const DAYS_MAX: i64 = 365;
/// After how many days it is worth a word.
const DAYS_OLD: i64 = 90;

/// How old the copy is today.
pub(super) fn age(pinned: &str) -> Age {
    let today = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Age::of(pinned, i64::try_from(today / 86_400).unwrap_or(i64::MAX))
}

/// How old the copy is.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Age {
    Fresh,
    /// Worth a word: so many days.
    Old(i64),
    /// Too old, or of no day.
    Stale(Finding),
}

impl Age {
    /// The age of a copy on a day, counted from 1970.
    fn of(pinned: &str, today: i64) -> Self {
        let at = pinned.lines().position(|line| line.starts_with(OF));
        let line = at.and_then(|at| pinned.lines().nth(at)).unwrap_or_default();
        let day = line.strip_prefix(OF).and_then(|rest| day(rest.get(..10)?));
        let again = "write it anew with `cargo xtask advisories`";
        let stale = |what: String| Self::Stale(Finding::new(FILE, at.map_or(1, |at| at + 1), what));
        match day.map(|day| today - day) {
            None => stale(format!("the copy does not say of which day it is; {again}")),
            Some(days) if days > DAYS_MAX => {
                stale(format!("the copy is {days} days old, and {DAYS_MAX} is the most; {again}"))
            }
            Some(days) if days > DAYS_OLD => Self::Old(days),
            Some(_) => Self::Fresh,
        }
    }
}

/// The number of a day such as `2026-08-21`, counted from 1970.
fn day(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the day that comes and goes is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    Some(days - 719_468)
}

/// Reports every package of the lock file that an advisory is about.
pub(super) fn check(lock: &str, pinned: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known: Vec<Advisory<'_>> = Vec::new();
    for (at, line) in pinned.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        match Advisory::read(line) {
            Some(advisory) => known.push(advisory),
            None => {
                let what = "this is no advisory; write the file anew with `cargo xtask advisories`";
                findings.push(Finding::new(FILE, at + 1, what.to_owned()));
            }
        }
    }
    let (mut name, mut line) = ("", 0);
    for (at, text) in lock.lines().enumerate() {
        let value = |key: &str| text.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
        if let Some(found) = value("name") {
            (name, line) = (found, at + 1);
        }
        let Some(version) = value("version").and_then(|v| v.parse::<Version>().ok()) else {
            continue;
        };
        for advisory in known.iter().filter(|a| a.package == name && a.is_about(&version)) {
            let what = format!("`{name}` {version} has a hole, {}; update it", advisory.id);
            findings.push(Finding::new(LOCK, line, what));
        }
    }
    findings
}

struct Advisory<'t> {
    id: &'t str,
    package: &'t str,
    fine: Vec<VersionReq>,
}

impl<'t> Advisory<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let (named, versions) = line.split_once(':')?;
        let (id, package) = named.split_once(' ')?;
        let versions = versions.split('|').map(str::trim).filter(|text| !text.is_empty());
        let fine = versions.map(|text| text.parse().ok()).collect::<Option<_>>()?;
        Some(Self { id, package, fine })
    }

    fn is_about(&self, version: &Version) -> bool {
        !self.fine.iter().any(|fine| fine.matches(version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKED: &str = "[[package]]\nname = \"a\"\nversion = \"1.1.0\"\n\n[[package]]\nname = \"b\"\nversion = \"0.3.0\"\n";

    #[test]
    fn a_copy_says_how_old_it_is_and_counts_for_a_year() {
        for (text, number) in [("1970-01-01", 0), ("2000-02-29", 11_016), ("2026-08-21", 20_686)] {
            assert_eq!(day(text), Some(number), "{text}");
        }
        let age =
            |days| Age::of("# x\n# The database of 2026-08-21, commit abc\nR-1 a:", 20_686 + days);
        assert_eq!([age(-3), age(0), age(DAYS_OLD)], [const { Age::Fresh }; 3]);
        assert_eq!([age(DAYS_OLD + 1), age(DAYS_MAX)], [Age::Old(91), Age::Old(365)]);
        let Age::Stale(found) = age(DAYS_MAX + 1) else { panic!("it is stale") };
        assert!(found.to_string().starts_with("xtask/advisories.txt:2: the copy is 366 days old"));
        for undated in
            ["", "# x\nR-1 a:", "# The database of yesterday", "# The database of 2026-13-01"]
        {
            assert!(matches!(Age::of(undated, 20_686), Age::Stale(_)), "{undated}");
        }
    }

    #[test]
    fn a_version_that_is_not_fine_is_reported_with_its_line() {
        let pinned = "# a copy\nR-1 a: >= 1.2 | < 1.0\nR-2 b: >= 0.2.8, < 0.3.0-rc.1 | >= 0.3.0-rc.2\nR-3 c:";
        let found = check(LOCKED, pinned);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["Cargo.lock:2: `a` 1.1.0 has a hole, R-1; update it"]);
        assert_eq!(check(LOCKED, "R-3 b:").len(), 1, "no version is fine");
        assert_eq!(check(LOCKED, "what is this").len(), 1);
    }
}
