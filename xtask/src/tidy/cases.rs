//! Every security case is named by a test, or says that none is about it.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding};

const PAGE: &str = "docs/security-cases.md";
/// What stands at the end of a case that no test names, before the issue that builds what it is
/// about.
const MARK: &str = "(not built yet: ";
/// What stands in front of a test that names one.
const NAMES: &str = "// case: ";

/// Reports cases that no test names and that do not say so, those that say so and are named,
/// cases that stand twice, names that are no cases, and names that no test follows.
pub(super) fn check(pages: &[File], rust: &[File]) -> Vec<Finding> {
    let Some(page) = pages.iter().find(|page| page.path == PAGE) else {
        return vec![Finding::new(PAGE, 1, "the list of security cases is gone".to_owned())];
    };
    let named = named(rust);
    let mut findings = Vec::new();
    let mut listed = BTreeSet::new();
    for (at, line) in page.text.lines().enumerate() {
        let Some((id, text)) = line.strip_prefix("- `").and_then(|rest| rest.split_once('`'))
        else {
            continue;
        };
        let issue = text.trim_end().strip_suffix(')').and_then(|text| text.rsplit_once(MARK));
        let marked = issue.is_some_and(|(_, issue)| {
            let number = issue.strip_prefix("issue ").and_then(|number| number.parse::<u32>().ok());
            issue == "no issue" || number.is_some()
        });
        let what = match (listed.insert(id), named.contains_key(id), marked) {
            (false, ..) => format!("the case `{id}` stands twice; keep one"),
            (_, true, true) => format!("a test names `{id}`; take the mark off"),
            (_, false, false) => format!("no test names `{id}`; write `{NAMES}{id}` before one"),
            _ => continue,
        };
        findings.push(Finding::new(PAGE, at + 1, what));
    }
    for (id, (path, line)) in named.iter().filter(|(id, _)| !listed.contains(**id)) {
        let what = format!("`{id}` is no case of {PAGE}; add it there, or correct the name");
        findings.push(Finding::new(path, *line, what));
    }
    findings.extend(rust.iter().flat_map(testless));
    findings
}

/// The names that no test follows: only other names, comments and attributes may stand between.
fn testless(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with(NAMES)) {
        let mut after = lines.iter().skip(at + 1);
        let between = |line: &&str| line.starts_with("//") || line.starts_with("#[");
        let is_test = |line: &&str| {
            ["#[test]", "#[tokio::test", "proptest!"].iter().any(|t| line.starts_with(t))
        };
        let found = after.find(|line| is_test(line) || !between(line));
        if !found.is_some_and(is_test) {
            let id = line.strip_prefix(NAMES).unwrap_or_default();
            let what = format!("no test follows the name of the case `{id}`");
            findings.push(Finding::new(&file.path, at + 1, what));
        }
    }
    findings
}

/// The cases that tests name, each with the first place.
fn named(rust: &[File]) -> BTreeMap<&str, (&str, usize)> {
    let mut named = BTreeMap::new();
    for file in rust {
        for (at, line) in file.text.lines().enumerate() {
            if let Some(id) = line.trim_start().strip_prefix(NAMES) {
                named.entry(id.trim()).or_insert((file.path.as_str(), at + 1));
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_and_tests_name_each_other() {
        let page = "- `a.b` One.\n- `a.c` Two. (not built yet: issue 9)\n- `a.d` Three.\n- `a.e` Four. (not built yet: issue 9)\n- `a.b` Again.\n- `a.f` Five. (not built yet)\n";
        let test = "#[test]\nfn x() {}\n";
        let code = format!(
            "{NAMES}a.b\n// Why.\n{test}    {NAMES}a.e\n{NAMES}z\n#[tokio::test(x)]\nfn y() {{}}\n{NAMES}a.b\nfn z() {{}}\n{NAMES}a.b"
        );
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let told = check(&[file(PAGE, page)], &[file("crates/x/src/y.rs", &code)]);
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        let wanted = [
            "3: no test names `a.d`",
            "4: a test names `a.e`",
            "5: the case `a.b` stands twice",
            "y.rs:6: `z` is no case",
            "6: no test names `a.f`",
            "y.rs:9: no test follows the name of the case `a.b`",
            "y.rs:11: no test follows",
        ];
        assert_eq!(told.len(), wanted.len(), "{told:?}");
        for part in wanted {
            assert!(told.iter().any(|told| told.contains(part)), "{part}: {told:?}");
        }
        assert_eq!(check(&[], &[]).len(), 1);
    }
}
