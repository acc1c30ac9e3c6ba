//! Going on from an earlier step, in a run of its own.

use cairn_core::flow::{Change, Fork, NotThere};
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;
use serde_json::json;

use crate::play::{Play, graph};

const NODES: &str = "
    { id: a, type: log, message: a, next: b }
    { id: b, type: branch, expr: event.payload.n > 0, cases: { 'true': c, 'false': end } }
    { id: c, type: log, message: '{{ event.payload.n }}', next: d }
    { id: d, type: log, message: d }
";

fn key(text: &str) -> StepInstanceKey {
    text.parse().unwrap()
}

#[test]
fn a_fork_keeps_what_came_before_and_does_the_rest_again() {
    let mut play = Play::new(graph(NODES), json!({"n": 1}));
    play.start().play();
    let run = RunId::from_bits(8);
    let fork = Fork::new(&play.graph, &play.run.state, &key("c"), &[], run).unwrap();
    assert_eq!(fork.kept, [key("a"), key("b")]);
    let again: Vec<String> =
        fork.again.iter().map(|step| format!("{} {}", step.instance, step.has_effects)).collect();
    assert_eq!(again, ["c true", "d true"]);
    assert_eq!((fork.state.run_id, fork.state.end.as_ref()), (run, None));
}

#[test]
fn an_earlier_output_can_be_changed() {
    let nodes = "
        { id: a, type: transform, engine: template, template: x, next: b }
        { id: b, type: end, result: '{{ steps.a }}' }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start().play();
    let change = Change { instance: key("a"), output: json!(7) };
    let changes = std::slice::from_ref(&change);
    let run = RunId::from_bits(8);
    let fork = Fork::new(&play.graph, &play.run.state, &key("b"), changes, run).unwrap();
    let output = fork.state.steps[&key("a")].output.clone();
    assert_eq!(output, Some(cairn_core::event::engine::Payload::inline(json!(7))));
    let not_kept = Fork::new(&play.graph, &play.run.state, &key("a"), changes, run);
    assert_eq!(not_kept, Err(NotThere::NotKept(key("a"))));
}

#[test]
fn there_is_nothing_to_go_on_from_where_a_run_never_was() {
    let mut play = Play::new(graph(NODES), json!({"n": 0}));
    play.start().play();
    let run = RunId::from_bits(8);
    let found = Fork::new(&play.graph, &play.run.state, &key("c"), &[], run);
    assert_eq!(found, Err(NotThere::Unreached(key("c"))));
    let found = Fork::new(&play.graph, &play.run.state, &key("zz"), &[], run);
    assert_eq!(found, Err(NotThere::NotInPlan(key("zz"))));
}
