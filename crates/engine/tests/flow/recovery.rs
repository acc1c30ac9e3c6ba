//! What happens to runs whose engine is gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_engine::flow::Decider;
use serde_json::json;

use crate::world::{World, request};

/// An engine that is left in the middle of a step; gives the run.
pub(crate) async fn left(world: &World, workflow: &str) -> cairn_core::id::RunId {
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let asked = engine.submit(request(workflow, json!({}))).await.unwrap();
    world.done.held.notified().await;
    engine.stop(Duration::from_secs(5)).await;
    world.done.holds.store(false, Ordering::SeqCst);
    asked.run
}

#[tokio::test]
async fn a_run_goes_on_with_the_same_id_and_the_same_key() {
    let world = World::new(&[(
        "w",
        "{ id: a, type: log, message: first, next: b }
         { id: b, type: log, message: hold, next: c }
         { id: c, type: log, message: last }",
    )]);
    let run = left(&world, "w").await;
    let engine = world.engine();
    assert_eq!(engine.recover().await.unwrap(), 1);
    let ended = engine.ended(run).await.unwrap();
    assert_eq!((ended.status, ended.result), (EndStatus::Succeeded, json!({"message": "last"})));
    let mut tries = world.tries();
    tries.sort_unstable();
    assert_eq!(tries, [1, 1, 2], "only what was cut off is done again, with its key");
}

