//! Loops: turns, results, limits.

use insta::assert_snapshot;
use serde_json::json;

use crate::play::{Play, graph, play};

const EACH: &str = "
    { id: each, type: loop, items: '{{ event.payload.list }}', body: [a, b], next: last }
    { id: a, type: log, message: '{{ item }} {{ index }}', next: b }
    { id: b, type: log, message: '{{ steps.a }}' , when: index > 0 }
    { id: last, type: end, result: '{{ steps.each.results }}' }
";

#[test]
fn a_loop_makes_a_turn_for_each_item_and_keeps_what_came_of_it() {
    let nodes = EACH.replace("'{{ steps.a }}'", "b");
    assert_snapshot!(play(&nodes, json!({"list": ["x", "y"]})), @r#"
    run started
    enter each
    start each@0::a 0
    done each@0::a {"message":"x 0"}
    skipped each@0::b Condition
    start each@1::a 0
    done each@1::a {"message":"y 1"}
    start each@1::b 0
    done each@1::b {"message":"b"}
    leave each 2
    done last {"result":[{"message":"x 0"},{"message":"b"}]}
    run completed [{"message":"x 0"},{"message":"b"}]
    "#);
}

#[test]
fn an_empty_list_makes_no_turn() {
    let told = play(&EACH.replace("'{{ steps.a }}'", "b"), json!({"list": []}));
    assert_snapshot!(told, @r#"
    run started
    enter each
    leave each 0
    done last {"result":[]}
    run completed []
    "#);
}

#[test]
fn nested_loops_have_keys_of_their_own() {
    let nodes = "
        { id: outer, type: loop, items: '{{ event.payload.list }}', as: row, body: [inner] }
        { id: inner, type: loop, items: '{{ row }}', as: cell, body: [a] }
        { id: a, type: log, message: '{{ cell }}' }
    ";
    let told = play(nodes, json!({"list": [[1, 2], [], [3]]}));
    assert_snapshot!(told, @r#"
    run started
    enter outer
    enter outer@0::inner
    start outer@0/inner@0::a 0
    done outer@0/inner@0::a {"message":1}
    start outer@0/inner@1::a 0
    done outer@0/inner@1::a {"message":2}
    leave outer@0::inner 2
    enter outer@1::inner
    leave outer@1::inner 0
    enter outer@2::inner
    start outer@2/inner@0::a 0
    done outer@2/inner@0::a {"message":3}
    leave outer@2::inner 1
    leave outer 3
    run completed {"iterations":3,"results":[{"iterations":2,"results":[{"message":1},{"message":2}]},{"iterations":0,"results":[]},{"iterations":1,"results":[{"message":3}]}]}
    "#);
}

#[test]
fn a_crash_anywhere_in_a_loop_changes_nothing_but_repetitions() {
    let nodes = EACH.replace("'{{ steps.a }}'", "b");
    let whole = play(&nodes, json!({"list": ["x", "y", "z"]}));
    for crash in 0..20 {
        let mut play = Play::new(graph(&nodes), json!({"list": ["x", "y", "z"]}));
        play.start();
        for _ in 0..crash {
            play.step();
        }
        let told = play.crash().play();
        let repeats = |line: &&str| {
            ["step interrupted", "step resolved"].contains(line)
                || (line.starts_with("start ") && line.ends_with(" 1"))
        };
        let once: Vec<&str> = told.lines().filter(|line| !repeats(line)).collect();
        assert_eq!(once, whole.lines().collect::<Vec<_>>(), "after {crash}");
        assert!(told.lines().filter(repeats).count() <= 3, "after {crash}: {told}");
    }
}

#[test]
fn a_loop_does_not_go_on_for_ever() {
    let endless = "
        { id: l, type: loop, while: 'true', max_iterations: 3, body: [a] }
        { id: a, type: log, message: a }
    ";
    let told = play(endless, json!({}));
    assert!(
        told.ends_with("failed l 0 LOOP_LIMIT then Stop\nrun failed LOOP_LIMIT at l"),
        "{told}"
    );
    let long = EACH.replace("'{{ steps.a }}'", "b").replace("body", "max_iterations: 1, body");
    let told = play(&long, json!({"list": [1, 2]}));
    assert!(told.ends_with("run failed LOOP_LIMIT at each"), "{told}");
}

#[test]
fn a_loop_goes_on_until_its_last_turn_says_enough() {
    let nodes = "
        { id: l, type: loop, while: 'steps.a is not defined', body: [a] }
        { id: a, type: log, message: a }
    ";
    for crash in 0..2 {
        let mut play = Play::new(graph(nodes), json!({}));
        play.start();
        for _ in 0..crash {
            play.step();
        }
        let told = play.crash().play();
        let turns = told.lines().filter(|line| line.starts_with("done l@0::a")).count();
        assert!(turns == 1 && told.contains("run completed"), "after {crash}: {told}");
    }
}

#[test]
fn a_run_begins_no_more_steps_than_it_may() {
    let nodes = "
        { id: l, type: loop, count: 900, body: [a] }
        { id: a, type: log, message: a }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.run.limits.steps_max = 100;
    let told = play.start().play();
    assert!(told.ends_with("run failed MAX_STEPS at l@100::a"), "{}", &told[told.len() - 200..]);
}

// case: limit.history
#[test]
fn a_run_has_no_longer_history_than_it_may() {
    let nodes = "
        { id: l, type: loop, count: 900, body: [a] }
        { id: a, type: log, message: a }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.run.limits.events_max = 100;
    let told = play.start().play();
    assert!(told.contains("run failed MAX_EVENTS at l@"), "{}", &told[told.len() - 200..]);
    let events = play.run.state.events;
    assert!((100..=102).contains(&events), "{events} events");
}

#[test]
fn a_loop_whose_items_are_no_list_says_so() {
    let told = play(&EACH.replace("'{{ steps.a }}'", "b"), json!({"list": 7}));
    assert!(told.ends_with("run failed LOOP_ITEMS at each"), "{told}");
}
