//! Which way a run goes.

use insta::assert_snapshot;
use serde_json::json;

use crate::play::{Play, graph, play};

const SWITCH: &str = "
    { id: s, type: branch, expr: event.payload.kind, cases: { a: x, b: y, default: after } }
    { id: x, type: log, message: x, next: after }
    { id: y, type: log, message: y, next: after }
    { id: after, type: log, message: '{{ steps.s.value }}' }
";

#[test]
fn a_step_after_a_switch_is_reached_from_every_branch() {
    for kind in ["a", "b", "c"] {
        let told = play(SWITCH, json!({"kind": kind}));
        assert_eq!(told.matches("done after").count(), 1, "{kind}:\n{told}");
        assert!(told.ends_with(&format!("run completed {{\"message\":\"{kind}\"}}")), "{told}");
    }
}

#[test]
fn a_sequence_costs_a_commit_more_than_it_has_steps() {
    let nodes = "
        { id: a, type: log, message: hi, next: b }
        { id: b, type: log, message: '{{ steps.a.message }} there' }
    ";
    let mut play =
        Play::new(graph(&nodes.replace("steps.a.message", "event.payload.x")), json!({"x": 1}));
    play.start();
    let mut commits = 1;
    while play.step() {
        commits += 1;
    }
    assert_eq!(commits, 1 + 2 + 1, "start, two outcomes, and the news of the end");
}

#[test]
fn parallel_branches_run_once_and_their_join_waits_for_all() {
    let nodes = "
        { id: p, type: parallel, branches: [a, b], next: after }
        { id: a, type: log, message: a, next: a2 }
        { id: a2, type: log, message: a2 }
        { id: b, type: log, message: b }
        { id: after, type: log, message: all }
    ";
    assert_snapshot!(play(nodes, json!({})), @r#"
    run started
    done p {}
    start a 0
    start b 0
    done a {"message":"a"}
    start a2 0
    done b {"message":"b"}
    done a2 {"message":"a2"}
    done p.join {"a2":{"message":"a2"},"b":{"message":"b"}}
    start after 0
    done after {"message":"all"}
    run completed {"message":"all"}
    "#);
}

#[test]
fn a_merge_with_an_untaken_input_neither_hangs_nor_spins() {
    let nodes = "
        { id: s, type: branch, expr: event.payload.n > 1, cases: { 'true': x, 'false': y } }
        { id: x, type: log, message: x }
        { id: y, type: log, message: y, next: z }
        { id: z, type: log, message: z }
        { id: m, type: merge, inputs: [x, z], strategy: list, next: last }
        { id: last, type: log, message: last }
    ";
    assert_snapshot!(play(nodes, json!({"n": 2})), @r#"
    run started
    done s [true] {"value":true}
    start x 0
    done x {"message":"x"}
    done m [{"message":"x"}]
    start last 0
    done last {"message":"last"}
    run completed {"message":"last"}
    "#);
    let told = play(nodes, json!({"n": 1}));
    assert!(told.contains(r#"done m [{"message":"z"}]"#), "{told}");
}

#[test]
fn a_branch_that_leads_nowhere_fails() {
    let nodes = "
        { id: s, type: branch, expr: event.payload.n, cases: { 'true': x, 'false': y } }
        { id: x, type: log, message: x }
        { id: y, type: log, message: y }
    ";
    let told = play(nodes, json!({"n": "TRUE"}));
    assert!(told.contains("BRANCH_CASE") && told.contains("run failed"), "{told}");
    for fine in [json!(true), json!("false")] {
        let told = play(nodes, json!({"n": fine}));
        assert!(told.contains("run completed"), "{told}");
    }
}

#[test]
fn a_merge_of_which_no_input_is_taken_is_passed_over() {
    let nodes = "
        { id: s, type: branch, expr: event.payload.n, cases: { '1': x, default: end } }
        { id: x, type: parallel, branches: [a, b], next: m }
        { id: a, type: log, message: a }
        { id: b, type: log, message: b }
        { id: m, type: merge, inputs: [a, b], next: last }
        { id: last, type: log, message: last }
    ";
    assert_snapshot!(play(nodes, json!({"n": 2})), @r#"
    run started
    done s [2] {"value":2}
    done end {"result":null}
    run completed null
    "#);
}

#[test]
fn the_first_input_is_enough_for_a_merge_that_takes_the_first() {
    let nodes = "
        { id: p, type: parallel, branches: [a, b], next: m }
        { id: a, type: log, message: a }
        { id: b, type: log, message: b }
        { id: m, type: merge, inputs: [a, b], strategy: first, next: last }
        { id: last, type: end, result: '{{ steps.m.message }}' }
    ";
    assert_snapshot!(play(nodes, json!({})), @r#"
    run started
    done p {}
    start a 0
    start b 0
    done a {"message":"a"}
    done m {"message":"a"}
    done last {"result":"a"}
    done b {"message":"b"}
    run completed "a"
    "#);
}

#[test]
fn a_step_whose_condition_does_not_hold_is_passed_over_and_its_successors_are_not() {
    let nodes = "
        { id: a, type: log, message: a, when: event.payload.n == 1, next: b }
        { id: b, type: log, message: b }
    ";
    assert_snapshot!(play(nodes, json!({"n": 2})), @r#"
    run started
    skipped a Condition
    start b 0
    done b {"message":"b"}
    run completed {"message":"b"}
    "#);
}

#[test]
fn a_run_begins_where_its_trigger_says() {
    let text = "
name: Two
triggers:
  - { type: manual, id: one, entry_node: a }
  - { type: manual, id: two, entry_node: b }
graph:
  nodes:
    - { id: a, type: log, message: a, next: m }
    - { id: b, type: log, message: b, next: m }
    - { id: m, type: merge, inputs: [a, b] }
";
    let mut play = Play::new(crate::play::whole(text), json!({}));
    play.run.state.queued.as_mut().unwrap().trigger_id = Some("two".parse().unwrap());
    if let cairn_core::event::EventData::RunQueued(queued) = &mut play.log[0].data {
        queued.trigger_id = Some("two".parse().unwrap());
    }
    assert_snapshot!(play.start().play(), @r#"
    run started
    start b 0
    done b {"message":"b"}
    done m {"b":{"message":"b"}}
    run completed {"b":{"message":"b"}}
    "#);
}

#[test]
fn what_cannot_be_evaluated_fails_the_step_and_names_the_path() {
    let nodes = "{ id: s, type: branch, expr: event.payload.no, cases: { a: end, default: end } }";
    let told = play(nodes, json!({}));
    assert!(
        told.contains("failed s 0 EXPR_UNDEFINED then Stop\nrun failed EXPR_UNDEFINED at s"),
        "{told}"
    );
}
