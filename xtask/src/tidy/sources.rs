//! Rust files stay short and leave nothing undone.

use super::{File, Finding};

const LINES_MAX: usize = 800;

/// What a source file must not hold, and what to do instead.
///
/// Written in halves, so that this file does not report itself.
const UNWANTED: &[(&str, &str)] = &[
    (concat!("todo", "!("), "do it, or leave it out"),
    (concat!("unimplemented", "!("), "do it, or leave it out"),
    (concat!("#[", "ignore"), "assert what happens today, or delete the test"),
];

/// Reports files that are too long and lines that hold something unwanted.
pub(super) fn check(rust: &[File]) -> Vec<Finding> {
    rust.iter().flat_map(|file| length(file).into_iter().chain(unwanted(file))).collect()
}

fn length(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    (lines > LINES_MAX).then(|| {
        let what = format!("{lines} lines are more than {LINES_MAX}; split the file by idea");
        Finding::new(&file.path, lines, what)
    })
}

fn unwanted(file: &File) -> impl Iterator<Item = Finding> {
    let lines = file.text.lines().enumerate();
    lines.flat_map(move |(index, line)| {
        let hits = UNWANTED.iter().filter(|(text, _)| line.contains(text));
        hits.map(move |(text, instead)| {
            Finding::new(&file.path, index + 1, format!("`{text}` is not allowed; {instead}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        check(&[file]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_of_800_lines_is_fine_and_one_more_is_not() {
        assert_eq!(findings(&"\n".repeat(800)), [""; 0]);
        assert_eq!(
            findings(&"\n".repeat(801)),
            ["a.rs:801: 801 lines are more than 800; split the file by idea"]
        );
    }

    #[test]
    fn unfinished_code_and_skipped_tests_are_reported() {
        for (text, _) in UNWANTED {
            let found = findings(&format!("fn f() {{\n    {text}\n}}\n"));
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].starts_with("a.rs:2: "));
        }
    }
}
