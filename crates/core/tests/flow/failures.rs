//! What failures, pauses, cancels and crashes lead to.

use std::collections::BTreeSet;

use cairn_core::event::engine::{EndStatus, InterruptDecision};
use cairn_core::event::{Event, NewEvent};
use cairn_core::flow::{Command, Effect, Fault, Rejection, part};
use cairn_core::id::ChangeId;
use cairn_core::instance::StepInstanceKey;
use insta::assert_snapshot;
use serde_json::json;

use crate::play::{Play, graph, unsound};

fn failing(nodes: &str, step: &str, times: u32) -> Play {
    let mut play = Play::new(graph(nodes), json!({}));
    play.failing.insert(step.to_owned(), times);
    play
}

#[test]
fn a_fallback_really_runs() {
    let nodes = "
        { id: a, type: log, message: a, on_failure: fallback, fallback: b, next: c }
        { id: b, type: log, message: b, next: c }
        { id: c, type: log, message: c }
    ";
    assert_snapshot!(failing(nodes, "a", 1).start().play(), @r#"
    run started
    start a 0
    failed a 0 TEST then Fallback
    start b 0
    done b {"message":"b"}
    start c 0
    done c {"message":"c"}
    run completed {"message":"c"}
    "#);
    let told = failing(nodes, "a", 0).start().play();
    assert!(!told.contains("start b"), "{told}");
}

#[test]
fn what_a_failed_step_gave_can_be_looked_at_behind_it() {
    let skip = "
        { id: a, type: log, message: a, on_failure: skip, next: b }
        { id: b, type: log, message: b }
    ";
    let fallback = "
        { id: a, type: log, message: a, on_failure: fallback, fallback: b }
        { id: b, type: log, message: b }
    ";
    for nodes in [skip, fallback] {
        let graph = unsound(nodes, "b", "message", &json!("{{ steps.a.stderr }}"));
        let mut play = Play::new(graph, json!({}));
        play.start().owed.clear();
        let output = Some(json!({"exit_code": 3, "stderr": "no space left"}));
        let fault = Fault { output, ..Fault::new("SHELL_EXIT", "exit code 3") };
        let instance = StepInstanceKey::of("a".parse().unwrap());
        play.tell(Command::Complete { instance, result: Err(fault), duration_ms: 1 }).unwrap();
        let told = play.play();
        assert!(told.ends_with(r#"run completed {"message":"no space left"}"#), "{told}");
    }
}

#[test]
fn why_a_step_failed_can_be_looked_at_behind_it() {
    let nodes = "
        { id: a, type: log, message: a, on_failure: skip, next: b }
        { id: b, type: log, message: b }
    ";
    let message = json!("{{ steps.a.error.code }}, {{ steps.a.stderr | default('none') }}");
    for (output, told) in [
        (None, "HTTP_REFUSED, none"),
        (Some(json!({"stderr": "x"})), "HTTP_REFUSED, x"),
        (Some(json!({"error": {"code": "its own"}})), "its own, none"),
    ] {
        let mut play = Play::new(unsound(nodes, "b", "message", &message), json!({}));
        play.start().owed.clear();
        let fault = Fault { output, ..Fault::new("HTTP_REFUSED", "nobody listens") };
        let instance = StepInstanceKey::of("a".parse().unwrap());
        play.tell(Command::Complete { instance, result: Err(fault), duration_ms: 1 }).unwrap();
        let all = play.play();
        assert!(all.ends_with(&format!("run completed {}", json!({"message": told}))), "{all}");
    }
    // Of a step that went well there is none.
    let message = json!("{{ steps.a.error.code | default('fine') }}");
    let mut play = Play::new(unsound(nodes, "b", "message", &message), json!({}));
    let all = play.start().play();
    assert!(all.ends_with(r#"run completed {"message":"fine"}"#), "{all}");
}

#[test]
fn what_a_failed_step_gave_is_no_input_of_a_merge() {
    let nodes = "
        { id: a, type: log, message: a, on_failure: skip, next: m }
        { id: m, type: merge, inputs: [a] }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start().owed.clear();
    let fault = Fault { output: Some(json!({"stderr": "x"})), ..Fault::new("SHELL_EXIT", "3") };
    let instance = StepInstanceKey::of("a".parse().unwrap());
    play.tell(Command::Complete { instance, result: Err(fault), duration_ms: 1 }).unwrap();
    assert!(play.play().ends_with("run completed {}"), "{}", play.told());
}

#[test]
fn skipping_a_failed_step_keeps_its_successors() {
    let nodes = "
        { id: a, type: log, message: a, on_failure: skip, next: b }
        { id: b, type: log, message: b }
    ";
    assert_snapshot!(failing(nodes, "a", 1).start().play(), @r#"
    run started
    start a 0
    failed a 0 TEST then Skip
    start b 0
    done b {"message":"b"}
    run completed {"message":"b"}
    "#);
}

// case: limit.retries
#[test]
fn a_failed_step_is_tried_again_with_growing_pauses() {
    let nodes = "{ id: a, type: log, message: a, retry: { max: 3, delay_sec: 2, max_delay_sec: 3, jitter: false } }";
    assert_snapshot!(failing(nodes, "a", 3).start().play(), @r#"
    run started
    start a 0
    failed a 0 TEST then Retry
    timer Retry 3000
    timer fired
    start a 1
    failed a 1 TEST then Retry
    timer Retry 6000
    timer fired
    start a 2
    failed a 2 TEST then Retry
    timer Retry 9000
    timer fired
    start a 3
    done a {"message":"a"}
    run completed {"message":"a"}
    "#);
    let told = failing(nodes, "a", 4).start().play();
    assert!(told.ends_with("failed a 3 TEST then Stop\nrun failed TEST at a"), "{told}");
}

#[test]
fn every_try_and_every_repetition_carries_one_key() {
    let nodes = "{ id: a, type: log, message: a, retry: { max: 3, delay_sec: 1 } }";
    let mut play = failing(nodes, "a", 2);
    play.start();
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..12 {
        keys.extend(play.owed.iter().filter_map(|effect| match effect {
            Effect::Perform { key, .. } => Some(*key),
            _ => None,
        }));
        play.crash();
        play.step();
    }
    assert_eq!(keys.len(), 1);
    assert!(play.told().ends_with("run completed {\"message\":\"a\"}"), "{}", play.told());
}

#[test]
fn a_failure_ends_what_is_under_way_beside_it() {
    let nodes = "
        { id: p, type: parallel, branches: [a, b], next: c }
        { id: a, type: log, message: a }
        { id: b, type: log, message: b }
        { id: c, type: log, message: c }
    ";
    let mut play = failing(nodes, "a", 1);
    play.start();
    assert!(play.step() && play.owed.contains(&Effect::CallOff), "{:?}", play.owed);
    assert!(play.told().ends_with("run failed TEST at a"));
    let late = Command::Complete {
        instance: "b".parse().unwrap(),
        result: Err(cairn_core::flow::Fault::new("X", "x")),
        duration_ms: 1,
    };
    assert_eq!(play.tell(late), Err(Rejection::Ended));
}

#[test]
fn a_crash_repeats_fails_or_asks_as_the_step_says() {
    for (what, end) in [("retry", "run completed"), ("fail", "run failed STEP_INTERRUPTED at a")] {
        let nodes = format!("{{ id: a, type: log, message: a, on_interrupt: {what} }}");
        let told = Play::new(graph(&nodes), json!({})).start().crash().play();
        assert!(told.lines().last().unwrap().starts_with(end), "{told}");
    }
    let nodes = "{ id: a, type: log, message: a, on_interrupt: ask }";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start().crash();
    assert!(play.owed.is_empty(), "nothing is performed until somebody decides");
    let resolve =
        |decision| Command::Resolve { instance: "a".parse().unwrap(), by: "ada".into(), decision };
    play.tell(resolve(InterruptDecision::Retry)).unwrap();
    assert_snapshot!(play.play(), @r#"
    run started
    start a 0
    step interrupted
    step resolved
    start a 1
    done a {"message":"a"}
    run completed {"message":"a"}
    "#);
    assert_eq!(play.tell(resolve(InterruptDecision::Skip)), Err(Rejection::Ended));
}

#[test]
fn a_run_goes_on_from_every_part_of_a_decision() {
    let nodes = "
        { id: split, type: parallel, next: [a, b, each] }
        { id: a, type: log, message: a, retry: { max: 2, delay_sec: 1 }, next: pause }
        { id: pause, type: wait, duration_sec: 5, next: m }
        { id: b, type: log, message: b, on_failure: skip, next: m }
        { id: each, type: loop, items: [1, 2], body: [inner], next: m }
        { id: inner, type: log, message: '{{ item }}' }
        { id: m, type: merge, inputs: [pause, b, each], next: last }
        { id: last, type: log, message: 'a {{ steps.each.iterations }}' }
    ";
    let recorded = |crashes: u32| {
        let mut play = failing(nodes, "a", 1);
        play.failing.insert("b".to_owned(), 1);
        play.start();
        for _ in 0..crashes {
            play.crash();
        }
        play.play();
        play
    };
    for crashes in 0..3 {
        let whole = recorded(crashes);
        assert!(whole.told().ends_with("{\"message\":\"a 2\"}"), "{}", whole.told());
        let new = |event: &Event| {
            let Event { id, scope, data, .. } = event.clone();
            NewEvent { id, scope, data }
        };
        let events: Vec<NewEvent> = whole.log.iter().map(new).collect();
        // Behind the first two: it is asked for, and it is begun.
        let parts: BTreeSet<usize> = (3..events.len()).map(|max| part(&events, max)).collect();
        assert!(parts.len() > 10, "{parts:?}");
        for part in parts {
            let mut play = recorded(crashes);
            play.log.truncate(part);
            let told = play.crash().play();
            assert!(told.ends_with("{\"message\":\"a 2\"}"), "{part} after {crashes}:\n{told}");
        }
    }
}

#[test]
fn what_somebody_calls_failed_after_a_crash_fails_as_the_step_says() {
    for (then, end) in [
        ("stop, next: b", "run failed STEP_INTERRUPTED at a"),
        ("skip, next: b", "run completed {\"message\":\"b\"}"),
        ("fallback, fallback: b", "run completed {\"message\":\"b\"}"),
    ] {
        let nodes = format!(
            "{{ id: a, type: log, message: a, on_interrupt: ask, on_failure: {then} }}
             {{ id: b, type: log, message: b }}"
        );
        for crashes in [false, true] {
            let mut play = Play::new(graph(&nodes), json!({}));
            play.start().crash();
            let (instance, by) = ("a".parse().unwrap(), "ada".into());
            let decision = InterruptDecision::Fail;
            play.tell(Command::Resolve { instance, by, decision }).unwrap();
            if crashes && play.told().lines().all(|line| !line.starts_with("run failed")) {
                play.crash();
            }
            assert!(play.play().ends_with(end), "{then}: {}", play.told());
        }
    }
}

#[test]
fn a_paused_run_finishes_what_is_under_way_and_begins_nothing() {
    let nodes = "
        { id: a, type: log, message: a, next: b }
        { id: b, type: log, message: b }
    ";
    for crashes in [false, true] {
        let mut play = Play::new(graph(nodes), json!({}));
        play.start();
        let change = ChangeId::from_bits(1);
        play.tell(Command::Pause { change, by: "ada".into() }).unwrap();
        play.step();
        if crashes {
            play.crash();
        }
        assert!(play.told().ends_with("run paused\ndone a {\"message\":\"a\"}"), "{}", play.told());
        assert!(play.owed.is_empty());
        play.tell(Command::Resume {
            change: ChangeId::from_bits(2),
            by: "ada".into(),
            input: None,
        })
        .unwrap();
        assert!(play.play().ends_with("run completed {\"message\":\"b\"}"), "{}", play.told());
    }
}

#[test]
fn a_cancelled_run_ends_when_what_was_under_way_has_stopped() {
    let mut play = Play::new(graph("{ id: a, type: log, message: a }"), json!({}));
    play.start();
    play.tell(Command::Cancel { by: "ada".into(), reason: "enough".into() }).unwrap();
    play.owed.retain(|effect| *effect == Effect::CallOff);
    assert_snapshot!(play.play(), @"
    run started
    start a 0
    run cancel requested
    run cancelled
    ");
    let mut play = Play::new(graph("{ id: a, type: log, message: a }"), json!({}));
    play.start();
    play.tell(Command::Cancel { by: "ada".into(), reason: "enough".into() }).unwrap();
    assert!(play.crash().play().ends_with("run cancelled"), "{}", play.told());
}

#[test]
fn what_a_decision_begins_that_ends_the_run_is_not_owed() {
    let nodes = "
        { id: p, type: parallel, branches: [a, b] }
        { id: a, type: log, message: a }
        { id: b, type: branch, expr: event.payload.no, cases: { x: end, default: end } }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start();
    assert!(play.told().ends_with("run failed EXPR_UNDEFINED at b"), "{}", play.told());
    assert_eq!(play.owed, [Effect::CallOff, Effect::End(EndStatus::Failed)]);
}

#[test]
fn another_try_is_no_further_step() {
    let mut play = failing("{ id: a, type: log, message: a, retry: { max: 1 } }", "a", 1);
    play.run.limits.steps_max = 1;
    assert!(play.start().play().ends_with("run completed {\"message\":\"a\"}"), "{}", play.told());
}

#[test]
fn a_step_is_performed_with_what_was_recorded() {
    let nodes = "{ id: a, type: log, message: '{{ run.attempt }}', retry: { max: 1 } }";
    let mut play = failing(nodes, "a", 1);
    play.start();
    for attempt in 0..2 {
        let step = &play.run.state.steps[&"a".parse().unwrap()];
        let recorded = step.input.clone().unwrap();
        let settings = json!({"message": attempt});
        assert_eq!(recorded, cairn_core::event::engine::Payload::inline(settings.clone()));
        let given = play.run.settings(&play.graph, &"a".parse().unwrap(), &crate::play::NoSecrets);
        assert_eq!(given, Ok(settings));
        play.step();
        play.step();
    }
}

#[test]
fn a_run_that_takes_too_long_fails() {
    let text = "
name: Slow
max_duration_sec: 5
graph:
  nodes:
    - { id: w, type: wait, duration_sec: 60 }
";
    assert_snapshot!(Play::new(crate::play::whole(text), json!({})).start().play(), @"
    run started
    timer RunTimeout 6000
    waits w Timer
    timer Wait 61000
    timer fired
    run failed RUN_TIMEOUT
    ");
}
