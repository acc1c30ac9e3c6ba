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
    let fork = Fork::new(&play.graph, &play.run.state, &play.begun(), &key("c"), &[], run).unwrap();
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
    let fork =
        Fork::new(&play.graph, &play.run.state, &play.begun(), &key("b"), changes, run).unwrap();
    let output = fork.state.steps[&key("a")].output.clone();
    assert_eq!(output, Some(cairn_core::event::engine::Payload::inline(json!(7))));
    let not_kept = Fork::new(&play.graph, &play.run.state, &play.begun(), &key("a"), changes, run);
    assert_eq!(not_kept, Err(NotThere::NotKept(key("a"))));
}

#[test]
fn there_is_nothing_to_go_on_from_where_a_run_never_was() {
    let mut play = Play::new(graph(NODES), json!({"n": 0}));
    play.start().play();
    let run = RunId::from_bits(8);
    let found = Fork::new(&play.graph, &play.run.state, &play.begun(), &key("c"), &[], run);
    assert_eq!(found, Err(NotThere::Unreached(key("c"))));
    let found = Fork::new(&play.graph, &play.run.state, &play.begun(), &key("zz"), &[], run);
    assert_eq!(found, Err(NotThere::NotInPlan(key("zz"))));
}

#[test]
fn a_fork_within_a_loop_tells_of_every_turn_that_is_made_again() {
    let nodes = "
        { id: each, type: loop, items: '{{ event.payload.list }}', body: [work], next: done }
        { id: work, type: log, message: '{{ item }}' }
        { id: done, type: log, message: done }
    ";
    let mut play = Play::new(graph(nodes), json!({"list": [1, 2, 3]}));
    play.start();
    while !play.told().contains("start each@1::work") {
        play.step();
    }
    let then = play.run.state.clone();
    play.play();
    let told = |state: &cairn_core::projection::run::RunState, from: &str| {
        let run = RunId::from_bits(8);
        let fork = Fork::new(&play.graph, state, &play.begun(), &key(from), &[], run).unwrap();
        let list = |keys: Vec<String>| keys.join(" ");
        let again = fork.again.iter().map(|step| step.instance.to_string()).collect();
        format!("{} | {}", list(fork.kept.iter().map(ToString::to_string).collect()), list(again))
    };
    assert_eq!(
        told(&then, "each@1::work"),
        "each@0::work | each@1::work each@2::work done",
        "from the middle"
    );
    assert_eq!(
        told(&play.run.state, "each"),
        " | each@0::work each@1::work each@2::work done each",
        "from the loop itself"
    );
    assert_eq!(
        told(&play.run.state, "done"),
        "each each@0::work each@1::work each@2::work | done",
        "behind it"
    );
}