#[tokio::test]
async fn a_step_that_must_not_be_repeated_is_not() {
    let world = World::new(&[
        ("fails", "{ id: a, type: log, message: hold, on_interrupt: fail }"),
        ("asks", "{ id: a, type: log, message: hold, on_interrupt: ask }"),
    ]);
    let run = left(&world, "fails").await;
    let engine = world.engine();
    engine.recover().await.unwrap();
    assert_eq!(engine.ended(run).await.unwrap().result["code"], "STEP_INTERRUPTED");
    engine.stop(Duration::from_secs(5)).await;
    let run = left(&world, "asks").await;
    let engine = world.engine();
    engine.recover().await.unwrap();
    let waits = async {
        // What is recovered is decided on beside us.
        while engine.past(run).await.unwrap().summary.status.name() != "waiting" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap();
    let skip = cairn_core::event::engine::InterruptDecision::Skip;
    engine.resolve(run, "a".parse().unwrap(), Decider::local("ada"), skip).await.unwrap();
    assert_eq!(engine.ended(run).await.unwrap().status, EndStatus::Succeeded);
    assert_eq!(world.tries(), [1, 1]);
}

#[tokio::test]
async fn what_is_said_to_a_run_of_another_engine_is_handed_to_it() {
    let world = World::new(&[("w", "{ id: a, type: log, message: hold }")]);
    world.done.holds.store(true, Ordering::SeqCst);
    let (one, two) = (world.engine(), world.engine());
    let asked = one.submit(request("w", json!({}))).await.unwrap();
    world.done.held.notified().await;
    two.recover().await.unwrap();
    two.cancel(asked.run, "ada", "").await.unwrap();
    assert_eq!(one.ended(asked.run).await.unwrap().status, EndStatus::Cancelled);
    assert_eq!(world.tries(), [1]);
}

#[tokio::test]
async fn the_list_says_what_waits_when_another_run_began_since() {
    let nodes = "{ id: a, type: log, message: hold, next: b }
         { id: b, type: wait, duration_sec: 3600 }";
    let world = World::new(&[("w", nodes)]);
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let first = engine.submit(request("w", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    world.done.go.notify_one();
    let waits = async {
        while engine.past(first).await.unwrap().summary.status.name() != "waiting" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap();
    engine.submit(request("w", json!({}))).await.unwrap();
    let waiting = cairn_engine::flow::Filter {
        statuses: vec![cairn_core::projection::run::RunStatus::Waiting],
        ..cairn_engine::flow::Filter::default()
    };
    let listed: Vec<_> = engine.list(&waiting).await.unwrap().iter().map(|run| run.run).collect();
    assert_eq!(listed, [first]);
}

/// A trigger was received, and the process ended before its run began.
#[tokio::test]
async fn what_was_received_and_not_begun_begins_when_it_comes_again() {
    let world = World::new(&[("w", "{ id: a, type: log, message: hi }")]);
    let again = || cairn_engine::flow::RunRequest {
        by: "tester".into(),
        roles: cairn_engine::flow::Roles::Any,
        trigger: Some("api".parse().unwrap()),
        key: Some("k".to_owned()),
        ..request("w", json!({}))
    };
    let first = world.engine();
    let run = first.submit(again()).await.unwrap().run;
    first.ended(run).await.unwrap();
    first.stop(Duration::from_secs(5)).await;
    // Only that it was received is left, as if the rest had not been written.
    lose(&world, run).await;
    let engine = world.engine();
    let asked = engine.submit(again()).await.unwrap();
    assert_eq!((asked.run, asked.replayed), (run, true));
    let ended = tokio::time::timeout(Duration::from_secs(20), engine.ended(run)).await.unwrap();
    assert_eq!(ended.unwrap().status, EndStatus::Succeeded);
    assert_eq!(world.tries(), [2], "with the key it had");
    let asked = engine.submit(again()).await.unwrap();
    assert!(asked.replayed);
    engine.stop(Duration::from_secs(5)).await;
    assert_eq!(world.tries(), [2]);
}

/// The session that a run is in.
async fn session_of(world: &World, run: cairn_core::id::RunId) -> cairn_core::id::SessionId {
    let store = world.store();
    for session in store.sessions.list().await.unwrap() {
        let events = store.log.read(session, cairn_core::id::EventIndex(0)).await.unwrap();
        if events.iter().any(|event| event.scope.run() == Some(run)) {
            return session;
        }
    }
    panic!("{run} is nowhere")
}

/// Somebody takes a session away and puts it back: what was done in it is not done again.
#[tokio::test]
async fn what_may_be_in_a_session_that_is_missing_does_not_begin() {
    let world = World::new(&[("w", "{ id: a, type: log, message: hi }")]);
    let again = || cairn_engine::flow::RunRequest {
        trigger: Some("api".parse().unwrap()),
        key: Some("k".to_owned()),
        ..request("w", json!({}))
    };
    let first = world.engine();
    let run = first.submit(again()).await.unwrap().run;
    first.ended(run).await.unwrap();
    first.stop(Duration::from_secs(5)).await;
    let folder = world.home.path().join("data/sessions");
    let (there, away) = (folder.join(session_of(&world, run).await.to_string()), folder.join("x"));
    std::fs::rename(&there, &away).unwrap();
    let engine = world.engine();
    engine.recover().await.unwrap();
    let refused = engine.submit(again()).await.unwrap_err();
    assert_eq!(refused.code(), "RUN_LANE_DOWN", "{refused}");
    assert_eq!(world.tries(), [1]);
    std::fs::rename(&away, &there).unwrap();
    let asked = engine.submit(again()).await.unwrap();
    assert_eq!((asked.run, asked.replayed), (run, true));
    engine.stop(Duration::from_secs(5)).await;
    assert_eq!(world.tries(), [1]);
}

/// Deletes the session that a run is in, as if nothing of it had been written.
async fn lose(world: &World, run: cairn_core::id::RunId) {
    let session = session_of(world, run).await;
    world.store().sessions.delete(session, None).await.unwrap();
    // The list of runs is made anew from what is there.
    for file in std::fs::read_dir(world.home.path().join("data")).unwrap() {
        let path = file.unwrap().path();
        if path.to_string_lossy().contains("sqlite") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[tokio::test]
async fn a_failure_is_told_of_at_the_next_start() {
    let fails = "name: fails\non_error: { trigger_workflow: project.told }\ngraph:\n  nodes:\n    - { id: a, type: log, message: fail }\n";
    let told = "name: told\ntriggers: [{ type: error }]\ngraph:\n  nodes:\n    - { id: a, type: log, message: '{{ event.payload.run_id }}' }\n";
    let world = World::new(&[("fails", fails), ("told", told)]);
    let engine = world.engine();
    let failed = engine.submit(request("fails", json!({}))).await.unwrap().run;
    engine.ended(failed).await.unwrap();
    let notes = cairn_engine::flow::Filter {
        workflow: Some("project.told".to_owned()),
        is_over: Some(true),
        ..cairn_engine::flow::Filter::default()
    };
    let one = async |engine: &cairn_engine::flow::Automations| loop {
        if let [note] = engine.list(&notes).await.unwrap().as_slice() {
            return note.run;
        }
        tokio::task::yield_now().await;
    };
    let note = tokio::time::timeout(Duration::from_secs(20), one(&engine)).await.unwrap();
    engine.stop(Duration::from_secs(5)).await;
    lose(&world, note).await;
    let engine = world.engine();
    engine.recover().await.unwrap();
    let again = tokio::time::timeout(Duration::from_secs(20), one(&engine)).await.unwrap();
    assert_eq!(again, note);
    engine.stop(Duration::from_secs(5)).await;
    let mut tries = world.tries();
    tries.sort_unstable();
    assert_eq!(tries, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_triggers_of_a_workflow_may_come_all_at_once() {
    let world = World::new(&[("w", "{ id: a, type: log, message: hi }")]);
    let engine = world.engine();
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..16 {
        let engine = engine.clone();
        let request = cairn_engine::flow::RunRequest {
            by: "tester".into(),
            roles: cairn_engine::flow::Roles::Any,
            trigger: Some("api".parse().unwrap()),
            key: Some(format!("k{number}")),
            ..request("w", json!({}))
        };
        callers.spawn(async move { engine.submit(request).await.unwrap().replayed });
    }
    assert!(callers.join_all().await.into_iter().all(|replayed| !replayed));
}
