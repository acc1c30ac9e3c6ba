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

/// As much as a file may hold.
const BYTES: usize = crate::source::BYTES_MAX - 4_096;

/// How many nodes share it.
const NODES_MANY: usize = 950;

/// A part, as often as it fits into so many bytes.
fn filling(bytes: usize, part: impl Fn(usize) -> String) -> String {
    let mut filled = String::new();
    for part in (0..).map(part) {
        if filled.len() + part.len() > bytes {
            break;
        }
        filled.push_str(&part);
    }
    filled
}

/// Nodes that fill a file: each is what is written before and behind what fills it.
fn nodes(node: impl Fn(usize, usize) -> String) -> String {
    let each = BYTES / NODES_MANY - 120;
    let nodes: String =
        (0..NODES_MANY).map(|n| format!("    - {{ {} }}\n", node(n, each))).collect();
    format!("name: Test\ngraph:\n  nodes:\n{nodes}")
}

/// A file that is as long as may be, for each way in which looking at one took long.
fn shapes() -> Vec<(&'static str, String)> {
    let log = |n: usize, text: &str| format!("id: a{n}, type: log, message: \"{text}\"");
    let many = |head: &str, line: &dyn Fn(usize) -> String| {
        format!("name: Test\n{NODES}{head}{}", filling(BYTES, line))
    };
    let sent = "'{{ event.payload.x }}'";
    vec![
        ("triggers", many("triggers:\n", &|n| format!("  - {{ type: manual, x: {n} }}\n"))),
        (
            "patterns of triggers",
            many("triggers:\n  - type: manual\n    input:\n", &|n| {
                format!("      f{n}: {{ type: string, pattern: '^(a{{1,99}}b{n}){{1,50}}$' }}\n")
            }),
        ),
        ("large patterns", {
            let field = |n| format!("      f{n}: {{ type: string, pattern: '^\\w{{250}}{n}$' }}\n");
            let fields: String = (0..199).map(field).collect();
            format!("name: Test\n{NODES}triggers:\n  - type: manual\n    input:\n{fields}")
        }),
        ("large patterns of a filter", {
            let text = |n| format!("{{{{ event.payload.x | matches('^\\\\pL{{250}}{n}$') }}}}");
            let text: String = (0..199).map(text).collect();
            format!(
                "name: Test\ngraph:\n  nodes:\n    - {{ id: a, type: log, message: \"{text}\" }}\n"
            )
        }),
        (
            "patterns",
            nodes(|n, each| {
                let pattern =
                    |m| format!("{{{{ event.payload.x | matches('^[^a]{{1,90}}{n}x{m}$') }}}}");
                log(n, &filling(each, pattern))
            }),
        ),
        (
            "the same pattern",
            nodes(|n, each| {
                log(
                    n,
                    &filling(each, |_| {
                        "{{ event.payload.x | matches ('^[^a]{1,90}$') }}".to_owned()
                    }),
                )
            }),
        ),
        ("unknown names", nodes(|n, each| log(n, &filling(each, |m| format!("{{{{ no{m} }}}}"))))),
        ("one text of unknown names", {
            let text = filling(BYTES, |_| "{{ a }}".to_owned());
            format!("name: Test\ngraph:\n  nodes:\n    - {{ {} }}\n", log(0, &text))
        }),
        (
            "variables",
            nodes(|n, each| {
                let env = filling(each, |m| format!("V{m}: '{{{{ no.x{m} }}}}', "));
                format!("id: a{n}, type: shell, command: [df], env: {{ {env} }}")
            }),
        ),
        (
            "variables that are program text",
            nodes(|n, each| {
                let env = filling(each, |m| format!("V{m}: {sent}, "));
                format!("id: a{n}, type: shell, command: [make], env: {{ {env} }}")
            }),
        ),
        ("faults", nodes(|n, each| log(n, &filling(each, |_| "{{ ( }}".to_owned())))),
        (
            "steps that have not run",
            nodes(|n, each| {
                let read = |m| format!("{{{{ steps.a{} }}}}", (n * 7 + m) % NODES_MANY);
                format!("{}, next: a{}", log(n, &filling(each, read)), n + 1)
            }),
        ),
        (
            "branches in branches",
            nodes(|n, _| {
                let branches: Vec<String> =
                    (n + 1..(n + 5).min(NODES_MANY)).map(|n| format!("a{n}")).collect();
                format!("id: a{n}, type: parallel, branches: [{}], next: a949", branches.join(", "))
            }),
        ),
        (
            "cases",
            nodes(|n, each| {
                let cases = filling(each, |m| format!("k{m}: a{}, ", (n * 31 + m) % NODES_MANY));
                format!("id: a{n}, type: branch, expr: event.payload.x, cases: {{ {cases} }}")
            }),
        ),
        (
            "lines",
            nodes(|n, each| {
                let line = filling(each, |_| "x$y|".to_owned());
                format!("id: a{n}, type: shell, stdin: {sent}, command: '{line}x'")
            }),
        ),
        ("one line", {
            let line = filling(BYTES / 5, |_| "sudo sh -c \"sh -c x$y\";".to_owned());
            format!(
                "name: Test\ngraph:\n  nodes:\n    - {{ id: a, type: shell, stdin: {sent}, command: '{line}' }}\n"
            )
        }),
        (
            "lines in lines",
            nodes(|n, each| {
                format!(
                    "id: a{n}, type: shell, stdin: {sent}, command: '{}'",
                    "$(".repeat(each / 2)
                )
            }),
        ),
        (
            "commands in commands",
            nodes(|n, each| {
                let words = "xargs, ".repeat(each / 7);
                format!("id: a{n}, type: shell, command: [{words}{sent}], stdin: {sent}")
            }),
        ),
    ]
}

