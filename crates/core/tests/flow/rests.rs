//! What a run that rests does not begin.

use cairn_core::event::engine::InterruptDecision;
use cairn_core::flow::{Ask, Command, Effect};
use cairn_core::id::ChangeId;
use serde_json::json;

use crate::play::{Play, graph};

fn pause(play: &mut Play) {
    play.tell(Command::Pause { change: ChangeId::from_bits(1), by: "ada".into() }).unwrap();
}

fn resume(play: &mut Play) {
    play.tell(Command::Resume { change: ChangeId::from_bits(2), by: "ada".into(), input: None })
        .unwrap();
}

fn cancel(play: &mut Play) {
    play.tell(Command::Cancel { by: "ada".into(), reason: "enough".into() }).unwrap();
}

#[test]
fn a_paused_run_makes_no_further_try_after_a_crash() {
    let nodes = "{ id: a, type: log, message: a, retry: { max: 2, delay_sec: 1 } }";
    let mut play = Play::new(graph(nodes), json!({}));
    play.failing.insert("a".into(), 1);
    play.start();
    play.step();
    pause(&mut play);
    play.step();
    assert!(play.told().ends_with("run paused\ntimer fired"), "{}", play.told());
    play.crash();
    assert!(play.owed.is_empty(), "{:?}", play.owed);
    resume(&mut play);
    assert!(play.play().ends_with("run completed {\"message\":\"a\"}"), "{}", play.told());
}

#[test]
fn a_paused_run_repeats_no_resolved_step_after_a_crash() {
    let nodes = "{ id: a, type: log, message: a, on_interrupt: ask }";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start().crash();
    pause(&mut play);
    let (instance, decision) = ("a".parse().unwrap(), InterruptDecision::Retry);
    play.tell(Command::Resolve { instance, by: "ada".into(), decision }).unwrap();
    play.crash();
    assert!(play.owed.is_empty(), "{:?}", play.owed);
}

#[test]
fn what_a_worker_says_begins_nothing_while_the_run_rests() {
    let nodes = "{ id: a, type: log, message: '{{ event.payload.n | batch(2) }}' }";
    for cancels in [false, true] {
        let mut play = Play::new(graph(nodes), json!({"n": 1}));
        play.start();
        if cancels {
            cancel(&mut play);
        } else {
            pause(&mut play);
        }
        let said = || Command::Evaluated {
            instance: "a".parse().unwrap(),
            ask: Ask::Settings,
            result: Ok(json!({"message": "said"})),
        };
        play.owed.clear();
        let decision = play.tell(said()).unwrap();
        assert!(decision.events.is_empty() && decision.effects.is_empty(), "{decision:?}");
        if !cancels {
            resume(&mut play);
            assert!(matches!(play.owed.pop_front(), Some(Effect::Evaluate { .. })));
            play.tell(said()).unwrap();
            assert!(play.told().ends_with("start a 0"), "{}", play.told());
        }
    }
}

#[test]
fn a_run_that_is_being_cancelled_begins_nothing_when_it_is_resumed() {
    let nodes = "
        { id: p, type: parallel, branches: [a, b] }
        { id: a, type: log, message: a, next: c }
        { id: b, type: log, message: b }
        { id: c, type: log, message: c }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start();
    pause(&mut play);
    play.step();
    cancel(&mut play);
    resume(&mut play);
    assert!(!play.told().contains("start c"), "{}", play.told());
}
