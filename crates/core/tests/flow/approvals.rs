//! When an answer of a person counts: what forks keep, what is tried again, and what a history
//! from elsewhere says about questions.

use std::collections::BTreeSet;

use cairn_core::event::engine::{
    AfterFailure, Failure, InterruptDecision, LoopEntered, LoopExited, Payload, StepCompleted,
    StepFailed, StepInterrupted, StepStarted, StepWaiting, TimerPurpose, TimerSet, WaitingFor,
};
use cairn_core::event::{EventData, NewEvent, Scope};
use cairn_core::flow::{Asker, Change, Command, Cut, Fork, Rejection, unanswered};
use cairn_core::id::{EventId, EventIndex, RunId, TimerId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::RunState;
use serde_json::{Value, json};

use crate::imported::{brought, resume};
use crate::play::{Play, RUN, graph};

fn key(text: &str) -> StepInstanceKey {
    text.parse().unwrap()
}

/// A run in which everybody who was asked said yes.
fn approved(nodes: &str) -> Play {
    let mut play = Play::new(graph(nodes), json!({"n": 1, "list": [1, 2]}));
    play.start().play();
    while play.answer_all() {
        play.play();
    }
    play
}

/// What a fork does again, and how many answers are kept.
fn again(play: &Play, from: &str, changes: &[(&str, Value)], answers: bool) -> (String, usize) {
    let changes: Vec<Change> = changes
        .iter()
        .map(|(step, output)| Change { instance: key(step), output: output.clone() })
        .collect();
    let decided = BTreeSet::new();
    let asker = Asker { name: "ada", answers, now_ms: 7, decided: &decided };
    let cut = Cut { step: &key(from), changes: &changes, was: None };
    let state = (&play.run.state, &play.begun());
    let fork = Fork::new(&play.graph, state, cut, asker, RunId::from_bits(8)).unwrap();
    let again: Vec<String> = fork.again.iter().map(|step| step.instance.to_string()).collect();
    (again.join(" "), fork.vouched.len())
}

const SHOWS: &str = "
    { id: a, type: transform, engine: template, template: '100', next: b }
    { id: b, type: transform, engine: template, template: ada, next: ask }
    { id: ask, type: human, prompt: 'Pay {{ steps.a.template }}?', cases: { approved: note, rejected: end } }
    { id: note, type: log, message: note, next: pay }
    { id: pay, type: log, message: '{{ steps.a.template }} to {{ steps.b.template }}' }
";

// case: approval.shown
#[test]
fn an_answer_is_kept_for_the_question_that_was_shown() {
    let play = approved(SHOWS);
    let asked = ("ask note pay", 0);
    for (changes, answers, expected) in [
        (vec![], true, ("pay", 1)),
        (vec![("a", json!({"template": "100"}))], true, ("pay", 1)),
        (vec![("b", json!({"template": "eve"}))], true, ("pay", 1)),
        (vec![("a", json!({"template": "900"}))], true, asked),
        (vec![("a", json!({"template": 100}))], true, ("pay", 1)),
        (vec![("a", json!({}))], true, asked),
        (vec![("a", json!(null))], true, asked),
        (
            vec![("a", json!({"template": "100"})), ("b", json!({"template": "eve"}))],
            true,
            ("pay", 1),
        ),
        (vec![], false, asked),
        (vec![("a", json!({"template": "100"}))], false, asked),
    ] {
        let (done, vouched) = again(&play, "pay", &changes, answers);
        assert_eq!((done.as_str(), vouched), expected, "{changes:?} by one who answers: {answers}");
    }
    let (done, vouched) = again(&play, "pay", &[("note", json!({"count": 3}))], true);
    assert_eq!((done.as_str(), vouched), ("pay", 1), "what came behind the question");
}

#[test]
fn what_a_loop_asked_is_asked_again_when_something_is_changed() {
    let nodes = "
        { id: a, type: transform, engine: template, template: x, next: each }
        { id: each, type: loop, items: '{{ event.payload.list }}', body: [ask, work], next: pay }
        { id: ask, type: human, prompt: '{{ steps.a.template }}', cases: { default: work } }
        { id: work, type: log, message: w }
        { id: pay, type: log, message: pay }
    ";
    let play = approved(nodes);
    assert_eq!(again(&play, "pay", &[], true), ("pay".to_owned(), 1));
    let (done, vouched) = again(&play, "pay", &[("a", json!({"template": "y"}))], true);
    assert!(done.contains("each@0::ask") && done.contains("each@1::ask"), "{done}");
    assert_eq!(vouched, 0);
}

/// What is over elsewhere was answered by nobody here, whoever asks.
// case: approval.elsewhere
#[test]
fn an_answer_from_elsewhere_counts_for_nobody() {
    let play = brought(still_paying(SHOWS), |_| {});
    for answers in [true, false] {
        let (done, vouched) = again(&play, "pay", &[], answers);
        assert_eq!((done.as_str(), vouched), ("ask note pay", 0), "{answers}");
    }
}

/// A run that is asked, told yes, and performs `pay`.
fn still_paying(nodes: &str) -> Play {
    let mut play = Play::new(graph(nodes), json!({"n": 1, "list": [1, 2]}));
    play.start();
    while !play.told().contains("start pay") {
        if !play.step() {
            assert!(play.answer_all(), "{}", play.told());
        }
    }
    play
}

// case: approval.retry
#[test]
fn what_was_allowed_once_is_tried_again_by_those_who_could_allow_it() {
    let named = SHOWS.replace("prompt:", "who: [ada], prompt:");
    let before = "
        { id: pay, type: log, message: pay, next: ask }
        { id: ask, type: human, prompt: ok }
    ";
    let cycle = "
        { id: first, type: log, message: first, next: ask }
        { id: ask, type: human, prompt: ok, cases: { approved: pay, rejected: end } }
        { id: pay, type: log, message: pay, next: more }
        { id: more, type: branch, expr: 'event.payload.n > 1', cases: { 'true': ask, 'false': end } }
    ";
    for (nodes, name, answers, expected) in [
        (SHOWS, "eve", true, None),
        (SHOWS, "eve", false, Some("ask")),
        (&named, "ada", true, None),
        (&named, "ada", false, Some("ask")),
        (&named, "eve", true, Some("ask")),
        (before, "eve", false, None),
        (cycle, "eve", false, Some("ask")),
        (cycle, "eve", true, None),
    ] {
        let play = still_paying(nodes);
        let decided = BTreeSet::new();
        let asker = Asker { name, answers, now_ms: 7, decided: &decided };
        let found = unanswered(&play.graph, &play.run.state, &key("pay"), asker);
        assert_eq!(found, expected.map(key), "{name} {answers} {nodes}");
    }
    let play = still_paying(
        "{ id: sub, type: log, message: x, next: pay }\n{ id: pay, type: log, message: x }",
    );
    let decided = BTreeSet::from([key("sub")]);
    let asker = Asker { name: "ada", answers: true, now_ms: 7, decided: &decided };
    let found = unanswered(&play.graph, &play.run.state, &key("pay"), asker);
    assert_eq!(found, Some(key("sub")), "what was decided in a child run");
}

/// A history that says this after the run began, and nothing else.
fn told(nodes: &str, history: &[EventData]) -> Play {
    let mut play = Play::new(graph(nodes), json!({"n": 1, "list": [1, 2]}));
    play.start();
    let begun =
        |data: &EventData| matches!(data, EventData::RunQueued(_) | EventData::RunStarted(_));
    let session = play.log.first().unwrap().session;
    play.log.retain(|event| begun(&event.data));
    let first = done("first", Some("true"), json!({"value": true}));
    let first = Some(&first).filter(|_| nodes.contains("id: first"));
    for data in first.into_iter().chain(history) {
        let index = EventIndex(play.log.len() as u64);
        let id = EventId::from_bits(100 + u128::from(index.0));
        let new = NewEvent { id, scope: Scope::Run(RUN), data: data.clone() };
        play.log.push(new.at(session, index));
    }
    play.run.state = RunState::fold(RUN, &play.log);
    play
}

fn started(step: &str) -> EventData {
    let input = Payload::inline(json!({"message": "evil"})).into();
    StepStarted { attempt: 0, epoch: None, input, instance: key(step) }.into()
}

fn done(step: &str, case: Option<&str>, output: Value) -> EventData {
    let (case, output) = (case.map(str::to_owned), Payload::inline(output));
    let instance = key(step);
    StepCompleted { attempt: 0, case, duration_ms: 1, instance, output, usage: None }.into()
}

fn waiting(step: &str, waiting_for: WaitingFor) -> EventData {
    StepWaiting { attempt: 0, instance: key(step), waiting_for }.into()
}

fn timer(step: &str, purpose: TimerPurpose) -> EventData {
    let timer_id = TimerId::from_bits(5);
    TimerSet { due_ms: 1, instance: Some(key(step)), purpose, timer_id }.into()
}

fn cut_off(step: &str) -> EventData {
    StepInterrupted { attempt: 0, instance: key(step) }.into()
}

fn to_retry(step: &str) -> EventData {
    let error = Failure { code: "X_Y".into(), message: "no".into() };
    let (instance, then) = (key(step), AfterFailure::Retry);
    StepFailed { attempt: 0, duration_ms: 1, error, instance, output: None, then, usage: None }
        .into()
}

fn entered(step: &str) -> EventData {
    LoopEntered { instance: key(step), items: Some(Payload::inline(json!([1, 2]))) }.into()
}

const PLAIN: &str = "
    { id: ask, type: human, prompt: Pay?, on_failure: skip, cases: { approved: hold, rejected: end, default: hold } }
    { id: hold, type: wait, duration_sec: 60, next: pay }
    { id: pay, type: log, message: pay, next: late }
    { id: late, type: log, message: late }
";
const FAILS: &str = "
    { id: ask, type: human, prompt: Pay?, on_interrupt: fail, on_failure: skip, cases: { rejected: end, default: pay } }
    { id: pay, type: log, message: pay }
";
const TURNS: &str = "
    { id: each, type: loop, items: '{{ event.payload.list }}', body: [ask, pay], next: late }
    { id: ask, type: human, prompt: Pay?, cases: { default: pay } }
    { id: pay, type: log, message: pay }
    { id: late, type: log, message: late }
";
const AROUND: &str = "
    { id: first, type: branch, expr: 'event.payload.n > 0', cases: { 'true': ask, 'false': end } }
    { id: ask, type: human, prompt: Pay?, cases: { approved: pay, rejected: end, default: end } }
    { id: pay, type: log, message: pay, next: more }
    { id: more, type: branch, expr: 'event.payload.n > 0', cases: { 'true': ask, 'false': late } }
    { id: late, type: log, message: late }
";
const CHILD: &str = "
    { id: ask, type: workflow, workflow: project.asks, next: pay }
    { id: pay, type: log, message: pay, next: late }
    { id: late, type: log, message: late }
";
const WAYS: &str = "
    { id: gate, type: branch, expr: 'event.payload.n > 0', cases: { 'true': ask, 'false': pay } }
    { id: ask, type: human, prompt: Pay?, cases: { default: pay } }
    { id: pay, type: log, message: pay, next: late }
    { id: late, type: log, message: late }
";

/// Every way in which a history can say that a question was passed, with what stands behind it.
fn lies() -> Vec<(&'static str, &'static str, Vec<EventData>)> {
    let yes = || json!({"answer": null, "at": "x", "by": "ada", "verdict": "approved"});
    let person = WaitingFor::Person;
    vec![
        (
            "a timer behind it",
            PLAIN,
            vec![waiting("hold", WaitingFor::Timer), timer("hold", TimerPurpose::Wait)],
        ),
        (
            "a retry behind it",
            PLAIN,
            vec![started("pay"), to_retry("pay"), timer("pay", TimerPurpose::Retry)],
        ),
        ("a try behind it", PLAIN, vec![started("pay")]),
        ("doubt behind it", PLAIN, vec![started("pay"), cut_off("pay")]),
        (
            "an answer without a question",
            PLAIN,
            vec![done("ask", Some("approved"), yes()), waiting("hold", WaitingFor::Timer)],
        ),
        (
            "a question with an answer of no case",
            PLAIN,
            vec![waiting("ask", person), done("ask", None, yes()), started("pay")],
        ),
        ("a question that is performed", PLAIN, vec![started("ask")]),
        ("a question that was cut off, and fails", FAILS, vec![started("ask")]),
        ("a question in doubt", PLAIN, vec![started("ask"), cut_off("ask")]),
        (
            "a question to be retried",
            PLAIN,
            vec![to_retry("ask"), timer("ask", TimerPurpose::Retry)],
        ),
        (
            "a question that waits for a timer",
            PLAIN,
            vec![waiting("ask", WaitingFor::Timer), timer("ask", TimerPurpose::Wait)],
        ),
        (
            "a question that expired",
            PLAIN,
            vec![waiting("ask", person), timer("ask", TimerPurpose::TaskTimeout)],
        ),
        ("everything behind it", PLAIN, vec![done("hold", None, json!({})), started("pay")]),
        ("the first turn", TURNS, vec![entered("each"), started("each@0::pay")]),
        (
            "doubt in a turn",
            TURNS,
            vec![entered("each"), started("each@0::pay"), cut_off("each@0::pay")],
        ),
        ("a later turn", TURNS, vec![entered("each"), started("each@1::pay")]),
        ("a turn that waits", TURNS, vec![entered("each"), waiting("each@1::ask", person)]),
        (
            "no turn",
            TURNS,
            vec![entered("each"), LoopExited { instance: key("each"), iterations: 0 }.into()],
        ),
        ("behind a loop", TURNS, vec![started("late"), cut_off("late")]),
        ("a later visit", AROUND, vec![started("pay~1")]),
        ("doubt in a later visit", AROUND, vec![started("pay~1"), cut_off("pay~1")]),
        (
            "a visit that came back",
            AROUND,
            vec![done("more~1", Some("true"), json!({"value": true})), started("pay~2")],
        ),
        (
            "the way out of a cycle",
            AROUND,
            vec![done("more~1", Some("false"), json!({"value": false}))],
        ),
        (
            "a visit without a question",
            AROUND,
            vec![
                done("pay", None, json!({})),
                done("more", Some("true"), json!({"value": true})),
                started("pay~1"),
            ],
        ),
        (
            "a child that is over",
            CHILD,
            vec![done("ask", None, json!({"result": {}, "run_id": "x", "status": "succeeded"}))],
        ),
        ("behind a child", CHILD, vec![waiting("ask", WaitingFor::Child), started("pay")]),
        ("a child in doubt", CHILD, vec![started("ask"), cut_off("ask")]),
        ("the other way", WAYS, vec![done("gate", Some("false"), json!({"value": false}))]),
        (
            "the other way, with another value",
            WAYS,
            vec![
                done("gate", Some("false"), json!({"value": true})),
                started("pay"),
                cut_off("pay"),
            ],
        ),
    ]
}

// case: bundle.no-authority
#[test]
fn nothing_behind_a_question_is_done_by_a_history_from_elsewhere() {
    for (name, nodes, history) in lies() {
        let mut play = brought(told(nodes, &history), |_| {});
        let here = play.log.len();
        match resume(&mut play) {
            Ok(()) | Err(Rejection::Elsewhere(_) | Rejection::Foreign(_)) => {}
            Err(other) => panic!("{name}: {other:?}"),
        }
        play.play();
        // Somebody who may not answer says that everything in doubt is to be done, or was.
        for decision in [InterruptDecision::Retry, InterruptDecision::Skip] {
            let steps: Vec<_> = play.run.state.steps.keys().cloned().collect();
            for instance in steps {
                let _ = play.tell(Command::Resolve { instance, by: "eve".into(), decision });
                play.play();
            }
        }
        play.crash().play();
        let done = play.log[here..].iter().filter_map(|event| match &event.data {
            EventData::StepStarted(step) => Some(step.instance.to_string()),
            _ => None,
        });
        assert_eq!(done.collect::<Vec<_>>(), Vec::<String>::new(), "{name}: {}", play.told());
    }
}

/// What an honest history leads to is asked here, and done once somebody answers.
#[test]
fn a_question_that_was_open_elsewhere_is_asked_and_answered_here() {
    let ask = || waiting("ask", WaitingFor::Person);
    for (nodes, history) in [
        (PLAIN, vec![ask()]),
        (PLAIN, vec![]),
        (TURNS, vec![entered("each"), waiting("each@0::ask", WaitingFor::Person)]),
        (AROUND, vec![ask()]),
        (WAYS, vec![done("gate", Some("true"), json!({"value": true})), ask()]),
    ] {
        let mut play = brought(told(nodes, &history), |_| {});
        resume(&mut play).unwrap();
        assert_eq!(play.run.state.tasks.len(), 1, "{}", play.told());
        assert!(play.answer_all());
        play.play();
        assert!(
            play.told().contains("::pay") || play.told().contains("start pay"),
            "{}",
            play.told()
        );
    }
}
