//! Sessions that are not whole: what is sound of them can be taken elsewhere.

use cairn_core::event::guided::{AdvanceIntent, AdvanceOutcome, AdvanceRecorded};
use cairn_core::event::{Event, Scope};
use cairn_core::id::{AttemptId, BundleId, EventIndex};
use cairn_store::bundle::{ExportInfo, Salvaged, export, import, salvage};
use cairn_store::{AppendPlan, Blob, Config, Store, open};

use crate::given::{self, RUN, SESSION, node, plan_blob, snapshot, start, step, without_places};

fn info() -> ExportInfo {
    ExportInfo {
        bundle_id: BundleId::from_bits(7),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    }
}

async fn with(plans: Vec<AppendPlan>) -> Store {
    let store = open(&Config::Memory).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    for plan in plans {
        store.log.append(SESSION, plan).await.unwrap();
    }
    store
}

async fn lose(store: &Store, blob: Blob) {
    let sweep = store.blobs.sweep().await.unwrap();
    sweep.remove(blob.kind, blob.digest()).await.unwrap();
}

/// The events that a store elsewhere has after the import.
async fn taken(saved: &Salvaged) -> Vec<Event> {
    let elsewhere = open(&Config::Memory).unwrap();
    import(&elsewhere, &saved.bytes).await.unwrap();
    let elsewhere = elsewhere.papers.open().unwrap();
    let report = cairn_store::verify(&elsewhere, SESSION).await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    elsewhere.log.read(SESSION, EventIndex(0)).await.unwrap()
}

#[tokio::test]
async fn a_whole_session_has_nothing_to_salvage() {
    let store = with(vec![step(0), step(1)]).await;
    let saved = salvage(&store, SESSION, info()).await.unwrap();
    assert_eq!((saved.events, saved.left_out, &saved.salvage), (6, 0, &None));
    assert_eq!(saved.bytes, export(&store, SESSION, info()).await.unwrap());
}

#[tokio::test]
async fn what_comes_before_a_lost_blob_can_be_taken_elsewhere() {
    let store = with(vec![step(0), step(1), step(2)]).await;
    lose(&store, snapshot(1)).await;
    let refused = export(&store, SESSION, info()).await.unwrap_err();
    assert_eq!(refused.code(), "STORE_BLOB_MISSING");
    let saved = salvage(&store, SESSION, info()).await.unwrap();
    assert_eq!((saved.events, saved.left_out), (4, 4));
    let wrong = saved.salvage.clone().unwrap();
    let lost = snapshot(1).digest();
    assert_eq!(wrong.health, "corrupt_tail");
    assert_eq!(
        wrong.damage,
        format!("the snapshot {lost} is not in the store, and event 4 needs it")
    );
    let all = store.log.read(SESSION, EventIndex(0)).await.unwrap();
    assert_eq!(without_places(taken(&saved).await), without_places(all)[..4]);
}

/// An attempt is recorded before the node that it leads to.
#[tokio::test]
async fn the_part_ends_where_its_events_fit_together() {
    let mut advanced = step(1);
    let attempt = AdvanceRecorded {
        attempt_id: AttemptId::from_bits(1),
        input_digest: None,
        intent: AdvanceIntent::AckPending,
        outcome: AdvanceOutcome::Advanced { to_node_id: node(1) },
    };
    advanced.events.insert(0, given::event(100, Scope::Node(RUN, node(0)), attempt));
    let store = with(vec![step(0), advanced]).await;
    lose(&store, snapshot(1)).await;
    let saved = salvage(&store, SESSION, info()).await.unwrap();
    assert_eq!((saved.events, saved.left_out), (4, 3));
    assert_eq!(taken(&saved).await.len(), 4);
}

#[tokio::test]
async fn without_its_plan_only_the_session_is_left() {
    let store = with(vec![step(0)]).await;
    lose(&store, plan_blob()).await;
    let saved = salvage(&store, SESSION, info()).await.unwrap();
    assert_eq!((saved.events, saved.left_out), (1, 3));
    assert_eq!(taken(&saved).await.len(), 1);
}
