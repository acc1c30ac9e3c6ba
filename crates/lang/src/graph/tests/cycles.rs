//! Edges that lead back: what may stand in a cycle, and what cannot.

use super::with_nodes;

/// Each of these is refused, with these words.
fn refused(cases: &[(&str, &str)]) {
    for (nodes, wanted) in cases {
        let found = with_nodes(&format!("  entry: a\n  nodes:\n{nodes}\n")).unwrap_err();
        assert!(found.contains(wanted), "{nodes}\n{found}");
    }
}

#[test]
fn edges_may_lead_back() {
    let nodes = "  entry: a\n  nodes:
    - { id: a, type: log, message: a, next: b }
    - { id: b, type: human, prompt: ok?, cases: { approved: c, rejected: a }, max_visits: 3 }
    - { id: c, type: loop, count: 2, body: [d, e], max_visits: 2, next: f }
    - { id: d, type: log, message: d, next: e }
    - { id: e, type: branch, expr: index, cases: { '0': d, default: h } }
    - { id: h, type: log, message: h }
    - { id: f, type: branch, expr: steps.c.iterations, cases: { '1': c, default: g } }
    - { id: g, type: log, message: g }
";
    let plan = with_nodes(&nodes.replace("[d, e]", "[d, e, h]")).unwrap();
    let visits: Vec<u32> = plan.steps.iter().filter_map(|step| step.visits_max).collect();
    assert_eq!((visits, plan.loops[0].visits_max), (vec![3], Some(2)));
}

#[test]
fn a_cycle_has_one_token_and_a_way_out() {
    refused(&[
        (
            "    - { id: a, type: parallel, branches: [b, c] }
    - { id: b, type: log, message: b }
    - { id: c, type: branch, expr: event.text, cases: { again: a, default: end } }",
            "`a` would divide the cycle of `a`, `c`; put it into the body of a `loop`",
        ),
        (
            "    - { id: a, type: log, message: a, next: [b, c] }
    - { id: b, type: branch, expr: event.text, cases: { again: a, default: end } }
    - { id: c, type: log, message: c }",
            "`a` leads to `b`, `c` at once, and the cycle of `a`, `b` has one token",
        ),
        (
            "    - { id: a, type: log, message: a, next: m }
    - { id: m, type: merge, inputs: [a, b], next: b }
    - { id: b, type: branch, expr: event.text, cases: { again: m, default: end } }",
            "`m` would wait for several inputs in the cycle of `m`, `b`",
        ),
        (
            "    - { id: a, type: log, message: a, next: b }
    - { id: b, type: log, message: b, next: a }",
            "the cycle of `a`, `b` has no way out",
        ),
    ]);
}

#[test]
fn a_run_enters_a_cycle_once_and_knows_where() {
    refused(&[
        (
            "    - { id: a, type: log, message: a, next: [b, c] }
    - { id: b, type: log, message: b, next: c }
    - { id: c, type: branch, expr: event.text, cases: { again: b, default: end } }",
            "the cycle of `b`, `c` would run more than once: `a` lead to it in one run",
        ),
        (
            "    - { id: a, type: loop, count: 2, body: [b], next: c }
    - { id: b, type: log, message: b }
    - { id: c, type: branch, expr: event.text, cases: { again: b, default: end } }",
            "the way from `c` to `b` crosses the bounds of a loop",
        ),
        (
            "    - { id: a, type: log, message: a, max_visits: 3 }",
            "the step is in no cycle, so that `max_visits` limits nothing",
        ),
    ]);
    let found = with_nodes(
        "  nodes:
    - { id: a, type: log, message: a, next: b }
    - { id: b, type: branch, expr: event.text, cases: { again: a, default: end } }
",
    );
    assert!(found.unwrap_err().contains("the run begins in the cycle of `a`, `b`; say `entry"));
}

#[test]
fn a_step_of_a_cycle_may_read_its_own_last_output() {
    let own = "  entry: a\n  nodes:
    - { id: a, type: http, url: 'https://example.org/', body: { last: \"{{ steps.a.status | default(0) }}\" }, next: b }
    - { id: b, type: branch, expr: steps.a.status, cases: { '500': a, default: end } }
";
    let found = with_nodes(own);
    assert!(found.is_ok(), "{found:?}");
    let found = with_nodes(&own.replace("'500': a, ", "")).unwrap_err();
    assert!(found.contains("`a` cannot read its own output"), "{found}");
}
