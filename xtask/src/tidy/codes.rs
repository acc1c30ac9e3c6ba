//! Every error code has a page and a test that names it, and every page has a code.

use std::collections::BTreeMap;

use super::{File, Finding};

/// Where each code first occurs: path and line.
pub(super) type Codes = BTreeMap<String, (String, usize)>;

const FOLDER: &str = "docs/errors/";

/// Codes of automation runs whose tests are still owed.
const OWED: [&str; 0] = [];

/// Finds the codes in the sources of the crates: match arms of the shape `… => "SOME_CODE"`.
pub(super) fn find(rust: &[File]) -> Codes {
    let mut codes = Codes::new();
    let shipped = rust.iter().filter(|file| is_crate_source(&file.path));
    for file in shipped {
        for (offset, code) in arms(&file.text) {
            let line = 1 + file.text.get(..offset).unwrap_or_default().matches('\n').count();
            codes.entry(code.to_owned()).or_insert_with(|| (file.path.clone(), line));
        }
    }
    codes
}

/// Reports codes without a page and pages without a code.
pub(super) fn check(codes: &Codes, pages: &[File]) -> Vec<Finding> {
    let documented = || {
        pages.iter().filter_map(|page| {
            let name = page.path.strip_prefix(FOLDER)?.strip_suffix(".md")?;
            (name != "README").then_some((page, name))
        })
    };
    let undocumented =
        codes.iter().filter(|(code, _)| !documented().any(|(_, name)| name == *code));
    let mut findings: Vec<Finding> = undocumented
        .map(|(code, (path, line))| {
            let what = format!("the code {code} has no page; write {FOLDER}{code}.md");
            Finding::new(path, *line, what)
        })
        .collect();
    findings.extend(documented().filter(|(_, name)| !codes.contains_key(*name)).map(
        |(page, name)| {
            let what =
                format!("no source has the code {name}; delete the page or correct its name");
            Finding::new(&page.path, 1, what)
        },
    ));
    findings
}

/// Reports codes that no test names: nobody knows whether they can come about.
pub(super) fn untested(codes: &Codes, rust: &[File]) -> Vec<Finding> {
    let tests: Vec<&str> = rust.iter().map(tests).collect();
    let named = |code: &str| {
        tests.iter().any(|text| {
            text.match_indices(code).any(|(at, found)| {
                let around = |part: Option<&str>, last: bool| {
                    let part = part.unwrap_or_default();
                    let near = if last { part.chars().next_back() } else { part.chars().next() };
                    near.is_some_and(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
                };
                !around(text.get(..at), true) && !around(text.get(at + found.len()..), false)
            })
        })
    };
    let missing = codes.iter().filter(|(code, _)| !named(code) && !OWED.contains(&code.as_str()));
    let mut findings: Vec<Finding> = missing
        .map(|(code, (path, line))| {
            let what = format!("no test names the code {code}; write one that brings it about");
            Finding::new(path, *line, what)
        })
        .collect();
    let paid = OWED.iter().filter(|code| codes.contains_key(**code) && named(code));
    findings.extend(paid.map(|code| {
        let what = format!("a test names the code {code} now; take it off the list of the owed");
        Finding::new("xtask/src/tidy/codes.rs", 1, what)
    }));
    findings
}

/// The part of a file that is tests: all of it, or what stands behind `#[cfg(test)]`.
fn tests(file: &File) -> &str {
    let whole = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
    match file.text.find("#[cfg(test)]") {
        _ if whole => &file.text,
        Some(at) => file.text.get(at..).unwrap_or_default(),
        None => "",
    }
}

/// Whether a path is `crates/<name>/src/…`.
fn is_crate_source(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.nth(1) == Some("src")
}

/// The codes that match arms yield, each with the offset of its arrow.
///
/// The formatter may move a long arm's value into a block of its own, so blanks
/// and one brace may stand between the arrow and the string.
fn arms(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("=>").filter_map(|(offset, arrow)| {
        let value = text.get(offset + arrow.len()..)?.trim_start();
        let value = value.strip_prefix('{').unwrap_or(value).trim_start();
        let (code, _) = value.strip_prefix('"')?.split_once('"')?;
        is_code(code).then_some((offset, code))
    })
}

/// Whether a string reads `DOMAIN_REASON`.
fn is_code(text: &str) -> bool {
    let mut words = text.split('_');
    let domain = words.next().unwrap_or_default();
    let mut reason = words.peekable();
    let upper = |c: char| c.is_ascii_uppercase();
    !domain.is_empty()
        && domain.chars().all(upper)
        && reason.peek().is_some()
        && reason.all(|w| !w.is_empty() && w.chars().all(|c| upper(c) || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn found(text: &str) -> Vec<String> {
        find(&[file("crates/store/src/error.rs", text)]).into_keys().collect()
    }

    #[test]
    fn codes_are_match_arms_in_capitals() {
        assert_eq!(found(r#"Self::Full => "STORE_FULL","#), ["STORE_FULL"]);
        assert_eq!(found("Self::Long { .. } => {\n    \"STORE_IO_2\"\n}"), ["STORE_IO_2"]);
        for other in [r#"A => "get""#, r#"A => "GET""#, r#"A => "_X""#, r#"A => "X_""#, r#""A_B""#]
        {
            assert_eq!(found(other), [""; 0], "{other}");
        }
    }

    #[test]
    fn only_sources_of_crates_count() {
        let arm = r#"A => "STORE_FULL""#;
        for path in ["crates/store/tests/a.rs", "xtask/src/a.rs", "bench/src/main.rs"] {
            assert!(find(&[file(path, arm)]).is_empty());
        }
    }

    #[test]
    fn a_code_without_a_page_is_reported_where_it_stands() {
        let codes = find(&[file("crates/a/src/b/c.rs", "match x {\n    A => \"A_B\",\n}\n")]);
        let findings = check(&codes, &[file("docs/errors/README.md", "")]);
        assert_eq!(
            findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["crates/a/src/b/c.rs:2: the code A_B has no page; write docs/errors/A_B.md"]
        );
    }

    #[test]
    fn a_page_without_a_code_is_reported() {
        let findings = check(&Codes::new(), &[file("docs/errors/A_B.md", "# A_B\n")]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("docs/errors/A_B.md:1: no source has"));
    }

    #[test]
    fn a_code_that_no_test_names_is_reported() {
        let source = file("crates/a/src/lib.rs", r#"A => "A_B""#);
        let codes = find(std::slice::from_ref(&source));
        let told =
            |tests: File| untested(&codes, &[file("crates/a/src/lib.rs", r#""A_B""#), tests]);
        assert_eq!(told(file("crates/a/tests/a.rs", r#"code == "A_B""#)), []);
        assert_eq!(told(file("crates/a/src/x.rs", "#[cfg(test)]\nmod tests { A_B }")), []);
        for other in [
            file("crates/a/tests/a.rs", r#"code == "A_B_C" || "XA_B""#),
            file("crates/a/src/x.rs", r#"code == "A_B""#),
        ] {
            let found = told(other);
            assert_eq!(found.len(), 1);
            assert!(
                found[0].to_string().starts_with("crates/a/src/lib.rs:1: no test names the code")
            );
        }
    }

    #[test]
    fn a_code_with_its_page_is_fine() {
        let codes = find(&[file("crates/a/src/lib.rs", r#"A => "A_B""#)]);
        assert_eq!(check(&codes, &[file("docs/errors/A_B.md", "")]), []);
    }
}
