//! Cycles: visits, ways out, what a merge behind one knows, crashes and forks.

use std::collections::BTreeSet;

use cairn_core::flow::{Asker, Cut, Fork, NotThere};
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::RunState;
use insta::assert_snapshot;
use serde_json::json;

use crate::play::{Play, RUN, graph, play};

/// Counts to the number that the run was given.
const COUNT: &str = "
    { id: begin, type: log, message: begin, next: count }
    { id: count, type: transform, engine: jq, expression: '.', input: '{{ (steps.count.input | default(0)) + 1 }}', next: more }
    { id: more, type: branch, expr: 'steps.count.input < event.payload.n', cases: { 'true': count, 'false': last } }
    { id: last, type: end, result: '{{ steps.count.input }}' }
";

fn key(text: &str) -> StepInstanceKey {
    text.parse().unwrap()
}

#[test]
fn each_visit_is_an_instance_and_reads_the_last_one() {
    let told = play(COUNT, json!({"n": 3}));
    let told: Vec<&str> = told.lines().filter(|line| !line.contains("begin")).collect();
    assert_snapshot!(told.join("\n"), @r#"
    run started
    done count {"engine":"jq","expression":".","input":1}
    done more [true] {"value":true}
    done count~1 {"engine":"jq","expression":".","input":2}
    done more~1 [true] {"value":true}
    done count~2 {"engine":"jq","expression":".","input":3}
    done more~2 [false] {"value":false}
    done last {"result":3}
    run completed 3
    "#);
}

#[test]
fn a_run_keeps_the_last_visit_of_each_step_and_goes_on_from_it_after_a_crash() {
    let mut play = Play::new(graph(COUNT), json!({"n": 40}));
    play.start();
    let mut most = 0;
    while play.run.state.end.is_none() {
        most = most.max(play.run.state.steps.len());
        play.crash();
        if play.run.state.end.is_none() {
            play.step();
        }
    }
    assert!(play.told().ends_with("run completed 40"), "{}", play.told());
    assert!(most <= 5, "{most} steps are kept");
}

#[test]
fn a_cycle_that_goes_on_for_too_long_fails_the_run() {
    let nodes = COUNT.replace("id: count,", "id: count, max_visits: 4,");
    let told = play(&nodes, json!({"n": 40}));
    assert!(told.ends_with("run failed MAX_VISITS at count~4"), "{told}");
}

#[test]
fn a_merge_behind_a_cycle_knows_what_can_still_arrive() {
    // The token leaves by one way or ends inside: the merge waits for nothing else.
    let nodes = "
        { id: fan, type: parallel, branches: [a, other] }
        { id: other, type: log, message: other, next: join }
        { id: a, type: branch, expr: event.payload.text, cases: { left: join, again: b, default: c } }
        { id: b, type: log, message: b, when: event.payload.yes, on_failure: skip, next: a, max_visits: 2 }
        { id: c, type: branch, expr: 'event.payload.yes', when: event.payload.yes, cases: { 'true': join, 'false': a } }
        { id: join, type: merge, inputs: [a, c, other] }
    ";
    let told = |payload| play(nodes, payload).lines().last().unwrap().to_owned();
    assert_snapshot!(
        told(json!({"text": "left", "yes": true})),
        @r#"run completed {"a":{"value":"left"},"other":{"message":"other"}}"#
    );
    assert_snapshot!(
        told(json!({"text": "x", "yes": true})),
        @r#"run completed {"c":{"value":true},"other":{"message":"other"}}"#
    );
    assert_snapshot!(
        told(json!({"text": "x", "yes": false})),
        @r#"run completed {"other":{"message":"other"}}"#
    );
}

#[test]
fn a_loop_in_a_cycle_is_visited_and_a_body_may_begin_with_a_cycle() {
    let nodes = "
        { id: begin, type: log, message: begin, next: each }
        { id: each, type: loop, count: 2, body: [a, b, c], next: more }
        { id: a, type: log, message: a, next: b }
        { id: b, type: branch, expr: 'index == 0 and steps.b.value is undefined', cases: { 'true': a, 'false': c } }
        { id: c, type: log, message: c }
        { id: more, type: branch, expr: 'steps.more.value is undefined', cases: { 'true': each, 'false': last } }
        { id: last, type: log, message: last }
    ";
    let told = play(nodes, json!({}));
    let begun: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("done ")).collect();
    let begun: Vec<&str> = begun.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_snapshot!(begun.join(" "), @"begin each@0::a each@0::b each@0::a~1 each@0::b~1 each@0::c each@1::a each@1::b each@1::c more each~1@0::a each~1@0::b each~1@0::a~1 each~1@0::b~1 each~1@0::c each~1@1::a each~1@1::b each~1@1::c more~1 last");
}

