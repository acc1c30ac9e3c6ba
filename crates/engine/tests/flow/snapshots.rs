//! Long runs, whose state is stored now and then.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_engine::flow::{Automations, ForkPoint, Forker};
use serde_json::json;

use crate::recovery::left;
use crate::world::{World, kinds, run};

/// A loop of so many turns, of which the last waits.
fn looped(turns: u32) -> World {
    let text = format!(
        "name: w
graph:
  nodes:
    - {{ id: before, type: log, message: first, next: each }}
    - id: each
      type: loop
      count: {turns}
      max_iterations: {turns}
      body: [turn]
      next: hold
    - {{ id: turn, type: log, message: 'turn {{{{ index }}}}' }}
    - {{ id: hold, type: log, message: hold, next: last }}
    - {{ id: last, type: log, message: '{{{{ steps.each.results | length }}}}' }}
"
    );
    let mut world = World::new(&[("w", &text)]);
    world.options.snapshot_every = 20;
    world
}

async fn ends_well(engine: &Automations, run: cairn_core::id::RunId, turns: u32) {
    let ended = engine.ended(run);
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
    let told = (ended.status, ended.result);
    assert_eq!(told, (EndStatus::Succeeded, json!({"message": turns})));
}

#[tokio::test]
async fn a_state_from_a_snapshot_is_the_state_of_all_events() {
    // Steps that are over at once leave little time to those who store snapshots.
    let world = looped(600);
    let run = left(&world, "w").await;
    let engine = world.engine();
    let past = engine.past(run).await.unwrap();
    let taken = kinds(&past).iter().filter(|kind| **kind == "snapshot_taken").count();
    assert!(taken >= 2, "{taken} snapshots");
    let (summary, state) = engine.state(run).await.unwrap();
    assert_eq!(summary.snapshot, past.summary.snapshot);
    assert!(summary.snapshot.unwrap().through > summary.first);
    assert_eq!(state, past.state);
    engine.recover().await.unwrap();
    ends_well(&engine, run, 600).await;
}

#[tokio::test]
async fn a_run_that_was_cut_off_in_a_long_loop_goes_on_there() {
    let mut world = looped(90);
    let folder = world.home.path().join("workflows/w/workflow.yaml");
    let text = std::fs::read_to_string(&folder).unwrap();
    let turn = "message: 'turn {{ index }}'";
    assert!(text.contains(turn));
    std::fs::write(&folder, text.replace(turn, "message: hold")).unwrap();
    world.options.snapshot_every = 10;
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let asked = engine.submit(crate::world::request("w", json!({}))).await.unwrap();
    for _ in 0..60 {
        world.done.held.notified().await;
        world.done.go.notify_one();
    }
    world.done.held.notified().await;
    engine.stop(Duration::from_secs(5)).await;
    let done = world.tries().len();
    world.done.holds.store(false, Ordering::SeqCst);
    let engine = world.engine();
    engine.recover().await.unwrap();
    ends_well(&engine, asked.run, 90).await;
    let tries = world.tries();
    assert_eq!((done, tries.len()), (62, 1 + 90 + 2));
    assert_eq!(tries.iter().filter(|tries| **tries == 2).count(), 1, "what was cut off");
}

#[tokio::test]
async fn a_snapshot_that_is_lost_costs_time_only() {
    let world = looped(100);
    let run = left(&world, "w").await;
    let snapshots = world.home.path().join("data/snapshots");
    let shelves = std::fs::read_dir(&snapshots).unwrap().map(|shelf| shelf.unwrap().path());
    for shelf in shelves.filter(|shelf| shelf.is_dir()) {
        std::fs::remove_dir_all(shelf).unwrap();
    }
    let engine = world.engine();
    assert_eq!(engine.state(run).await.unwrap().1, engine.past(run).await.unwrap().state);
    engine.recover().await.unwrap();
    ends_well(&engine, run, 100).await;
}

#[tokio::test]
async fn a_fork_from_a_late_turn_keeps_the_turns_before() {
    let world = looped(100);
    let engine = world.engine();
    let (_, past) = run(&engine, "w", json!({})).await;
    for turn in [0, 13, 57, 99] {
        let step = format!("each@{turn}::turn").parse().unwrap();
        let from =
            ForkPoint { run: past.summary.run, step, changes: Vec::new(), on_new_plan: false };
        let begun = engine.fork(&from, &Forker::local("tester")).await.unwrap();
        assert_eq!(begun.fork.state.loops.values().next().unwrap().results.len(), turn);
        ends_well(&engine, begun.run, 100).await;
    }
}

#[tokio::test]
async fn large_values_of_turns_are_the_same_after_a_restart() {
    let mut world = looped(40);
    world.options.inline_max = 8;
    let run = left(&world, "w").await;
    let engine = world.engine();
    let (_, state) = engine.state(run).await.unwrap();
    let output = state.steps[&"each".parse().unwrap()].output.clone().unwrap();
    let cairn_core::event::engine::Payload::Inline(output) = output else { panic!("{output:?}") };
    assert_eq!(output.0["results"][7], json!({"message": "turn 7"}));
    assert_eq!(state, engine.past(run).await.unwrap().state);
}
