//! What several people say to one run at once, and what is left of a run that is cancelled.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_core::projection::run::RunStatus;
use serde_json::json;

use crate::world::{World, request};

#[tokio::test]
async fn of_several_who_resume_a_run_one_does_and_the_others_hear_why_not() {
    let world = World::new(&[("w", "{ id: q, type: wait, duration_sec: 3600 }")]);
    let engines = [world.engine(), world.engine()];
    let run = engines[0].submit(request("w", json!({}))).await.unwrap().run;
    for round in 0..10 {
        engines[round % 2].pause(run, "ada").await.unwrap();
        let racing = (0..8).map(|number: usize| {
            let engine = engines[number % 2].clone();
            tokio::spawn(async move { engine.resume(run, format!("bob {number}").as_str()).await })
        });
        let mut done = 0;
        for resumed in racing.collect::<Vec<_>>() {
            match resumed.await.unwrap() {
                Ok(()) => done += 1,
                Err(error) => assert_eq!(error.code(), "RUN_STATE", "round {round}: {error}"),
            }
        }
        assert_eq!(done, 1, "round {round}");
    }
    let past = engines[1].past(run).await.unwrap();
    assert_eq!(past.summary.status, RunStatus::Waiting);
}

#[tokio::test]
async fn nothing_of_a_cancelled_run_goes_on_not_even_its_loops() {
    let nodes = "name: l
graph:
  nodes:
    - { id: l, type: loop, count: 3, body: [inner] }
    - { id: inner, type: loop, count: 2, body: [i] }
    - { id: i, type: log, message: hold }";
    let world = World::new(&[("l", nodes)]);
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let run = engine.submit(request("l", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    engine.cancel(run, "ada", "enough").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), engine.ended(run)).await;
    assert_eq!(ended.unwrap().unwrap().status, EndStatus::Cancelled);
    let past = engine.past(run).await.unwrap();
    let open: Vec<_> =
        past.state.steps.iter().filter(|(_, step)| !step.status.is_final()).collect();
    assert!(open.is_empty(), "{open:?}");
    assert!(past.state.steps.len() >= 3, "{:?}", past.state.steps.keys());
}