// case: source.shapes
#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn a_file_of_the_allowed_size_is_looked_at_soon_whatever_its_shape() {
    for (name, text) in shapes() {
        assert!(text.len() <= crate::source::BYTES_MAX, "{name}: {}", text.len());
        let begun = Instant::now();
        let found = compile(&text).map_or_else(|found| found.len(), |fine| fine.warnings.len());
        assert!(begun.elapsed() < SOON, "{name} took {:?}", begun.elapsed());
        assert!(found <= TOLD_MAX + 1, "{name}: {found}");
        println!("{name}: {:?}", begun.elapsed());
    }
}

#[test]
fn what_takes_long_is_limited_and_told() {
    let told_of = |text: &str| {
        let found = told(text);
        found
            .iter()
            .map(|found| format!("{}: {}", found.pointer, found.message))
            .collect::<Vec<_>>()
    };
    let triggers = "  - { type: manual }\n".repeat(101);
    let found = told_of(&format!("name: Test\n{NODES}triggers:\n{triggers}"));
    assert_eq!(found, ["/triggers: there are 101 triggers; at most 100 may be"]);
    let text = "{{ event.payload.x | matches('a') }}".repeat(201);
    let node = format!(
        "name: Test\ngraph:\n  nodes:\n    - {{ id: a, type: log, message: \"{text}\" }}\n"
    );
    assert_eq!(told_of(&node), [": there are 201 patterns; at most 200 may be"]);
    let field =
        |n: usize, pattern: &str| format!("      f{n}: {{ type: string, pattern: '{pattern}' }}\n");
    let input = |fields: String| {
        told_of(&format!("name: Test\n{NODES}triggers:\n  - type: manual\n    input:\n{fields}"))
    };
    let found = input(field(0, r"(\w{50}){50}"));
    assert!(
        found.len() == 1 && found[0].contains("/f0/pattern: this pattern has the size"),
        "{found:?}"
    );
    let found = input((0..20).map(|n| field(n, r"^\w{250}$")).collect());
    assert!(found.len() == 1 && found[0].contains("are larger than 4000000 together"), "{found:?}");
}
