//! What is kept of runs, and what is not.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_core::id::BundleId;
use cairn_engine::flow::{Automations, Filter, Truster};
use cairn_engine::host::SystemHost;
use cairn_engine::record::{Record, Wanted};
use cairn_store::bundle::{self, ExportInfo};
use cairn_store::gc;
use cairn_store::port::Which;
use serde_json::json;

use crate::recovery::left;
use crate::world::{World, request, run};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn in_days(days: u64) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap() + days * DAY_MS
}

/// How many runs are listed.
async fn listed(engine: &Automations) -> usize {
    engine.list(&Filter::default()).await.unwrap().len()
}

const READS: &str = "{ id: a, type: log, message: hold, next: b }
                     { id: b, type: log, message: file nodes/words.md }";

/// A world whose workflow reads a file of its own.
fn with_file() -> World {
    let world = World::new(&[("w", READS)]);
    let nodes = world.home.path().join("workflows/w/nodes");
    std::fs::create_dir(&nodes).unwrap();
    std::fs::write(nodes.join("words.md"), "as it was").unwrap();
    world
}

/// Takes everything that nobody needs, however young it is.
async fn collect(world: &World) -> gc::Report {
    let policy = gc::Policy { older_than_ms: None, min_age_ms: 0, dry_run: false };
    gc::collect(&world.store(), &policy, u64::MAX).await.unwrap()
}

// case: path.pinned
#[tokio::test]
async fn the_files_of_a_waiting_run_are_not_collected() {
    let world = with_file();
    let run = left(&world, "w").await;
    std::fs::remove_dir_all(world.home.path().join("workflows/w")).unwrap();
    assert_eq!(collect(&world).await.deleted_blobs, 0);
    let engine = world.engine();
    engine.recover().await.unwrap();
    let ended = engine.ended(run).await.unwrap();
    assert_eq!(
        (ended.status, ended.result["message"].as_str()),
        (EndStatus::Succeeded, Some("as it was"))
    );
}

#[tokio::test]
async fn a_run_goes_on_where_its_bundle_is_imported() {
    let (here, there) = (with_file(), World::new(&[]));
    let run = left(&here, "w").await;
    let sessions = here.store().runs.sessions(&Which::All).await.unwrap();
    let info = ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    };
    let bytes = bundle::export(&here.store(), sessions[0].session, info).await.unwrap();
    let engine = there.engine();
    let imported = engine.import(&bytes, "ada").await.unwrap();
    let root = imported.root;
    let truster = Truster { by: "ada".into(), root, workspace: None };
    engine.trust(imported.session, &truster).await.unwrap();
    assert_eq!(collect(&there).await.deleted_blobs, 0);
    engine.recover().await.unwrap();
    engine.resume(run, "ada").await.unwrap();
    let ended = engine.ended(run).await.unwrap();
    assert_eq!(ended.result, json!({"message": "as it was"}));
}

#[tokio::test]
async fn a_plan_that_was_collected_is_put_back_for_the_next_run() {
    let world = with_file();
    let file = world.home.path().join("workflows/w/workflow.yaml");
    let one = |step: &str| {
        let text = format!("name: w\nconcurrency: 1\ngraph:\n  nodes:\n    - {step}\n");
        std::fs::write(&file, text).unwrap();
    };
    one("{ id: q, type: wait, duration_sec: 3600 }");
    let engine = world.engine();
    let first = engine.submit(request("w", json!({}))).await.unwrap().run;
    one("{ id: b, type: log, message: file nodes/words.md }");
    std::fs::write(file.with_file_name("nodes").join("words.md"), "as it is now").unwrap();
    // No event names its plan while it waits for its turn.
    let next = engine.submit(request("w", json!({}))).await.unwrap().run;
    assert_eq!(collect(&world).await.deleted_blobs, 2, "the plan and its file");
    engine.cancel(first, "ada", "").await.unwrap();
    let ended = engine.ended(next).await.unwrap();
    assert_eq!(ended.result, json!({"message": "as it is now"}));
}

#[tokio::test]
async fn runs_go_when_their_time_is_over_and_their_bytes_with_the_last() {
    let world = World::new(&[
        ("w", "{ id: a, type: log, message: x }"),
        ("fails", "{ id: a, type: log, message: fail }"),
    ]);
    let engine = world.engine();
    let (_, past) = run(&engine, "w", json!({})).await;
    run(&engine, "w", json!({})).await;
    run(&engine, "fails", json!({})).await;
    assert_eq!(engine.tidy(in_days(29)).await.unwrap().runs, 0);
    let tidied = engine.tidy(in_days(31)).await.unwrap();
    assert_eq!((tidied.runs, tidied.sessions.len()), (2, 0), "new runs may come");
    let left = engine.list(&Filter::default()).await.unwrap();
    assert_eq!(left.iter().map(|run| run.status.name()).collect::<Vec<_>>(), ["failed"]);
    engine.stop(Duration::from_secs(5)).await;

    let engine = world.engine();
    assert_eq!(listed(&engine).await, 1);
    let tidied = engine.tidy(in_days(31)).await.unwrap();
    assert_eq!((tidied.runs, tidied.sessions), (0, vec![past.summary.session]));
    assert_eq!(tidied.blobs, 1, "the plan of the runs that went");
    let tidied = engine.tidy(in_days(91)).await.unwrap();
    assert_eq!((tidied.runs, tidied.sessions.len(), listed(&engine).await), (1, 1, 0));
    let left = world.store().sessions.list().await.unwrap();
    assert_eq!(left.len(), 2, "what is left are the desks of the two workflows: {left:?}");
}

