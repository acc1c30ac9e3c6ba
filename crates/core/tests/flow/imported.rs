//! Runs that came from elsewhere: their log is history to be read, and whatever is still to be
//! done follows from the plan.

use cairn_core::event::engine::{InterruptDecision, Payload, RunPaused, StepInput};
use cairn_core::event::{EventData, NewEvent, Scope};
use cairn_core::flow::{Asker, Change, Command, Cut, Effect, Fork, NotThere, Rejection};
use cairn_core::id::{ChangeId, EventId, RunId, TimerId};
use cairn_core::projection::run::StepStatus;
use serde_json::{Value, json};

use crate::play::{Play, RUN, graph, whole};

/// What the run is given here.
fn given() -> Value {
    json!({"env": {"who": "here"}, "event": {"at": "now", "payload": {"list": [1, 2], "n": 1}}})
}

/// The run as it comes from elsewhere, where its log says something else than it did.
pub(crate) fn brought(mut play: Play, lie: impl Fn(&mut EventData)) -> Play {
    play.log.iter_mut().for_each(|event| lie(&mut event.data));
    let paused = RunPaused {
        by: "ada".into(),
        change_id: ChangeId::from_bits(9),
        imported: true,
        via: None,
    };
    let paused =
        NewEvent { id: EventId::from_bits(9), scope: Scope::Run(RUN), data: paused.into() };
    play.log.push(
        paused.at(
            play.log.first().unwrap().session,
            cairn_core::id::EventIndex(play.log.len() as u64),
        ),
    );
    play.crash();
    assert!(play.owed.is_empty(), "it rests: {:?}", play.owed);
    play
}

pub(crate) fn resume(play: &mut Play) -> Result<(), Rejection> {
    let change = ChangeId::from_bits(10);
    play.tell(Command::Resume { change, by: "ada".into(), input: Some(given()) }).map(drop)
}

/// A run that is as far as it comes by itself.
fn begun(nodes: &str) -> Play {
    let graph = if nodes.starts_with("name:") { whole(nodes) } else { graph(nodes) };
    let mut play = Play::new(graph, json!({"n": 7}));
    play.start();
    play
}

/// What the last try of a step was given.
fn last_input(play: &Play, step: &str) -> Value {
    let started = play.log.iter().rev().find_map(|event| match &event.data {
        EventData::StepStarted(started) if started.instance.step.as_str() == step => {
            started.input.given().cloned()
        }
        _ => None,
    });
    inline(&started.unwrap_or_else(|| panic!("{step} never began: {}", play.told())))
}

fn inline(payload: &Payload) -> Value {
    match payload {
        Payload::Inline(value) => value.0.clone(),
        Payload::Blob(blob) => panic!("{blob:?}"),
    }
}

const SAYS: &str = "name: Test
env: [{ name: who }]
graph:
  nodes:
    - { id: a, type: log, message: 'plan {{ env.who }} {{ event.payload.n }}' }
";

/// Every event of a step that was begun elsewhere says something that the plan does not.
fn lie(data: &mut EventData) {
    let evil = || Payload::inline(json!({"message": "evil", "prompt": "evil"}));
    match data {
        EventData::RunQueued(queued) => {
            let input = json!({"env": {"who": "evil"}, "event": {"payload": {"n": "evil"}}});
            queued.input = Payload::inline(input);
            queued.by = Some("root".into());
        }
        EventData::StepStarted(started) => started.input = StepInput::Given(evil()),
        EventData::TaskOpened(task) => {
            let asked = json!({
                "prompt": "evil", "who": ["eve"], "on_expire": "approve",
                "approves_unattended": true, "expires_sec": 1,
            });
            task.request = Payload::inline(asked);
        }
        EventData::TimerSet(timer) => timer.due_ms = 1,
        _ => {}
    }
}

// case: bundle.no-authority
#[test]
fn a_step_that_was_under_way_elsewhere_is_given_what_the_plan_says() {
    let mut play = brought(begun(SAYS), lie);
    assert!(play.run.state.steps.values().all(|step| step.input.is_none()));
    resume(&mut play).unwrap();
    assert_eq!(last_input(&play, "a"), json!({"message": "plan here 1"}));
    assert_eq!(play.run.state.queued.as_ref().unwrap().by.as_deref(), Some("ada"));
    play.crash();
    assert_eq!(last_input(&play, "a"), json!({"message": "plan here 1"}), "also after a crash");
    assert!(
        play.play().ends_with("run completed {\"message\":\"plan here 1\"}"),
        "{}",
        play.told()
    );
}

