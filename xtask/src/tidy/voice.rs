//! No page and no source uses a phrase that was retired for a plain one.

use super::{File, Finding};

/// The pages at the root that people read. `CHANGELOG.md` is history.
const PAGES: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];

/// Retired phrases in lower case, and what to say instead.
///
/// A row is added when its phrase is gone everywhere, and stays for good.
const RETIRED: &[(&str, &str)] = &[
    ("belongs into", "belongs in"),
    ("called off", "cancelled"),
    ("came to nothing", "failed"),
    ("goes by this id", "has this id"),
    ("holds at once", "takes effect immediately"),
    ("in good order", "gracefully"),
    ("is at it", "is running it, or is using it"),
    ("is not made up for", "is not replayed"),
    ("plan was made at", "expected last event 3, found 4"),
    ("put it away", "delete it"),
    ("rests; go on with", "is paused; resume it with"),
    ("session is paper", "the session is read-only"),
    ("state of things", "status"),
    ("stays paper", "stays read-only"),
    ("take it in again", "import it again"),
    ("this token has not", "which this token lacks"),
    ("turned down", "rejected"),
    ("what they came to", "their outcome"),
    ("whoever has the role", "needs the role"),
];

/// Reports retired phrases, also those that are broken over lines.
pub(super) fn check(pages: &[File], rust: &[File]) -> Vec<Finding> {
    let pages = pages
        .iter()
        .filter(|page| page.path.starts_with("docs/") || PAGES.contains(&page.path.as_str()));
    let rust = rust.iter().filter(|file| file.path.starts_with("crates/"));
    pages.chain(rust.filter(|file| file.path.contains("/src/"))).flat_map(of_one).collect()
}

fn of_one(file: &File) -> Vec<Finding> {
    let (text, lines) = running(&file.text);
    let mut findings = Vec::new();
    for (phrase, instead) in RETIRED {
        for (at, _) in text.match_indices(phrase).filter(|(at, _)| is_whole(&text, *at, phrase)) {
            // The line on which the phrase begins.
            let line = lines.partition_point(|start| *start <= at);
            let what = format!("`{phrase}` is retired; say `{instead}`");
            findings.push(Finding::new(&file.path, line, what));
        }
    }
    findings
}

/// A text in lower case as it reads without its line breaks, and where each of its lines begins:
/// without the marks of comments, and without the backslashes that continue a string.
fn running(text: &str) -> (String, Vec<usize>) {
    let mut joined = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in text.lines() {
        starts.push(joined.len());
        let line = line.trim();
        let line =
            ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        let line = line.strip_suffix('\\').unwrap_or(line);
        for word in line.split_whitespace() {
            joined.push_str(&word.to_lowercase());
            joined.push(' ');
        }
    }
    (joined, starts)
}

/// Whether a phrase is no part of longer words.
fn is_whole(text: &str, at: usize, phrase: &str) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    let after = text.get(at + phrase.len()..).and_then(|text| text.chars().next());
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = || vec![File { path: path.to_owned(), text: text.to_owned() }];
        check(&file(), &file()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_retired_phrase_is_reported_with_its_line_and_what_to_say() {
        assert_eq!(
            found("docs/guide/a.md", "# A\n\nIt was Turned\ndown.\n"),
            ["docs/guide/a.md:3: `turned down` is retired; say `rejected`"]
        );
        for (phrase, _) in RETIRED {
            assert_eq!(found("README.md", &format!("It {phrase}.")).len(), 1, "{phrase}");
        }
    }

    #[test]
    fn comments_and_strings_are_read_over_their_line_breaks() {
        let comment = "fn f() {}\n\n/// What was missed is not made\n/// up for.\nfn g() {}\n";
        assert_eq!(
            found("crates/a/src/b.rs", comment),
            ["crates/a/src/b.rs:3: `is not made up for` is retired; say `is not replayed`"]
        );
        assert_eq!(found("crates/a/src/b.rs", "\"it was called \\\n     off\"").len(), 1);
    }

    #[test]
    fn parts_of_words_and_other_places_are_left_alone() {
        assert_eq!(found("README.md", "What is at item 3 is this attempt."), [""; 0]);
        for path in ["CHANGELOG.md", "examples/a.md", "crates/a/tests/b.rs", "xtask/src/a.rs"] {
            assert_eq!(found(path, "It was turned down."), [""; 0], "{path}");
        }
    }
}