#[tokio::test]
async fn a_workflow_says_how_many_of_its_runs_are_kept() {
    let world = World::new(&[(
        "w",
        "name: w
retention: { keep_max: 2 }
graph: { nodes: [{ id: a, type: log, message: x }] }",
    )]);
    let engine = world.engine();
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(run(&engine, "w", json!({})).await.1.summary.run);
        let ended = in_days(0);
        // Of runs that are asked for in one millisecond none is the later one.
        while in_days(0) == ended {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(
        engine.tidy(in_days(0)).await.unwrap().runs,
        0,
        "all count for the rate of a minute"
    );
    assert_eq!(engine.tidy(in_days(0) + 61_000).await.unwrap().runs, 3);
    let left = engine.list(&Filter::default()).await.unwrap();
    assert_eq!(left.iter().map(|run| run.run).collect::<Vec<_>>(), [runs[4], runs[3]]);
    // What is not listed can be asked for until its session goes.
    assert_eq!(engine.past(runs[0]).await.unwrap().summary.status.name(), "succeeded");
}

#[tokio::test]
async fn a_run_that_another_waits_for_stays() {
    let world = World::new(&[
        (
            "parent",
            "{ id: a, type: workflow, workflow: project.child, next: b }
             { id: b, type: log, message: hold }",
        ),
        ("child", "{ id: a, type: log, message: x }"),
    ]);
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let asked = engine.submit(request("parent", json!({}))).await.unwrap();
    world.done.held.notified().await;
    assert_eq!(engine.tidy(in_days(40)).await.unwrap().runs, 0);
    world.done.go.notify_one();
    engine.ended(asked.run).await.unwrap();
    assert_eq!(engine.tidy(in_days(40)).await.unwrap().runs, 2);
}

#[tokio::test]
async fn what_fired_once_does_not_fire_again_when_its_run_is_gone() {
    let world = World::new(&[(
        "hook",
        "name: hook
triggers: [{ type: manual, id: m }]
graph: { nodes: [{ id: a, type: log, message: x }] }",
    )]);
    let mut request = request("hook", json!({}));
    request.trigger = Some("m".parse().unwrap());
    request.key = Some("delivery-1".to_owned());
    let engine = world.engine();
    let asked = engine.submit(request.clone()).await.unwrap();
    engine.ended(asked.run).await.unwrap();
    engine.stop(Duration::from_secs(5)).await;
    let engine = world.engine();
    let tidied = engine.tidy(in_days(40)).await.unwrap();
    assert_eq!((tidied.runs, tidied.sessions.len()), (1, 1));
    let engine = world.engine();
    engine.recover().await.unwrap();
    assert!(engine.submit(request).await.unwrap().replayed);
    assert_eq!((listed(&engine).await, world.tries()), (0, vec![1]));
}

#[tokio::test]
async fn a_full_session_takes_no_new_runs_and_ends_those_it_has() {
    let mut world = World::new(&[("w", "{ id: a, type: log, message: '{{ event.payload.m }}' }")]);
    world.options.session_max = 1;
    world.done.holds.store(true, Ordering::SeqCst);
    let engine = world.engine();
    let held = engine.submit(request("w", json!({"m": "hold"}))).await.unwrap();
    world.done.held.notified().await;
    let (_, other) = run(&engine, "w", json!({"m": "x"})).await;
    let tidied = engine.tidy(in_days(40)).await.unwrap();
    assert_eq!((tidied.runs, tidied.sessions), (1, vec![other.summary.session]));
    world.done.go.notify_one();
    engine.ended(held.run).await.unwrap();
    let first = engine.past(held.run).await.unwrap().summary.session;
    assert_ne!(first, other.summary.session);
    assert_eq!(engine.tidy(in_days(40)).await.unwrap().sessions, [first]);
    // Their logs are gone, so the record says that they went.
    let record = Record::new(&world.store(), SystemHost::shared());
    let lines = record.read(0, 100, &Wanted::default()).await.unwrap().lines;
    let retired = lines.iter().filter(|line| line.action == "sessions:retire");
    let retired: Vec<_> = retired.map(|line| line.session_id).collect();
    assert_eq!(retired, [Some(other.summary.session), Some(first)], "{lines:?}");
    assert_eq!(run(&engine, "w", json!({"m": "x"})).await.0.status, EndStatus::Succeeded);
}

#[tokio::test]
async fn an_old_session_takes_no_new_runs() {
    let mut world = World::new(&[("w", "{ id: a, type: log, message: x }")]);
    world.options.session_age_max = Duration::ZERO;
    let engine = world.engine();
    let one = run(&engine, "w", json!({})).await.1.summary.session;
    let two = run(&engine, "w", json!({})).await.1.summary.session;
    assert_ne!(one, two);
    assert_eq!(listed(&engine).await, 2);
}
