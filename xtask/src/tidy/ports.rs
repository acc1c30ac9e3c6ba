//! What is durable goes through the ports of the store: other crates open no file of the data
//! directory.

use super::{File, Finding};

/// The crates that hold no files of their own.
const CRATES: [&str; 5] =
    ["crates/api/", "crates/cli/", "crates/engine/", "crates/mcp/", "crates/server/"];

/// What leads to files.
const WAYS: [&str; 4] = ["std::fs", "tokio::fs", "rustix::fs", "tempfile::"];

/// The sources that may use files, and whose files those are.
const ALLOWED: [(&str, &str); 12] = [
    ("crates/cli/src/commands/guide/answers.rs", "answers that the user names"),
    ("crates/cli/src/commands/run/given.rs", "input that the user names"),
    ("crates/cli/src/commands/runs/export.rs", "a folder that the user names"),
    ("crates/cli/src/commands/session/export/file.rs", "a bundle that the user names"),
    ("crates/cli/src/commands/session/import.rs", "a bundle that the user names"),
    ("crates/cli/src/commands/workflow/new.rs", "the sources of a new workflow"),
    ("crates/cli/src/somebody.rs", "the system's list of users"),
    ("crates/engine/src/catalog.rs", "the sources of workflows"),
    ("crates/engine/src/catalog/identity.rs", "the sources of workflows"),
    ("crates/engine/src/catalog/tree.rs", "the sources of workflows"),
    ("crates/engine/src/file.rs", "the master key, and settings beside a workflow"),
    ("crates/engine/src/guided/workspace.rs", "the user's project"),
];

/// Reports sources that use files and are not on the list, and those on the list that use none.
pub(super) fn check(rust: &[File]) -> Vec<Finding> {
    let held = |file: &&File| CRATES.iter().any(|of| file.path.starts_with(of));
    let mut findings = Vec::new();
    for file in rust.iter().filter(held) {
        let is_allowed = ALLOWED.iter().any(|(path, _)| *path == file.path);
        match uses(file) {
            Some((line, way)) if !is_allowed => {
                let what = format!(
                    "`{way}` leads to files; keep what is durable behind a port of the store, or name the file in xtask/src/tidy/ports.rs with its reason"
                );
                findings.push(Finding::new(&file.path, line, what));
            }
            None if is_allowed => {
                let what = "it uses no files; take it off the list in xtask/src/tidy/ports.rs";
                findings.push(Finding::new(&file.path, 1, what.to_owned()));
            }
            _ => {}
        }
    }
    findings
}

/// The first line of a source, its tests aside, that leads to files.
fn uses(file: &File) -> Option<(usize, &'static str)> {
    let is_source = file.path.contains("/src/") && !file.path.ends_with("/tests.rs");
    // Tests stand at the end.
    let lines = file.text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    let code = lines.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.filter(|_| is_source).find_map(|(at, line)| {
        let way = WAYS.iter().find(|way| line.contains(**way))?;
        Some((at + 1, *way))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        check(&[file]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_are_for_the_store_and_for_those_on_the_list() {
        let text = "//! What it does.\n\nuse std::fs::File;\n";
        let told = found("crates/server/src/tokens.rs", text);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("crates/server/src/tokens.rs:3: `std::fs` leads to files"));
        for path in
            ["crates/store/src/files.rs", "crates/cli/tests/cli/a.rs", "crates/engine/src/file.rs"]
        {
            assert_eq!(found(path, text), [""; 0], "{path}");
        }
        for way in WAYS {
            assert_eq!(found("crates/cli/src/a.rs", &format!("    {way}x()")).len(), 1, "{way}");
        }
    }

    #[test]
    fn tests_and_remarks_may_use_and_name_them() {
        let text = "// Not by std::fs.\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(found("crates/cli/src/a.rs", text), [""; 0]);
        assert_eq!(found("crates/engine/src/a/tests.rs", "use std::fs;"), [""; 0]);
    }

    #[test]
    fn the_list_holds_nobody_who_uses_none() {
        let told = found("crates/engine/src/file.rs", "fn f() {}\n");
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("take it off the list"));
    }
}
