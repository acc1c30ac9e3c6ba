//! Going on from an earlier step, in a run of its own.

use std::collections::BTreeSet;

use cairn_core::flow::{Asker, Change, Cut, Fork, NotThere};
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::RunState;
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

/// A fork for somebody who may answer everything, in the run 8.
fn forked(play: &Play, state: &RunState, from: &str, changes: &[Change]) -> Result<Fork, NotThere> {
    fork_for(play, state, (from, changes), ("ada", true))
}

fn fork_for(
    play: &Play,
    state: &RunState,
    (from, changes): (&str, &[Change]),
    (name, answers): (&str, bool),
) -> Result<Fork, NotThere> {
    let asker = Asker { name, answers, now_ms: 7, decided: &BTreeSet::new() };
    let from = Cut { step: &key(from), changes, was: None };
    Fork::new(&play.graph, (state, &play.begun()), from, asker, RunId::from_bits(8))
}

#[test]
fn a_fork_keeps_what_came_before_and_does_the_rest_again() {
    let mut play = Play::new(graph(NODES), json!({"n": 1}));
    play.start().play();
    let fork = forked(&play, &play.run.state, "c", &[]).unwrap();
    assert_eq!(fork.kept, [key("a"), key("b")]);
    let again: Vec<String> =
        fork.again.iter().map(|step| format!("{} {}", step.instance, step.has_effects)).collect();
    assert_eq!(again, ["c true", "d true"]);
    assert_eq!((fork.state.run_id, fork.state.end.as_ref()), (RunId::from_bits(8), None));
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
    let fork = forked(&play, &play.run.state, "b", changes).unwrap();
    let output = fork.state.steps[&key("a")].output.clone();
    assert_eq!(output, Some(cairn_core::event::engine::Payload::inline(json!(7))));
    let not_kept = forked(&play, &play.run.state, "a", changes);
    assert_eq!(not_kept, Err(NotThere::NotKept(key("a"))));
}

#[test]
fn there_is_nothing_to_go_on_from_where_a_run_never_was() {
    let mut play = Play::new(graph(NODES), json!({"n": 0}));
    play.start().play();
    let found = forked(&play, &play.run.state, "c", &[]);
    assert_eq!(found, Err(NotThere::Unreached(key("c"))));
    let found = forked(&play, &play.run.state, "zz", &[]);
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
        let fork = forked(&play, state, from, &[]).unwrap();
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

/// Who asks for a fork, from where, and what is asked or done again.
// case: approval.fork
#[test]
fn what_a_person_decided_is_asked_again_unless_whoever_asks_could_have_answered() {
    let open = "
        { id: a, type: log, message: a, next: ask }
        { id: ask, type: human, prompt: Pay?, cases: { approved: pay, rejected: end } }
        { id: pay, type: log, message: pay, next: done }
        { id: done, type: log, message: done }
    ";
    let named = open.replace("prompt: Pay?", "prompt: Pay?, who: [ada]");
    for (nodes, asker, from, again) in [
        (open, ("eve", false), "pay", "ask pay done"),
        (open, ("eve", false), "done", "ask pay done"),
        (open, ("eve", false), "ask", "ask pay done"),
        (open, ("eve", false), "a", "a ask pay done"),
        (open, ("eve", true), "pay", "pay done"),
        (&named, ("eve", true), "pay", "ask pay done"),
        (&named, ("ada", false), "pay", "ask pay done"),
        (&named, ("ada", true), "pay", "pay done"),
    ] {
        let case = format!("{asker:?} from {from} of {nodes}");
        let play = approved(nodes, json!({"boss": "ada"}));
        let fork = fork_for(&play, &play.run.state, (from, &[]), asker).unwrap();
        let done: Vec<String> = fork.again.iter().map(|step| step.instance.to_string()).collect();
        assert_eq!(done.join(" "), again, "{case}");
        let vouched = !again.contains("ask");
        assert_eq!(fork.vouched.contains(&key("ask")), vouched, "{case}");
        if vouched {
            let output = json!(fork.state.steps[&key("ask")].output);
            assert!(output.to_string().contains(&format!("\"by\":\"{}\"", asker.0)), "{output}");
        }
        let change = Change { instance: key("ask"), output: json!({"verdict": "approved"}) };
        let supplied = fork_for(&play, &play.run.state, ("done", &[change]), asker);
        assert_eq!(supplied, Err(NotThere::Decided(key("ask"))), "{case}");
    }
}

#[test]
fn what_a_person_decided_in_a_loop_is_asked_again_with_the_whole_loop() {
    let nodes = "
        { id: each, type: loop, items: '{{ event.payload.list }}', body: [ask, pay], next: done }
        { id: ask, type: human, prompt: Pay?, cases: { default: pay } }
        { id: pay, type: log, message: '{{ item }}' }
        { id: done, type: log, message: done }
    ";
    let play = approved(nodes, json!({"list": [1, 2]}));
    let told = |state: &RunState, from: &str, answers: bool| {
        let fork = fork_for(&play, state, (from, &[]), ("eve", answers)).unwrap();
        let again: Vec<String> = fork.again.iter().map(|step| step.instance.to_string()).collect();
        (again.join(" "), fork.vouched.len())
    };
    let all = "each@0::ask each@1::ask each@0::pay each@1::pay done each".to_owned();
    assert_eq!(told(&play.run.state, "done", false), (all.clone(), 0));
    assert_eq!(told(&play.run.state, "done", true), ("done".to_owned(), 1));
    let mut within = Play::new(graph(nodes), json!({"list": [1, 2]}));
    within.start();
    while !within.told().contains("start each@1::pay") {
        within.step();
        within.answer_all();
    }
    assert_eq!(told(&within.run.state, "each@1::pay", false), (all, 0));
    let (again, _) = told(&within.run.state, "each@1::pay", true);
    assert_eq!(again, "each@1::pay done");
}

/// A run in which everybody who was asked said yes.
fn approved(nodes: &str, payload: serde_json::Value) -> Play {
    let mut play = Play::new(graph(nodes), payload);
    play.start().play();
    while play.answer_all() {
        play.play();
    }
    play
}