#[test]
fn what_is_to_be_asked_about_is_asked_about_and_then_done_as_the_plan_says() {
    for on_interrupt in ["ask", "fail"] {
        let nodes = SAYS.replace("type: log", &format!("type: log, on_interrupt: {on_interrupt}"));
        let mut play = brought(begun(&nodes), lie);
        resume(&mut play).unwrap();
        let begins = |effect: &Effect| matches!(effect, Effect::Perform { .. });
        assert!(!play.owed.iter().any(begins), "{on_interrupt}: {}", play.told());
        if on_interrupt == "fail" {
            assert!(play.told().contains("STEP_INTERRUPTED"), "{}", play.told());
            continue;
        }
        let (instance, decision) = ("a".parse().unwrap(), InterruptDecision::Retry);
        play.tell(Command::Resolve { instance, by: "ada".into(), decision }).unwrap();
        assert_eq!(last_input(&play, "a"), json!({"message": "plan here 1"}));
    }
}

#[test]
fn a_step_that_the_plan_passes_over_is_not_begun_because_its_log_says_so() {
    let nodes = "{ id: a, type: log, message: a, when: 'event.payload.n == 7' }";
    let mut play = brought(begun(nodes), |_| {});
    resume(&mut play).unwrap();
    assert!(play.told().contains("skipped a Condition"), "{}", play.told());
}

const ASKS: &str = "
    { id: ask, type: human, prompt: Pay?, who: [ada], expires_sec: 60, on_expire: reject, cases: { approved: pay, rejected: end } }
    { id: pay, type: log, message: pay }
";

#[test]
fn a_question_that_was_open_elsewhere_is_asked_anew_as_the_plan_asks_it() {
    let play = begun(ASKS);
    let old = *play.run.state.tasks.keys().next().unwrap();
    let timers: Vec<TimerId> = play.run.state.timers.keys().copied().collect();
    let mut play = brought(play, lie);
    assert!(play.run.state.tasks.is_empty() && play.run.state.timers.is_empty());
    play.now_ms = 5_000;
    resume(&mut play).unwrap();
    for timer in timers {
        let fired = play.tell(Command::FireTimer(timer));
        assert!(matches!(fired, Err(Rejection::OutOfPlace(_))), "{fired:?}");
    }
    let (task, asked) = play.run.state.tasks.iter().next().unwrap();
    assert_ne!(*task, old);
    let request = inline(&asked.request);
    assert_eq!((&request["prompt"], &request["who"]), (&json!("Pay?"), &json!(["ada"])));
    assert_eq!(play.run.state.timers.values().map(|t| t.due_ms).collect::<Vec<_>>(), [65_000]);
    // Nobody answers: what the plan says comes of it.
    assert!(!play.play().contains("start pay"), "{}", play.told());
}

#[test]
fn waits_and_children_of_elsewhere_are_begun_anew() {
    let nodes = "
        { id: a, type: parallel, next: [nap, sub, pause] }
        { id: nap, type: wait, duration_sec: 100, next: end }
        { id: sub, type: workflow, workflow: other, next: end }
        { id: pause, type: log, message: p, retry: { max: 3, delay_sec: 10 }, next: end }
    ";
    let mut play = Play::new(graph(nodes), json!({}));
    play.failing.insert("pause".into(), 1);
    play.start();
    let child = |play: &Play| {
        let child = play.owed.iter().find_map(|effect| match effect {
            Effect::Child { child, .. } => Some(*child),
            _ => None,
        });
        child.unwrap()
    };
    let before = child(&play);
    let fails = "pause".parse().unwrap();
    play.perform(&fails);
    let old: Vec<TimerId> = play.run.state.timers.keys().copied().collect();
    let mut play = brought(play, lie);
    play.now_ms = 7_000;
    resume(&mut play).unwrap();
    assert_ne!(child(&play), before, "another run, which nobody can have made");
    let state = &play.run.state;
    assert!(old.iter().all(|timer| !state.timers.contains_key(timer)));
    assert_eq!(state.timers.values().map(|t| t.due_ms).collect::<Vec<_>>(), [107_000]);
    assert_eq!(state.steps[&fails].status, StepStatus::Running, "it is tried at once");
    assert_eq!(last_input(&play, "pause"), json!({"message": "p"}));
}

