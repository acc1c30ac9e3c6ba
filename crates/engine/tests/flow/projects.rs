//! Two projects that use the same data directory, and the same id for a workflow.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_engine::flow::{Filter, RunRequest};
use serde_json::json;

use crate::world::{World, request, write};

fn workflow(says: &str) -> String {
    format!(
        "name: w\nconcurrency: 1\ntriggers: [{{ type: manual, id: m }}]\n\
         graph:\n  nodes:\n    - {{ id: a, type: log, message: {says} }}\n"
    )
}

/// A project whose runs stay under way, and one whose runs end.
fn world() -> World {
    let world = World::new(&[]);
    write(&world.home.path().join("one/workflows"), "w", &workflow("hold"));
    write(&world.home.path().join("two/workflows"), "w", &workflow("there"));
    world.done.holds.store(true, Ordering::SeqCst);
    world
}

fn keyed(key: &str) -> RunRequest {
    let (trigger, key) = ("m".parse().ok(), Some(key.to_owned()));
    RunRequest { trigger, key, ..request("w", json!({})) }
}

#[tokio::test]
async fn they_share_neither_limits_nor_keys() {
    let world = world();
    let [one, two] =
        ["one/workflows", "two/workflows"].map(|folder| world.engine_in(folder, world.store()));
    let first = one.submit(keyed("k")).await.unwrap();
    world.done.held.notified().await;
    let other = two.submit(keyed("k")).await.unwrap();
    assert!(!other.replayed, "another workflow has been asked for its own run");
    assert_ne!(first.run, other.run);
    assert_eq!(two.ended(other.run).await.unwrap().status, EndStatus::Succeeded);
    assert!(one.submit(keyed("k")).await.unwrap().replayed);
    world.done.go.notify_one();
    assert_eq!(one.ended(first.run).await.unwrap().status, EndStatus::Succeeded);
}

#[tokio::test]
async fn a_run_that_waits_begins_as_its_own_workflow_whoever_takes_it_up() {
    let world = world();
    let one = world.engine_in("one/workflows", world.store());
    let first = one.submit(keyed("first")).await.unwrap().run;
    world.done.held.notified().await;
    let second = one.submit(keyed("second")).await.unwrap().run;
    one.stop(Duration::ZERO).await;
    drop(one);
    world.done.holds.store(false, Ordering::SeqCst);
    // It stands in the other project, and has a workflow of that id too.
    let two = world.engine_in("two/workflows", world.store());
    two.recover().await.unwrap();
    for run in [first, second] {
        assert_eq!(two.ended(run).await.unwrap().status, EndStatus::Succeeded);
        let started = two.past(run).await.unwrap().state.started.unwrap();
        assert!(
            started.workflow_source_ref.ends_with("/one/workflows/w/workflow.yaml"),
            "{started:?}"
        );
    }
}

#[tokio::test]
async fn what_a_workflow_names_is_of_its_own_project_whoever_takes_its_run_up() {
    let world = World::new(&[]);
    for (project, says) in [("one", "hold"), ("two", "other")] {
        let root = world.home.path().join(project).join("workflows");
        let asks = "name: asks\non_error: { trigger_workflow: project.told }\n\
             graph:\n  nodes:\n    - { id: a, type: log, message: SAYS, next: b }\n    \
             - { id: b, type: workflow, workflow: project.helper, next: c }\n    \
             - { id: c, type: log, message: fail }\n";
        write(&root, "asks", &asks.replace("SAYS", says));
        write(&root, "helper", "{ id: a, type: log, message: helped }");
        let told = "name: told\ntriggers: [{ type: error, id: e }]\n\
             graph:\n  nodes:\n    - { id: a, type: log, message: told }\n";
        write(&root, "told", told);
    }
    world.done.holds.store(true, Ordering::SeqCst);
    let one = world.engine_in("one/workflows", world.store());
    let run = one.submit(request("asks", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    one.stop(Duration::ZERO).await;
    drop(one);
    world.done.holds.store(false, Ordering::SeqCst);
    let two = world.engine_in("two/workflows", world.store());
    two.recover().await.unwrap();
    assert_eq!(two.ended(run).await.unwrap().status, EndStatus::Failed);
    let told = two.tell_of_failure(run).await.unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    two.ended(told[0]).await.unwrap();
    let runs = two.list(&Filter::default()).await.unwrap();
    assert_eq!(runs.len(), 3, "{runs:?}");
    for run in runs {
        let place = run.place.unwrap();
        assert!(place.contains("/one/workflows/"), "{} ran from {place}", run.workflow);
    }
}
