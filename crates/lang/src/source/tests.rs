use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// Every value with its pointer and its place, or what is wrong.
fn show(path: &str, text: &str) -> String {
    fn walk(node: &Node, pointer: &str, lines: &mut Vec<String>) {
        let Position { line, column } = node.at;
        match &node.value {
            Value::List(items) => {
                for (place, item) in items.iter().enumerate() {
                    walk(item, &format!("{pointer}/{place}"), lines);
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    walk(&entry.node, &format!("{pointer}/{}", entry.key), lines);
                }
            }
            _ => lines.push(format!("{line}:{column} {pointer} = {}", node.to_json())),
        }
    }
    match parse(path, text.as_bytes()) {
        Err(diagnostic) => diagnostic.to_string(),
        Ok(node) => {
            let mut lines = Vec::new();
            walk(&node, "", &mut lines);
            lines.join("\n")
        }
    }
}

#[test]
fn values_know_where_they_stand() {
    assert_snapshot!(show("w.json", "{\"a\": [1,\n  \"ü\\u00fc\", true], \"b\": {\"c\": null}}"), @r#"
    1:8 /a/0 = 1
    2:3 /a/1 = "üü"
    2:14 /a/2 = true
    2:32 /b/c = null
    "#);
    assert_snapshot!(show("w.yaml", "a:\n  - 1\n  - \"ü\\u00fc\"\n  - true\nb: {c: ~}\n"), @r#"
    2:5 /a/0 = 1
    3:5 /a/1 = "üü"
    4:5 /a/2 = true
    5:8 /b/c = null
    "#);
    assert_snapshot!(show("w", " {\"a\": -1.5e3}"), @"1:8 /a = -1500.0");
}

#[test]
fn only_true_false_and_numbers_are_other_than_text() {
    assert_snapshot!(show("w.yaml", "[no, on, Yes, 017, 1.10, 0x1f, 2026-01-01, '1', .5]"), @r#"
    1:2 /0 = "no"
    1:6 /1 = "on"
    1:10 /2 = "Yes"
    1:15 /3 = "017"
    1:20 /4 = 1.1
    1:26 /5 = "0x1f"
    1:32 /6 = "2026-01-01"
    1:44 /7 = "1"
    1:49 /8 = ".5"
    "#);
}

// case: source.duplicate-keys
// case: source.tags
#[test]
fn what_is_no_document_is_told_with_its_place() {
    let faults = [
        ("w.json", "{\"a\": 1,\n \"b\": 2,\n \"a\": 3}"),
        ("w.json", "{\"a\": 1,}"),
        ("w.json", "{\"a\": 1} x"),
        ("w.json", "{\"a\": yes}"),
        ("w.json", "{\"a\": \"b\n\"}"),
        ("w.json", "{\"a\": \"\\x\"}"),
        ("w.json", "// no\n{}"),
        ("w.json", ""),
        ("w.json", "{\"a\": 9007199254740993}"),
        ("w.json", "{\"a\": 01}"),
        ("w.yaml", "a: 1\nb: 2\na: 3\n"),
        ("w.yaml", "a: [1"),
        ("w.yaml", "a: &x 1\nb: *x"),
        ("w.yaml", "a: !!str 1"),
        ("w.yaml", "a: 1\n---\nb: 2"),
        ("w.yaml", "? [a]\n: 1"),
        ("w.yaml", "# only this\n"),
    ];
    let told: Vec<String> = faults.iter().map(|(path, text)| show(path, text)).collect();
    assert_snapshot!(told.join("\n"), @r#"
    w.json:3:2: error[duplicate_key]: `a` stands twice in one map, first in line 1; keep one of the two
    w.json:1:9: error[malformed]: `}` stands where a key in quotes should be; is there a `,` too many in front of it?
    w.json:1:10: error[malformed]: `x` stands where nothing more should be
    w.json:1:7: error[malformed]: `yes` is not a JSON value; put text in quotes
    w.json:1:7: error[malformed]: the text is not closed with `"`
    w.json:1:7: error[malformed]: the text has an escape that JSON has not
    w.json:1:1: error[malformed]: `/` stands where a value should be; JSON has no comments; YAML has
    w.json:1:1: error[malformed]: the text ends where a value should be
    w.json:1:7: error[invalid_value]: the number 9007199254740993 is beyond 2^53; write it as text, in quotes
    w.json:1:7: error[malformed]: `01` is not a number
    w.yaml:3:1: error[duplicate_key]: `a` stands twice in one map, first in line 1; keep one of the two
    w.yaml:1:4: error[malformed]: not YAML: unclosed bracket '['
    w.yaml:1:7: error[unsupported]: anchors (`&name`) are not taken; write the value out; text that begins with `&` goes in quotes
    w.yaml:1:4: error[unsupported]: tags (`!name`) are not taken; leave it out; text that begins with `!` goes in quotes
    w.yaml:2:1: error[unsupported]: a second document begins here; put each workflow into a file of its own
    w.yaml:1:3: error[unsupported]: a key must be text; put text with `{` or `[` in it in quotes
    w.yaml:1:1: error[malformed]: the file is empty
    "#);
}

// case: source.depth
#[test]
fn size_and_depth_are_bounded() {
    assert_snapshot!(show("w.json", &"[".repeat(1000)), @"w.json:1:66: error[too_deep]: lists and maps nest deeper than 64 levels");
    assert_snapshot!(show("w.yaml", &"[".repeat(1000)), @"w.yaml:1:256: error[too_deep]: lists and maps nest deeper than 64 levels");
    assert_snapshot!(show("w.json", &" ".repeat(BYTES_MAX + 1)), @"w.json:1:1: error[too_long]: the file has 1048577 bytes; at most 1048576 are read");
    assert_snapshot!(parse("w", b"{\n\xff}").unwrap_err(), @"w:2:1: error[malformed]: the text is not UTF-8");
}

proptest! {
    #[test]
    fn json_reads_as_serde_json_reads_it(text in r#"[\[\]{}:,"a1 \\e.-]{0,24}"#) {
        let ours = parse("w.json", text.as_bytes()).map(|node| node.to_json());
        let theirs: Result<serde_json::Value, _> = serde_json::from_str(&text);
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
            (Err(ours), Ok(_)) => prop_assert_eq!(ours.code, Code::DuplicateKey),
            (Ok(_), Err(theirs)) => prop_assert!(false, "{theirs}"),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,60}") {
        let _ = parse("w.yaml", text.as_bytes());
        let _ = parse("w.json", text.as_bytes());
    }
}