#[test]
fn a_history_that_the_plan_cannot_have_led_to_is_refused() {
    let unfit = |nodes: &str, steps: usize, lie: fn(&mut EventData), word: &str| {
        let mut play = begun(nodes);
        assert!((0..steps).all(|_| play.step()));
        let mut play = brought(play, lie);
        match resume(&mut play).unwrap_err() {
            Rejection::Foreign(faults) => assert!(faults.concat().contains(word), "{faults:?}"),
            other => panic!("{word}: {other:?}"),
        }
        assert!(play.run.state.is_untouched(), "nothing is decided");
    };
    let two = "{ id: a, type: log, message: a, next: b }
        { id: b, type: log, message: '{{ steps.a.count | default(0) }}' }";
    unfit(
        two,
        1,
        |data| {
            if let EventData::StepCompleted(done) = data {
                done.output = Payload::inline(json!({"count": "$(evil)"}));
            }
        },
        "its output.count",
    );
    let each = "{ id: each, type: loop, items: '{{ [1, 2, 3] }}', body: [say] }
        { id: say, type: log, message: '{{ item }}' }";
    unfit(
        each,
        1,
        |data| {
            if let EventData::LoopEntered(entered) = data {
                entered.items = Some(Payload::inline(json!(["evil", "evil", "evil"])));
            }
        },
        "`each` goes over something else",
    );
    unfit(
        SAYS,
        0,
        |data| {
            if let EventData::StepStarted(started) = data {
                started.attempt = u32::MAX;
            }
        },
        "was tried",
    );
}

#[test]
fn a_loop_that_goes_over_what_the_plan_says_goes_on() {
    let each = "{ id: each, type: loop, items: '{{ [1, 2, 3] }}', body: [say] }
        { id: say, type: log, message: '{{ item }}' }";
    let mut play = begun(each);
    play.step();
    let mut play = brought(play, |_| {});
    resume(&mut play).unwrap();
    let told = play.play();
    assert!(told.contains("leave each 3") && told.contains("run completed"), "{told}");
}

#[test]
fn nothing_is_resumed_with_what_was_recorded_elsewhere() {
    let mut play = brought(begun(SAYS), lie);
    let change = ChangeId::from_bits(11);
    let refused = play.tell(Command::Resume { change, by: "ada".into(), input: None });
    assert!(matches!(refused, Err(Rejection::OutOfPlace(_))), "{refused:?}");
    let refused = play.tell(Command::Start(play.started()));
    assert!(matches!(refused, Err(Rejection::OutOfPlace(_))), "{refused:?}");
}

/// Whoever forks supplies outputs, and an output is of the form that the compiler knows it by.
#[test]
fn an_output_that_a_step_cannot_have_is_not_put_in_its_place() {
    let two = "{ id: a, type: log, message: a, next: b }
        { id: b, type: log, message: '{{ steps.a.count | default(0) }}' }";
    let mut play = begun(two);
    play.play();
    let decided = std::collections::BTreeSet::new();
    let asker = Asker { name: "eve", answers: false, now_ms: 1, decided: &decided };
    for (output, fits) in [
        (json!({"count": "$(evil)"}), false),
        (json!({"count": [1]}), false),
        (json!({"count": 3, "other": "text"}), true),
        (json!({"count": null}), true),
        (json!("text"), true),
    ] {
        let changes = [Change { instance: "a".parse().unwrap(), output: output.clone() }];
        let step = "b".parse().unwrap();
        let cut = Cut { step: &step, changes: &changes, was: None };
        let done = play.begun();
        let fork =
            Fork::new(&play.graph, (&play.run.state, &done), cut, asker, RunId::from_bits(8));
        match fork {
            Ok(_) => assert!(fits, "{output}"),
            Err(NotThere::Unfit(unfit)) => {
                assert!(!fits && unfit.0.step.as_str() == "a", "{output}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}
