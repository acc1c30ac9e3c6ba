//! What came from elsewhere and is trusted is history: it begins nothing by itself, and answers for
//! nothing that is asked for here.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_core::id::{RunId, SessionId};
use cairn_engine::flow::{Automations, Filter, RunRequest, Truster};
use serde_json::{Value, json};

use crate::forged::{Known, Lie, forged, insert, set_run, set_session};
use crate::world::{World, request, run};

const TRIGGERED: &str = "name: w
triggers: [{ id: m, type: manual }]
graph: { nodes: [{ id: a, type: log, message: a }] }";

fn keyed(workflow: &str, key: &str) -> RunRequest {
    let (trigger, key) = (Some("m".parse().unwrap()), Some(key.to_owned()));
    RunRequest { trigger, key, ..request(workflow, json!({})) }
}

/// What a place says of itself before anything is in it: the desk of `w`, and the run that it
/// begins for a key.
async fn of_nothing_yet(world: &World, key: &str) -> (SessionId, RunId) {
    let engine = world.engine();
    let asked = engine.submit(keyed("w", key)).await.unwrap();
    engine.ended(asked.run).await.unwrap();
    let own = engine.past(asked.run).await.unwrap().summary.session;
    let sessions = world.store().sessions.list().await.unwrap();
    let desk = *sessions.iter().find(|session| **session != own).unwrap();
    engine.stop(Duration::from_secs(5)).await;
    std::fs::remove_dir_all(world.home.path().join("data")).unwrap();
    world.done.keys.lock().unwrap().clear();
    (desk, asked.run)
}

/// A session of a finished run with a lie in it, which somebody trusts.
async fn trust(engine: &Automations, known: &Known, lie: Lie) -> SessionId {
    let liar = World::new(&[("w", TRIGGERED)]);
    let (_, past) = run(&liar.engine(), "w", json!({})).await;
    let bytes = forged(&liar, past.summary.run, known, lie).await.unwrap();
    trust_bytes(engine, &bytes).await
}

async fn trust_bytes(engine: &Automations, bytes: &[u8]) -> SessionId {
    let imported = engine.import(bytes, "ada").await.unwrap();
    let truster = Truster { by: "ada".into(), root: imported.root, workspace: None };
    engine.trust(imported.session, &truster).await.unwrap();
    imported.session
}

fn known(desk: SessionId, run: RunId) -> Known {
    Known { session: desk, desk, run, over: run, file: String::new() }
}

// case: bundle.no-authority
#[tokio::test]
async fn what_fired_elsewhere_begins_nothing_here() {
    let world = World::new(&[("w", TRIGGERED)]);
    let (desk, owed) = of_nothing_yet(&world, "k").await;
    let engine = world.engine();
    let lie: Lie = |events, known| {
        set_session(events, known.desk);
        let event = json!({"payload": {}, "trigger": "m", "type": "manual", "key": "k"});
        let received = json!({
            "key": "k", "payload": {"inline": {"event": event, "depth": 0}}, "runId": known.run,
            "triggerId": "m", "workflowId": "project.w",
        });
        insert(events, "trigger_received", &received, None);
    };
    let session = trust(&engine, &known(desk, owed), lie).await;
    assert_ne!(session, desk, "it is no desk of ours");
    engine.recover().await.unwrap();
    assert_eq!(world.tries(), Vec::<u32>::new(), "trust permits, and starts nothing");
    let asked = engine.submit(keyed("w", "k")).await.unwrap();
    assert!(!asked.replayed, "nobody has seen the key here");
    assert_eq!(engine.ended(asked.run).await.unwrap().status, EndStatus::Succeeded);
}

// case: bundle.no-authority
#[tokio::test]
async fn a_run_from_elsewhere_answers_for_no_key() {
    let world = World::new(&[("w", TRIGGERED)]);
    let (desk, next) = of_nothing_yet(&world, "tomorrow").await;
    let engine = world.engine();
    let lie: Lie = |events, known| set_run(events, known.run);
    let session = trust(&engine, &known(desk, next), lie).await;
    assert_eq!(engine.past(next).await.unwrap().summary.session, session);
    for replayed in [false, true] {
        let asked = engine.submit(keyed("w", "tomorrow")).await.unwrap();
        assert_eq!((asked.run == next, asked.replayed), (false, replayed));
        assert_eq!(engine.ended(asked.run).await.unwrap().status, EndStatus::Succeeded);
        let own = engine.past(asked.run).await.unwrap().summary.session;
        assert_ne!(own, session, "nothing of ours begins in what was imported");
    }
    assert_eq!(world.tries(), [1]);
}