fn fork(play: &Play, state: &RunState, from: &str) -> Result<Fork, NotThere> {
    let asker = Asker { name: "ada", answers: true, now_ms: 7, decided: &BTreeSet::new() };
    let from = Cut { step: &key(from), changes: &[], was: None };
    Fork::new(&play.graph, (state, &play.begun()), from, asker, RunId::from_bits(8))
}

#[test]
fn a_fork_at_a_visit_keeps_what_was_recorded_before_it_began() {
    let mut play = Play::new(graph(COUNT), json!({"n": 4}));
    play.start().play();
    let at = key("count~2");
    let begins =
        |event: &cairn_core::event::Event| cairn_core::flow::begins(&event.data) == Some(&at);
    let then = play.log.iter().position(begins).unwrap();
    let mut state = RunState::fold(RUN, &play.log[..then]);
    state.reach(&at);
    let fork = fork(&play, &state, "count~2").unwrap();
    let list = |keys: Vec<String>| keys.join(" ");
    assert_eq!(
        list(fork.kept.iter().map(ToString::to_string).collect()),
        "begin count count~1 more more~1"
    );
    assert_eq!(
        list(fork.again.iter().map(|step| step.instance.to_string()).collect()),
        "count~2 count~3 more~2 more~3 last"
    );
    let mut again = Play::empty(graph(COUNT), RunState { run_id: RUN, ..fork.state });
    let mut queued = play.log[0].clone();
    if let cairn_core::event::EventData::RunQueued(queued) = &mut queued.data {
        queued.forked_from = Some(cairn_core::event::engine::ForkedFrom {
            node_id: cairn_core::id::NodeId::from_bits(0),
            run_id: RUN,
            session_id: cairn_core::id::SessionId::from_bits(1),
            snapshot_ref: cairn_core::digest::SnapshotRef(cairn_core::digest::Digest::of(b"")),
            vouched: Vec::new(),
        });
    }
    again.log = vec![queued];
    again.tell(cairn_core::flow::Command::Start(again.started())).unwrap();
    let told = again.play();
    assert!(told.contains("done count~2") && !told.contains("done count~1 "), "{told}");
    assert!(told.ends_with("run completed 4"), "{told}");
}

#[test]
fn a_plan_that_changes_a_cycle_cannot_be_forked_onto() {
    let mut play = Play::new(graph(COUNT), json!({"n": 2}));
    play.start().play();
    let other = graph(
        &COUNT.replace("'false': last", "'false': count").replace("'true': count", "'true': last"),
    );
    let asker = Asker { name: "ada", answers: true, now_ms: 7, decided: &BTreeSet::new() };
    let cut = Cut { step: &key("last"), changes: &[], was: Some(&play.graph) };
    let run = RunId::from_bits(8);
    let found = Fork::new(&other, (&play.run.state, &play.begun()), cut, asker, run);
    assert!(matches!(found, Err(NotThere::Changed(_))), "{found:?}");
    let same = graph(&COUNT.replace("message: begin", "message: again"));
    assert!(Fork::new(&same, (&play.run.state, &play.begun()), cut, asker, run).is_ok());
}

#[test]
fn what_a_person_decided_on_an_earlier_visit_is_asked_again_too() {
    let nodes = "
        { id: begin, type: log, message: begin, next: ask }
        { id: ask, type: human, prompt: ok?, when: steps.ask.verdict is undefined, cases: { approved: back, default: out } }
        { id: back, type: log, message: back, next: ask }
        { id: out, type: log, message: out }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start().play();
    assert!(play.answer_all());
    assert!(play.play().contains("skipped ask~1"), "{}", play.told());
    let kept = |answers| {
        let asker = Asker { name: "bob", answers, now_ms: 7, decided: &BTreeSet::new() };
        let cut = Cut { step: &key("out"), changes: &[], was: None };
        let run = RunId::from_bits(8);
        let fork = Fork::new(&play.graph, (&play.run.state, &play.begun()), cut, asker, run);
        let kept: Vec<String> = fork.unwrap().kept.iter().map(ToString::to_string).collect();
        kept.join(" ")
    };
    assert_eq!(kept(false), "begin");
    assert_eq!(kept(true), "ask ask~1 back begin");
}
