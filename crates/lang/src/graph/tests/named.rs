//! Cases in which a run would go another way than its author meant.

use super::*;

#[test]
fn what_follows_a_parallel_waits_for_its_branches() {
    let plan = with_nodes(
        "
  nodes:
    - { id: p, type: parallel, branches: [a, b], next: after }
    - { id: a, type: log, message: a, next: a2 }
    - { id: a2, type: log, message: a2 }
    - { id: b, type: log, message: b }
    - { id: after, type: log, message: all }
",
    )
    .unwrap();
    assert_snapshot!(drawn(&plan), @r#"
    p -> a
    p -> b
    a -> a2
    a2 -> p.join
    b -> p.join
    p.join -> after
    "#);
    assert_snapshot!(setting(&plan, "p.join", "inputs"), @r#"["a2","b"]"#);
}

#[test]
fn a_parallel_gives_the_outputs_of_its_branches_by_name() {
    let plan = with_nodes(
        "
  nodes:
    - { id: p, type: parallel, branches: [a, b], next: after }
    - { id: a, type: log, message: a, next: a2 }
    - { id: a2, type: shell, command: [df] }
    - { id: b, type: shell, command: [uptime] }
    - { id: after, type: log, message: '{{ steps.p.a.stdout }} {{.Node.p.b.stdout}} {{ steps.p }}' }
",
    )
    .unwrap();
    assert_snapshot!(setting(&plan, "after", "message"), @r#""{{ steps.a2.stdout }} {{ steps.b.stdout }} {{ {\"a\": steps.a2, \"b\": steps.b } }}""#);
}

#[test]
fn a_branch_that_can_end_at_several_steps_has_no_output() {
    let read = |read: &str| {
        with_nodes(&format!(
            "
  nodes:
    - {{ id: p, type: parallel, branches: [a, b, c] }}
    - {{ id: a, type: shell, command: [df], next: m }}
    - {{ id: b, type: branch, expr: event.payload.x, cases: {{ 'true': b1, 'false': b2 }} }}
    - {{ id: b1, type: shell, command: [uptime], next: m }}
    - {{ id: b2, type: shell, command: [date], next: m }}
    - {{ id: c, type: shell, command: [ls], next: m }}
    - {{ id: m, type: merge, inputs: [a, b1, b2, c], next: after }}
    - {{ id: after, type: log, message: '{{{{ {read} }}}}' }}
"
        ))
    };
    // The other branches keep theirs.
    let plan = read("steps.p.a.stdout ~ steps.p.c.stdout").unwrap();
    assert_snapshot!(setting(&plan, "after", "message"), @r#""{{ steps.a.stdout ~ steps.c.stdout }}""#);
    assert_snapshot!(setting(&read("steps.p").unwrap(), "after", "message"), @r#""{{ {\"a\": steps.a, \"c\": steps.c } }}""#);
    let wrong = |path: &str| {
        let found = read(path).unwrap_err();
        found.split_once("/graph/nodes/7/message: ").map(|(_, why)| why.to_owned()).unwrap_or(found)
    };
    assert_snapshot!(wrong("steps.p.b.stdout"), @"the branch `b` of `p` can end at several steps, and has no output; read one of its steps, or end it in one step or a `merge`");
    assert_snapshot!(wrong("steps.p.other"), @"`p` has no branch `other`; known are `a`, `b`, `c`");
}

#[test]
fn a_workflow_with_a_uuid_as_its_id_is_called_after_its_folder() {
    let nodes = "name: Test\ngraph:\n  nodes: [{ id: a, type: end }]\n";
    let id = |id: &str| compile(&format!("id: {id}\n{nodes}")).unwrap().plan.workflow_id;
    assert_eq!(id("0193e2b4-6c20-7a5f-8000-0123456789ab"), "project.w");
    assert_eq!(id("support-triage"), "project.support-triage");
}

#[test]
fn a_parallel_inside_another_is_joined_first() {
    let plan = with_nodes(
        "
  nodes:
    - { id: outer, type: parallel, branches: [inner, c], next: after }
    - { id: inner, type: parallel, branches: [a, b], next: d }
    - { id: a, type: log, message: a }
    - { id: b, type: log, message: b }
    - { id: c, type: log, message: c }
    - { id: d, type: log, message: d }
    - { id: after, type: log, message: all }
",
    )
    .unwrap();
    assert_snapshot!(setting(&plan, "inner.join", "inputs"), @r#"["a","b"]"#);
    assert_snapshot!(setting(&plan, "outer.join", "inputs"), @r#"["c","d"]"#);
}

#[test]
fn what_follows_a_parallel_waits_for_the_merges_in_its_branches() {
    let plan = with_nodes(
        "
  nodes:
    - { id: p, type: parallel, branches: [a, b], next: after }
    - { id: a, type: log, message: a, next: [x, y] }
    - { id: x, type: log, message: x }
    - { id: y, type: log, message: y }
    - { id: m, type: merge, inputs: [x, y], next: z }
    - { id: z, type: log, message: z }
    - { id: b, type: log, message: b }
    - { id: after, type: log, message: all }
",
    )
    .unwrap();
    assert_snapshot!(setting(&plan, "p.join", "inputs"), @r#"["z","b"]"#);
}

#[test]
fn a_merge_takes_the_ends_of_branches_when_it_names_no_inputs() {
    let plan = with_nodes(
        "
  nodes:
    - { id: p, type: parallel, branches: [a, b], next: m }
    - { id: a, type: log, message: a }
    - { id: b, type: log, message: b }
    - { id: m, type: merge, strategy: list }
",
    )
    .unwrap();
    assert_snapshot!(drawn(&plan), @r#"
    p -> a
    p -> b
    a -> m
    b -> m
    "#);
    assert_snapshot!(setting(&plan, "m", "inputs"), @r#"["a","b"]"#);
}

#[test]
fn a_step_after_a_switch_is_reached_from_every_branch() {
    let plan = with_nodes(
        "
  nodes:
    - { id: s, type: branch, expr: event.payload.kind, cases: { a: x, b: y, default: after } }
    - { id: x, type: log, message: x, next: after }
    - { id: y, type: log, message: y, next: after }
    - { id: after, type: log, message: '{{ steps.s.value }}' }
",
    )
    .unwrap();
    assert_eq!(plan.edges.iter().filter(|edge| edge.to.as_str() == "after").count(), 3);
}

#[test]
fn a_step_that_two_paths_of_a_run_lead_to_is_refused() {
    let found = with_nodes(
        "
  nodes:
    - { id: start, type: log, message: hi, next: [a, b] }
    - { id: a, type: log, message: a, next: after }
    - { id: b, type: log, message: b, next: after }
    - { id: after, type: log, message: all }
",
    );
    assert_snapshot!(found.unwrap_err(), @"w/workflow.yaml:9:13: error[runs_twice] /graph/nodes/3/id: `after` would run more than once: `a`, `b` lead to it in one run; put a `merge` with `inputs: [a, b]` in front of it");
}

#[test]
fn a_merge_with_an_untaken_input_is_fine() {
    let plan = with_nodes(
        "
  nodes:
    - { id: s, type: branch, expr: event.payload.kind, cases: { a: x, default: y } }
    - { id: x, type: log, message: x }
    - { id: y, type: log, message: y }
    - { id: m, type: merge, inputs: [x, y], strategy: first }
",
    );
    assert!(plan.is_ok(), "{plan:?}");
}

#[test]
fn a_fallback_is_reached_and_what_it_replaces_is_not_twice() {
    let plan = with_nodes(
        "
  nodes:
    - { id: a, type: http, url: https://example.org, on_failure: fallback, fallback: b, next: c }
    - { id: b, type: log, message: '{{ run.id }}', next: c }
    - { id: c, type: log, message: c }
",
    )
    .unwrap();
    assert_snapshot!(drawn(&plan), @r#"
    a -> c
    b -> c
    "#);
    assert_eq!(
        plan.steps[0].on_failure,
        plan::OnFailure::Fallback { step_id: "b".parse().unwrap() }
    );
}

#[test]
fn several_triggers_have_entries_of_their_own() {
    let text = "
name: Tickets
triggers:
  - { type: channel, channel: slack, event: message, entry_node: post-button }
  - { type: channel, channel: slack, event: action, entry_node: fetch-thread }
graph:
  nodes:
    - { id: post-button, type: log, message: x }
    - { id: fetch-thread, type: log, message: y, next: show }
    - { id: show, type: log, message: z }
";
    let plan = compile(text).unwrap().plan;
    let ids: Vec<&str> = plan.triggers.iter().map(|trigger| trigger.id.as_str()).collect();
    assert_eq!((ids, plan.entry), (vec!["channel", "channel-2"], Vec::new()));
}