// case: bundle.no-authority
#[tokio::test]
async fn a_run_from_elsewhere_is_nobodys_child() {
    let parent = "
        { id: hold, type: log, message: hold, next: child }
        { id: child, type: workflow, workflow: project.ask, next: pay }
        { id: pay, type: log, message: pay }
    ";
    let world = World::new(&[
        ("w", TRIGGERED),
        ("p", parent),
        ("ask", "{ id: a, type: human, prompt: Pay? }"),
    ]);
    let engine = world.engine();
    world.done.holds.store(true, Ordering::SeqCst);
    let parent = engine.submit(request("p", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    let child = RunId::derive(&[&parent.to_string(), "child"]);
    let lie: Lie = |events, known| set_run(events, known.run);
    trust(&engine, &known(SessionId::from_bits(1), child), lie).await;
    world.done.go.notify_one();
    let ended = tokio::time::timeout(Duration::from_secs(20), engine.ended(parent)).await;
    let ended = ended.unwrap().unwrap();
    assert_eq!(ended.status, EndStatus::Failed, "what was decided elsewhere is no approval");
    assert!(ended.result["message"].to_string().contains("has the id"), "{}", ended.result);
    assert_eq!(world.tries(), [1], "nothing is paid");
}

// case: bundle.no-authority
#[tokio::test]
async fn what_failed_elsewhere_is_told_to_nobody_here() {
    let fails = "name: w
on_error: { trigger_workflow: project.handler }
graph: { nodes: [{ id: a, type: log, message: fail }] }";
    let handler = "name: handler
triggers: [{ type: error }]
graph: { nodes: [{ id: a, type: log, message: told }] }";
    let workflows = [("w", fails), ("handler", handler)];
    // Whoever takes failures was there before this one.
    let (world, liar) = (World::new(&workflows), World::new(&workflows));
    let (_, past) = run(&liar.engine(), "w", json!({})).await;
    let known = known(past.summary.session, past.summary.run);
    let bytes = forged(&liar, past.summary.run, &known, |_, _| {}).await.unwrap();
    let engine = world.engine();
    trust_bytes(&engine, &bytes).await;
    engine.recover().await.unwrap();
    let listed: Vec<Value> = engine
        .list(&Filter::default())
        .await
        .unwrap()
        .iter()
        .map(|row| json!([row.workflow, row.status.name()]))
        .collect();
    assert_eq!(listed, [json!(["project.w", "failed"])]);
    assert_eq!(world.tries(), Vec::<u32>::new(), "trust permits, and starts nothing");
}

/// A run from elsewhere that goes on, and one of ours that begins meanwhile, keep to themselves.
#[tokio::test]
async fn nothing_of_ours_begins_in_a_session_from_elsewhere() {
    let nodes = "
        { id: a, type: log, message: hold, next: b }
        { id: b, type: log, message: b }
    ";
    let (world, liar) = (World::new(&[("w", nodes)]), World::new(&[("w", nodes)]));
    let there = crate::recovery::left(&liar, "w").await;
    let session = liar.engine().past(there).await.unwrap().summary.session;
    let bytes = forged(&liar, there, &known(session, there), |_, _| {}).await.unwrap();
    let engine = world.engine();
    let imported = trust_bytes(&engine, &bytes).await;
    world.done.holds.store(true, Ordering::SeqCst);
    engine.resume(there, "ada").await.unwrap();
    world.done.held.notified().await;
    world.done.holds.store(false, Ordering::SeqCst);
    let (_, past) = run(&engine, "w", json!({})).await;
    assert_ne!(past.summary.session, imported);
    world.done.go.notify_one();
    assert_eq!(engine.ended(there).await.unwrap().status, EndStatus::Succeeded);
}
