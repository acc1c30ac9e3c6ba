//! Every lock has a test, and every test that the page of locks names is there.

use super::{File, Finding};

const PAGE: &str = "docs/reference/locks.md";

/// What the head of a table of locks says.
const HEAD: &str = "| Lock | Test |";

/// Reports locks without a test, and tests that are not where the page says.
pub(super) fn check(pages: &[File], rust: &[File]) -> Vec<Finding> {
    let Some(page) = pages.iter().find(|page| page.path == PAGE) else {
        return vec![Finding::new(PAGE, 1, "the page of locks is not there; write it".to_owned())];
    };
    let mut findings = Vec::new();
    for (line, row) in rows(&page.text) {
        let named = tests(row);
        if named.is_empty() {
            let what = "the lock has no test; name one as `path.rs::test`".to_owned();
            findings.push(Finding::new(PAGE, line, what));
        }
        for (path, test) in named {
            let what = match rust.iter().find(|file| file.path == path) {
                None => format!("there is no file {path}; correct the path"),
                Some(file) if !has_test(&file.text, test) => {
                    format!("{path} has no test `{test}`; correct the name or write the test")
                }
                Some(_) => continue,
            };
            findings.push(Finding::new(PAGE, line, what));
        }
    }
    findings
}

/// The rows of the tables of locks, each with its line.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_row = inside && line.starts_with('|');
        inside = line == HEAD || is_row;
        (is_row && !line.starts_with("| ---")).then_some((index + 1, line))
    })
}

/// The tests that a row names, each as its file's path and its name.
fn tests(row: &str) -> Vec<(&str, &str)> {
    let spans = row.split('`').skip(1).step_by(2);
    let whole = |span: &'_ str| span.find(".rs::").map(|at| at + ".rs".len());
    spans
        .filter_map(|span| {
            let end = whole(span)?;
            Some((span.get(..end)?, span.get(end + "::".len()..)?))
        })
        .collect()
}

/// Whether a file has a test of this name: a function marked as one, or a name in a list
/// that a macro makes tests of.
fn has_test(text: &str, name: &str) -> bool {
    let mut marked = false;
    let mut listed = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if line.starts_with("conformance! {") {
            listed = true;
        } else if line == "}" {
            listed = false;
        } else if let Some(found) = function(line) {
            if marked && found == name {
                return true;
            }
            marked = false;
        } else if listed && line == name {
            return true;
        }
    }
    false
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let (name, _) = line.strip_prefix("fn ")?.split_once('(')?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = "
#[test]
fn plain() {}

#[tokio::test(flavor = \"multi_thread\")]
#[cfg(unix)]
async fn waiting() {}

fn helper() {}

conformance! {
    listed
}

proptest! {
    #[test]
    fn lawful(value in any_value()) {}
}
";

    /// What is found on a page with this text beside one file of tests.
    fn found(page: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let findings = check(&[file(PAGE, page)], &[file("a/b.rs", RUST)]);
        findings.iter().map(ToString::to_string).collect()
    }

    fn row(test: &str) -> String {
        format!("# Locks\n\n| Lock | Test |\n| --- | --- |\n| It holds. | {test} |\n")
    }

    #[test]
    fn tests_of_every_shape_are_found() {
        for name in ["plain", "waiting", "listed", "lawful"] {
            assert_eq!(found(&row(&format!("`a/b.rs::{name}`"))), [""; 0], "{name}");
        }
        assert_eq!(found(&row("`a/b.rs::plain`, `a/b.rs::lawful`")), [""; 0]);
    }

    #[test]
    fn what_is_no_test_is_reported_with_its_line() {
        for name in ["helper", "absent", "proptest"] {
            assert_eq!(
                found(&row(&format!("`a/b.rs::plain`, `a/b.rs::{name}`"))),
                [format!(
                    "{PAGE}:5: a/b.rs has no test `{name}`; correct the name or write the test"
                )]
            );
        }
        assert_eq!(
            found(&row("`a/c.rs::plain`")),
            [format!("{PAGE}:5: there is no file a/c.rs; correct the path")]
        );
    }

    #[test]
    fn a_lock_without_a_test_and_a_missing_page_are_reported() {
        assert_eq!(found(&row("`plain`")).len(), 1);
        assert_eq!(check(&[], &[]).len(), 1);
    }

    #[test]
    fn other_tables_are_left_alone() {
        assert_eq!(found("| Here | Why |\n| --- | --- |\n| Other. | So. |\n"), [""; 0]);
    }
}
