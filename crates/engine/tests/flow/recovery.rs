//! What happens to runs whose engine is gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use serde_json::json;

use crate::world::{World, arrival};

/// An engine that is left in the middle of a step; gives the run.
pub(crate) async fn left(world: &World, workflow: &str) -> cairn_core::id::RunId {
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let asked = engine.receive(arrival(workflow, json!({}))).await.unwrap();
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
    engine.resolve(run, "a".parse().unwrap(), "ada", skip).await.unwrap();
    assert_eq!(engine.ended(run).await.unwrap().status, EndStatus::Succeeded);
    assert_eq!(world.tries(), [1, 1]);
}

#[tokio::test]
async fn two_engines_do_not_perform_one_run() {
    let world = World::new(&[("w", "{ id: a, type: log, message: hold }")]);
    world.done.holds.store(true, Ordering::SeqCst);
    let (one, two) = (world.engine(), world.engine());
    let asked = one.receive(arrival("w", json!({}))).await.unwrap();
    world.done.held.notified().await;
    two.recover().await.unwrap();
    assert_eq!(two.cancel(asked.run, "ada", "").await.unwrap_err().code(), "RUN_ELSEWHERE");
    world.done.go.notify_one();
    assert_eq!(one.ended(asked.run).await.unwrap().status, EndStatus::Succeeded);
    assert_eq!(world.tries(), [1]);
}
