//! Packages in versions that are known to be insecure, by the pinned copy of the advisories.

use semver::{Version, VersionReq};

use super::Finding;
use crate::advisories::FILE;

const LOCK: &str = "Cargo.lock";

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
    fn a_version_that_is_not_fine_is_reported_with_its_line() {
        let pinned = "# a copy\nR-1 a: >= 1.2 | < 1.0\nR-2 b: >= 0.2.8, < 0.3.0-rc.1 | >= 0.3.0-rc.2\nR-3 c:";
        let found = check(LOCKED, pinned);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["Cargo.lock:2: `a` 1.1.0 has a hole, R-1; update it"]);
        assert_eq!(check(LOCKED, "R-3 b:").len(), 1, "no version is fine");
        assert_eq!(check(LOCKED, "what is this").len(), 1);
    }
}
