//! What a worker process evaluates for a run.

use cairn_core::flow::{Ask, Command, Effect, Fault};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::FailureKind;
use serde_json::{Value, json};

use crate::play::{NoSecrets, Play, graph};

fn key() -> StepInstanceKey {
    "a".parse().unwrap()
}

fn said(ask: Ask, result: Result<Value, Fault>) -> Command {
    Command::Evaluated { instance: key(), ask, result }
}

fn passing() -> Fault {
    Fault { kind: FailureKind::Timeout, ..Fault::new("EXPR_TIMEOUT", "too slow") }
}

#[test]
fn a_computed_step_is_given_what_the_worker_said() {
    let nodes = "{ id: a, type: transform, engine: jq, expression: ., input: '{{ event.payload.n | batch(2) }}' }";
    let mut play = Play::new(graph(nodes), json!({"n": 1}));
    play.start();
    let settings = json!({"engine": "jq", "expression": ".", "input": [[1]]});
    play.tell(said(Ask::Settings, Ok(settings.clone()))).unwrap();
    let given = play.run.settings(&play.graph, &key(), &NoSecrets);
    assert_eq!(given, Ok(settings));
}

#[test]
fn every_try_at_a_computed_step_has_a_number_of_its_own() {
    let nodes =
        "{ id: a, type: transform, engine: jq, expression: ., input: x, retry: { max: 2 } }";
    let mut play = Play::new(graph(nodes), json!({}));
    play.start();
    let mut tries = Vec::new();
    while let Some(effect) = play.owed.pop_front() {
        match effect {
            Effect::Perform { attempt, .. } => {
                tries.push(attempt);
                let result = Err(passing());
                let told = Command::Complete { instance: key(), result, duration_ms: 1 };
                play.tell(told).unwrap();
            }
            Effect::Timer { timer, .. } => drop(play.tell(Command::FireTimer(timer)).unwrap()),
            _ => {}
        }
    }
    assert_eq!(tries, [0, 1, 2]);
}

#[test]
fn a_condition_that_could_not_be_told_is_asked_again() {
    let nodes =
        "{ id: a, type: log, message: a, when: 'event.payload.n | batch(2)', retry: { max: 2 } }";
    let mut play = Play::new(graph(nodes), json!({"n": 1}));
    play.start();
    play.owed.clear();
    play.tell(said(Ask::Condition, Err(passing()))).unwrap();
    play.step();
    assert_eq!(play.owed, [Effect::Evaluate { instance: key(), ask: Ask::Condition }]);
    play.tell(said(Ask::Condition, Ok(json!(false)))).unwrap();
    assert!(play.told().contains("skipped a Condition"), "{}", play.told());
}

#[test]
fn a_child_is_asked_for_again_after_a_crash_with_what_a_worker_says() {
    let nodes = "{ id: a, type: workflow, workflow: project.other, input: '{{ event.payload.n | batch(2) }}' }";
    let mut play = Play::new(graph(nodes), json!({"n": 1}));
    play.start();
    let settings = json!({"workflow": "project.other", "input": [[1]]});
    play.owed.clear();
    play.tell(said(Ask::Settings, Ok(settings.clone()))).unwrap();
    let owed = play.owed.clone();
    assert!(matches!(owed.front(), Some(Effect::Child { .. })), "{owed:?}");
    play.crash();
    assert_eq!(play.owed, [Effect::Evaluate { instance: key(), ask: Ask::Settings }]);
    play.owed.clear();
    play.tell(said(Ask::Settings, Ok(settings))).unwrap();
    assert_eq!(play.owed, owed);
    assert_eq!(play.told().matches("waits a").count(), 1, "{}", play.told());
}
