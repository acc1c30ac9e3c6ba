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

/// What an owner says to a letter that came too late.
fn late() -> serde_json::Value {
    json!({"code": "LETTER_LATE", "message": ""})
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
    // It takes the command, and then says nothing more.
    let mut inbox = store.mailbox.open(&*lease).await.unwrap();
    let taken = async {
        let mut letter = inbox.next().await.unwrap();
        letter.begin();
        let text: serde_json::Value = serde_json::from_str(&letter.text).unwrap();
        assert!(text["id"].is_string() && text["notAfterMs"].is_u64(), "{text}");
        assert_eq!(text["say"]["do"], "cancel");
        drop(letter);
        // It is asked again what came of it.
        let letter = inbox.next().await.unwrap();
        let again: serde_json::Value = serde_json::from_str(&letter.text).unwrap();
        assert_eq!((&again["id"], again.get("say")), (&text["id"], None));
        letter.answer(json!({"code": "LETTER_UNKNOWN", "message": ""}).to_string());
    };
    let (told, ()) = tokio::join!(engine.cancel(run, "ada", ""), taken);
    let told = told.unwrap_err();
    assert_eq!(told.code(), "RUN_IN_DOUBT");
    let owner = format!("process {} since", std::process::id());
    assert!(told.to_string().contains(&owner), "{told}");
    // It is late with its answer, and heard all the same.
    for (said, code) in [(json!({"ok": true}), None), (late(), Some("RUN_ELSEWHERE"))] {
        let slow = async {
            drop(inbox.next().await.unwrap());
            drop(inbox.next().await.unwrap());
            inbox.next().await.unwrap().answer(said.to_string());
        };
        let (told, ()) = tokio::join!(engine.cancel(run, "ada", ""), slow);
        assert_eq!(told.err().map(|error| error.code()), code);
    }
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
