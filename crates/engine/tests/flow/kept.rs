//! What is kept of runs, and what is not.

use std::time::Duration;

use cairn_core::event::engine::EndStatus;
use cairn_core::id::{BundleId, SessionId};
use cairn_store::bundle::{self, ExportInfo};
use cairn_store::gc;
use serde_json::json;

use crate::recovery::left;
use crate::world::{World, run};

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
    let sessions = here.store().runs.sessions().await.unwrap();
    let info = ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    };
    let bytes = bundle::export(&here.store(), sessions[0].session, info).await.unwrap();
    bundle::import(&there.store(), &bytes, SessionId::from_bits(9)).await.unwrap();
    assert_eq!(collect(&there).await.deleted_blobs, 0);
    let engine = there.engine();
    engine.recover().await.unwrap();
    let ended = engine.ended(run).await.unwrap();
    assert_eq!(ended.result, json!({"message": "as it was"}));
}

#[tokio::test]
async fn a_plan_that_was_collected_is_put_back_for_the_next_run() {
    let world = with_file();
    let engine = world.engine();
    let (_, past) = run(&engine, "w", json!({})).await;
    engine.stop(Duration::from_secs(5)).await;
    world.store().sessions.delete(past.summary.session).await.unwrap();
    assert_eq!(collect(&world).await.deleted_blobs, 2, "the plan and its file");
    let (ended, _) = run(&engine, "w", json!({})).await;
    assert_eq!(ended.result, json!({"message": "as it was"}));
}
