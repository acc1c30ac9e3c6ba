//! The workflows whose runs are killed, and what has to come of them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::receiver::{Request, weight, well};

/// How many turns the loops take.
const TURNS: usize = 4;

/// What runs are made of: branches that merge, loops, tries that fail, waits, questions,
/// children and failures that another workflow is told of.
pub(super) fn workflows(port: u16, marks: &str) -> Vec<(&'static str, String)> {
    let head = |name: &str| format!("name: {name}\nrate_limit: 1000000/min\nconcurrency: 1000\n");
    let post = |path: &str| {
        format!(
            "type: http, method: POST, url: 'http://127.0.0.1:{port}/{{{{ run.id }}}}/{path}', body: {{ n: '{{{{ event.payload.n }}}}' }}"
        )
    };
    let wide = format!(
        "{}graph:
  nodes:
    - {{ id: fan, type: parallel, branches: [a, b, c], next: join }}
    - {{ id: a, {} }}
    - {{ id: b, {}, next: b2 }}
    - {{ id: b2, {} }}
    - {{ id: c, {} }}
    - {{ id: join, type: merge, inputs: [a, b2, c], strategy: object, next: each }}
    - {{ id: each, type: loop, count: {TURNS}, body: [turn], next: nap }}
    - {{ id: turn, {} }}
    - {{ id: nap, type: wait, duration_sec: 4, next: flaky }}
    - {{ id: flaky, {}, retry: {{ max: 5, backoff: fixed, delay_sec: 1 }}, next: sum }}
    - {{ id: sum, type: transform, engine: jq, input: '{{{{ steps.each.results }}}}', expression: '[.[] | .json.value] | add', next: done }}
    - {{ id: done, type: end, result: {{ a: '{{{{ steps.join.a.json.value }}}}', b: '{{{{ steps.join.b2.json.value }}}}', c: '{{{{ steps.join.c.json.value }}}}', flaky: '{{{{ steps.flaky.json.value }}}}', sum: '{{{{ steps.sum }}}}' }} }}
",
        head("Wide"), post("a"), post("b"), post("b2"), post("c"), post("turn/{{ index }}"), post("flaky")
    );
    let careful = format!(
        "{}graph:
  nodes:
    - {{ id: once, {}, on_interrupt: fail, on_failure: skip, next: asked }}
    - {{ id: asked, {}, on_interrupt: ask, on_failure: skip, next: nap }}
    - {{ id: nap, type: wait, duration_sec: 3, next: mark }}
    - {{ id: mark, type: shell, command: [sh, -c, 'echo \"$RUN $CAIRN_IDEMPOTENCY_KEY\" >> \"$MARKS\"'], env: {{ RUN: '{{{{ run.id }}}}', MARKS: '{marks}' }}, next: last }}
    - {{ id: last, {}, next: done }}
    - {{ id: done, type: end, result: '{{{{ steps.last.json.value }}}}' }}
",
        head("Careful"), post("once"), post("asked"), post("last")
    );
    let family = format!(
        "{}graph:
  nodes:
    - {{ id: each, type: loop, count: 3, body: [child], next: nap }}
    - {{ id: nap, type: wait, duration_sec: 3, next: done }}
    - {{ id: child, type: workflow, workflow: project.leaf, input: {{ n: '{{{{ event.payload.n }}}}' }} }}
    - {{ id: done, type: end, result: '{{{{ steps.each.results | map(attribute=\"result\") }}}}' }}
",
        head("Family")
    );
    let leaf = format!(
        "{}graph:\n  nodes:\n    - {{ id: a, {}, next: done }}\n    - {{ id: done, type: end, result: '{{{{ steps.a.json.value }}}}' }}\n",
        head("Leaf"),
        post("leaf")
    );
    let doomed = format!(
        "{}on_error: {{ trigger_workflow: project.mourner }}\ngraph:\n  nodes:\n    - {{ id: nap, type: wait, duration_sec: 3, next: a }}\n    - {{ id: a, {} }}\n",
        head("Doomed"),
        post("doomed")
    );
    let mourner = format!(
        "{}triggers:\n  - {{ type: error }}\ngraph:\n  nodes:\n    - {{ id: a, type: http, method: POST, url: 'http://127.0.0.1:{port}/{{{{ event.payload.run_id }}}}/mourned', body: {{ n: 0 }} }}\n",
        head("Mourner")
    );
    vec![
        ("wide", wide),
        ("careful", careful),
        ("family", family),
        ("leaf", leaf),
        ("doomed", doomed),
        ("mourner", mourner),
    ]
}

/// What the receiver answers: a number that is the same for the same path and body.
pub(super) fn answer(request: &Request, times: u32) -> Option<(u16, Value)> {
    let step = request.path.splitn(3, '/').nth(2).unwrap_or_default();
    // It takes its time, so that whenever the server is killed, something is under way.
    let most = if matches!(step, "a" | "once" | "asked" | "leaf" | "doomed") { 400 } else { 25 };
    std::thread::sleep(Duration::from_millis(u64::from(weight(&request.path) % most)));
    match (step, times) {
        ("doomed", _) => Some((400, json!({"error": "never"}))),
        ("flaky", 1) => Some((503, json!({"error": "later"}))),
        // Hangs up without a word.
        ("flaky", 2) => None,
        _ => well(&json!(value(step, request.number("n").unwrap_or_default()))),
    }
}

fn value(step: &str, n: u64) -> u64 {
    n * 1_000 + u64::from(weight(step) % 1_000)
}

/// The paths that a run must have asked at, each at least once.
pub(super) fn paths(workflow: &str) -> Vec<String> {
    let steps: &[&str] = match workflow {
        "project.wide" => &["a", "b", "b2", "c", "flaky"],
        // Of the other two none may be asked more than once.
        "project.careful" => &["last"],
        "project.leaf" => &["leaf"],
        "project.doomed" => &["doomed", "mourned"],
        _ => &[],
    };
    let turns = (0..TURNS).filter(|_| workflow == "project.wide");
    let turns = turns.map(|turn| format!("turn/{turn}"));
    steps.iter().map(ToString::to_string).chain(turns).collect()
}

/// What a run must come to; none when it has to fail.
pub(super) fn result(workflow: &str, n: u64) -> Option<Value> {
    let at = |step: &str| value(step, n);
    match workflow {
        "project.wide" => {
            let sum: u64 = (0..TURNS).map(|turn| at(&format!("turn/{turn}"))).sum();
            let (a, b, c, flaky) = (at("a"), at("b2"), at("c"), at("flaky"));
            Some(json!({"a": a, "b": b, "c": c, "flaky": flaky, "sum": sum}))
        }
        "project.careful" => Some(json!(at("last"))),
        "project.family" => Some(json!([at("leaf"), at("leaf"), at("leaf")])),
        "project.leaf" => Some(json!(at("leaf"))),
        _ => None,
    }
}
