//! What a principal changes passes the record of who changed what: doors ask for it there.

use super::{File, Finding};

/// The crates that are doors.
const DOORS: [&str; 3] = ["crates/cli/src/", "crates/mcp/src/", "crates/server/src/"];

/// What changes something without recording it, and who does it with.
const AROUND: [(&str, &str); 12] = [
    ("bundle::export(", "Changes::export"),
    ("bundle::import(", "Changes::import"),
    ("bundle::salvage(", "Changes::salvage"),
    ("gc::collect(", "Changes::collect"),
    ("keys.rotate(", "Changes::rotate_keys"),
    ("sessions.delete(", "Changes::delete_session"),
    ("sessions.keep(", "Changes::keep_session"),
    ("settings::rebind(", "Changes::rebind"),
    ("settings::set(", "Changes::set_setting"),
    ("settings::unset(", "Changes::unset_setting"),
    ("vault(store)?.", "Changes, unless it only reads"),
    ("vault.set(", "Changes::set_secret"),
];

/// What only reads.
const READS: [&str; 2] = ["vault(store)?.list(", "vault(store)?.signing("];

/// Reports doors that go around the record.
pub(super) fn check(rust: &[File]) -> Vec<Finding> {
    let is_door = |file: &&File| DOORS.iter().any(|door| file.path.starts_with(door));
    rust.iter().filter(is_door).flat_map(of_one).collect()
}

fn of_one(file: &File) -> Vec<Finding> {
    // Tests stand at the end, or in a file of their own.
    let is_test = file.path.ends_with("/tests.rs");
    let lines = file.text.lines().take_while(|line| !is_test && !line.starts_with("#[cfg(test)]"));
    let code = lines.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.filter_map(|(at, line)| {
        let reads = READS.iter().any(|reads| line.contains(reads));
        let found = AROUND.iter().find(|(way, _)| line.contains(way) && !reads);
        let (way, instead) = found?;
        let what = format!("`{way}…)` changes something without recording it; use `{instead}`");
        Some(Finding::new(&file.path, at + 1, what))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&[File { path: path.to_owned(), text: text.to_owned() }]).len()
    }

    #[test]
    fn doors_go_through_the_record() {
        for (way, _) in AROUND {
            let text = format!("fn f() {{\n    {way}x);\n}}\n");
            for door in DOORS {
                assert_eq!(found(&format!("{door}a.rs"), &text), 1, "{way}");
            }
            assert_eq!(found("crates/engine/src/record/changes.rs", &text), 0, "{way}");
            assert_eq!(found("crates/cli/src/a.rs", &format!("#[cfg(test)]\n{text}")), 0);
        }
        assert_eq!(found("crates/cli/src/a.rs", "config.vault(store)?.list().await"), 0);
    }
}
