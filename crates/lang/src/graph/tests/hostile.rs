//! Files with more mistakes than anybody reads: few are told, the rest is counted, and soon.

use std::time::{Duration, Instant};

use super::*;
use crate::read::TOLD_MAX;

/// How many mistakes each file has.
const MANY: usize = 60_000;

/// How long looking at one may take, on a machine that does other things: by itself it takes a
/// second, and comparing everything with everything takes a minute.
const SOON: Duration = Duration::from_secs(30);

/// What is told of a file that does not compile.
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn told(text: &str) -> Vec<Diagnostic> {
    let begun = Instant::now();
    let found = compile(text).unwrap_err();
    assert!(begun.elapsed() < SOON, "it took {:?}", begun.elapsed());
    assert!(found.len() <= TOLD_MAX + 1, "{} are told", found.len());
    let bytes: usize = found.iter().map(|found| found.to_string().len()).sum();
    assert!(bytes < 1 << 20, "{bytes} bytes are told");
    found
}

fn repeated(line: impl Fn(usize) -> String) -> String {
    (0..MANY).map(line).collect()
}

const NODES: &str = "graph:\n  nodes:\n    - { id: a, type: log, message: x }\n";

#[test]
fn unknown_keys_are_counted() {
    let keys = repeated(|n| format!("key{n}: 1\n"));
    let found = told(&format!("name: Test\n{keys}{NODES}"));
    assert_eq!(found.len(), TOLD_MAX + 1);
    let last = found.last().unwrap();
    assert_eq!((last.code, last.severity), (Code::TooMany, Severity::Error));
    assert_eq!(last.message, "and 59,900 more");
    assert!(found[0].suggestion.is_some());
}

// case: source.shapes
#[test]
fn broken_steps_edges_and_names_are_told_soon() {
    let steps = repeated(|n| format!("{{id: s{n}}},"));
    told(&format!("name: Test\ngraph:\n  nodes: [{steps}]\n"));
    let steps: String =
        (0..900).map(|n| format!("    - {{ id: s{n}, type: nothing{n}, no{n}: 1 }}\n")).collect();
    told(&format!("name: Test\ngraph:\n  nodes:\n{steps}"));
    let edges = repeated(|n| format!("{{from: n{n}}},"));
    told(&format!("name: Test\n{NODES}  edges: [{edges}]\n"));
    let long = "n".repeat(400_000);
    told(&format!("name: Test\n{NODES}  edges:\n    - {{ from: {long}, to: a }}\n"));
    let fields = repeated(|n| format!(", no{n}: 1"));
    told(&format!(
        "name: Test\ngraph:\n  nodes:\n    - {{ id: a, type: log, message: x{fields} }}\n"
    ));
}

#[test]
fn what_is_not_told_still_counts_as_an_error() {
    let steps: String = (0..200)
        .map(|n| {
            format!("    - {{ id: s{n}, type: shell, command: [df], trusts_arguments: true }}\n")
        })
        .collect();
    let node = "    - { id: z, type: shell, command: [df], trusts_arguments: 3 }\n";
    let found = told(&format!("name: Test\ngraph:\n  nodes:\n{steps}{node}"));
    assert!(found.iter().any(|found| found.severity == Severity::Error));
}
