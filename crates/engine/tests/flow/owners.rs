//! Other processes that own a session, or admit the runs of a workflow, and do not answer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_core::event::guided::SessionCreated;
use cairn_core::event::{NewEvent, Scope};
use cairn_core::id::{EventId, SessionId};
use cairn_engine::catalog::Identity;
use cairn_store::AppendPlan;
use serde_json::json;

use crate::world::{World, request};

/// The session by whose lease the runs of a workflow are admitted.
fn desk(world: &World, workflow: &str) -> SessionId {
    let file = world.home.path().join("workflows").join(workflow).join("workflow.yaml");
    SessionId::derive(&["triggers", Identity::of_place(&file).key()])
}

const WAITS: &str = "{ id: q, type: wait, duration_sec: 3600 }";

#[tokio::test]
async fn a_request_is_refused_while_whoever_admits_it_is_silent_and_never_begins() {
    let world = World::new(&[("w", WAITS)]);
    let store = world.store();
    let created = NewEvent {
        id: EventId::from_bits(1),
        scope: Scope::Session,
        data: SessionCreated {}.into(),
    };
    let plan = AppendPlan { events: vec![created], ..AppendPlan::default() };
    store.log.append(desk(&world, "w"), plan).await.unwrap();
    let lease = store.leases.acquire(desk(&world, "w"), "test").await.unwrap();
    let engine = world.engine();
    let refused = engine.submit(request("w", json!({}))).await.unwrap_err();
    assert_eq!(refused.code(), "WORKFLOW_ELSEWHERE");
    let owner = format!("process {} since", std::process::id());
    assert!(refused.to_string().contains(&owner), "{refused}");
    drop(lease);
    engine.recover().await.unwrap();
    assert_eq!(engine.list(&cairn_engine::flow::Filter::default()).await.unwrap(), []);
    engine.submit(request("w", json!({}))).await.unwrap();
}

#[tokio::test]
async fn a_command_is_refused_or_in_doubt_while_the_owner_of_its_run_is_silent() {
    let world = World::new(&[("w", WAITS)]);
    let engine = world.engine();
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    let session = engine.past(run).await.unwrap().summary.session;
    engine.stop(Duration::from_secs(5)).await;
    drop(engine);
    let store = world.store();
    let lease = store.leases.acquire(session, "test").await.unwrap();
    let engine = world.engine();
    let refused = engine.cancel(run, "ada", "").await.unwrap_err();
    assert_eq!(refused.code(), "RUN_ELSEWHERE");
    // It takes the command, and goes away without an answer.
    let mut inbox = store.mailbox.open(session).await.unwrap();
    let taken = async { drop(inbox.next().await.unwrap()) };
    let (told, ()) = tokio::join!(engine.cancel(run, "ada", ""), taken);
    assert_eq!(told.unwrap_err().code(), "RUN_IN_DOUBT");
    drop((inbox, lease));
    assert_eq!(engine.past(run).await.unwrap().summary.status.name(), "waiting");
    engine.cancel(run, "ada", "").await.unwrap();
    assert_eq!(engine.past(run).await.unwrap().summary.status.name(), "cancelled");
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_it_waits_gives_its_place_to_the_next() {
    let nodes = "name: one
concurrency: 1
graph: { nodes: [{ id: a, type: log, message: hold }] }";
    let world = World::new(&[("one", nodes)]);
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let mut runs = Vec::new();
    for _ in 0..40 {
        runs.push(engine.submit(request("one", json!({}))).await.unwrap().run);
    }
    world.done.held.notified().await;
    let cancels = runs.iter().skip(1).take(38).map(|run| {
        let (engine, run) = (engine.clone(), *run);
        tokio::spawn(async move { engine.cancel(run, "ada", "enough").await })
    });
    for cancelled in cancels.collect::<Vec<_>>() {
        cancelled.await.unwrap().unwrap();
    }
    assert_eq!(world.tries(), [1], "only the first is under way");
    assert_eq!(engine.admitted().get("project.one"), Some(&(1, 1)));
    world.done.holds.store(false, Ordering::SeqCst);
    world.done.go.notify_one();
    for run in [runs[0], runs[39]] {
        let ended = tokio::time::timeout(Duration::from_secs(20), engine.ended(run)).await;
        assert_eq!(ended.unwrap().unwrap().status, EndStatus::Succeeded);
    }
    assert_eq!(world.tries(), [1, 1]);
    assert_eq!(engine.falls(), 0);
}

#[tokio::test]
async fn whoever_waits_for_a_run_goes_on_with_it_when_its_process_ends() {
    let world = World::new(&[("w", "{ id: a, type: log, message: hold }")]);
    let [first, second] = [(); 2].map(|()| world.engine());
    world.done.holds.store(true, Ordering::SeqCst);
    let own = first.submit(request("w", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    // The first admits the runs of the workflow, and so it performs this one too.
    let handed = second.submit(request("w", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    assert!(!second.is_here(handed).await.unwrap());
    let ended = tokio::spawn({
        let second = second.clone();
        async move { second.ended(handed).await }
    });
    world.done.holds.store(false, Ordering::SeqCst);
    first.stop(Duration::from_secs(5)).await;
    drop(first);
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap().unwrap();
    assert_eq!(ended.unwrap().status, EndStatus::Succeeded);
    assert_eq!(second.ended(own).await.unwrap().status, EndStatus::Succeeded);
}
