//! The list of runs follows from their sessions, also while it cannot be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use cairn_core::id::{RunId, SessionId};
use cairn_core::projection::run::RunStatus;
use cairn_engine::flow::Filter;
use cairn_store::port::{Place, RunFilter, RunIndex, RunRow, SessionRead, Which};
use cairn_store::{Error, Result, Store};
use serde_json::json;

use crate::world::{World, request};

/// A list that somebody stopped in the middle of writing.
struct Stuck {
    runs: Arc<dyn RunIndex>,
    is_stuck: AtomicBool,
    tries: AtomicU32,
}

#[async_trait]
impl RunIndex for Stuck {
    async fn record(&self, rows: Vec<RunRow>, read: Vec<SessionRead>) -> Result<()> {
        if self.is_stuck.load(Ordering::SeqCst) {
            self.tries.fetch_add(1, Ordering::SeqCst);
            return Err(Error::LockBusy { what: "the index of runs".to_owned(), holder: None });
        }
        self.runs.record(rows, read).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        self.runs.list(filter).await
    }

    async fn find(&self, run: RunId) -> Result<Option<RunRow>> {
        self.runs.find(run).await
    }

    async fn place(&self) -> Result<Option<Place>> {
        self.runs.place().await
    }

    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()> {
        if self.is_stuck.load(Ordering::SeqCst) {
            return Err(Error::LockBusy { what: "the index of runs".to_owned(), holder: None });
        }
        self.runs.reach(since, place).await
    }

    async fn sessions(&self, which: &Which) -> Result<Vec<SessionRead>> {
        self.runs.sessions(which).await
    }

    async fn forget(&self, gone: Vec<SessionId>) -> Result<()> {
        match self.is_stuck.load(Ordering::SeqCst) {
            true => Err(Error::LockBusy { what: "the index of runs".to_owned(), holder: None }),
            false => self.runs.forget(gone).await,
        }
    }
}

fn stuck(store: Store) -> (Store, Arc<Stuck>) {
    let (is_stuck, tries) = (AtomicBool::new(true), AtomicU32::new(0));
    let list = Arc::new(Stuck { runs: Arc::clone(&store.runs), is_stuck, tries });
    (Store { runs: Arc::clone(&list) as _, ..store }, list)
}

#[tokio::test]
async fn runs_are_found_and_listed_while_the_list_cannot_be_written() {
    const WAITS: &str = "{ id: q, type: wait, duration_sec: 3600 }";
    let names = ["a", "b", "c", "d"];
    let world = World::new(&names.map(|name| (name, WAITS)));
    let (store, its_list) = stuck(world.store());
    let owner = world.engine_on(store);
    let mut runs = Vec::new();
    for name in names {
        runs.push(owner.submit(request(name, json!({}))).await.unwrap().run);
    }
    // Another process that finds nothing in the list reads the sessions, and tries once to
    // write what it finds.
    let (store, list) = stuck(world.store());
    let other = world.engine_on(store);
    assert_eq!(other.past(runs[0]).await.unwrap().summary.status, RunStatus::Waiting);
    assert_eq!(list.tries.load(Ordering::SeqCst), 1, "each try takes a while");
    for engine in [&owner, &other] {
        let listed = engine.list(&Filter::default()).await.unwrap();
        let mut found: Vec<RunId> = listed.iter().map(|summary| summary.run).collect();
        assert!(listed.iter().all(|summary| summary.status == RunStatus::Waiting), "{listed:?}");
        found.sort_unstable();
        let mut all = runs.clone();
        all.sort_unstable();
        assert_eq!(found, all);
        let filter = Filter { limit: Some(2), ..Filter::default() };
        let latest = engine.list(&filter).await.unwrap();
        assert_eq!(latest, listed[..2], "the latest come first");
    }
    // What happens meanwhile is known, too.
    owner.cancel(runs[0], "ada", "enough").await.unwrap();
    assert_eq!(other.list(&Filter::default()).await.unwrap().len(), names.len());
    assert_eq!(other.past(runs[0]).await.unwrap().summary.status, RunStatus::Cancelled);
    // And once the list can be written, all of it is.
    for list in [&its_list, &list] {
        list.is_stuck.store(false, Ordering::SeqCst);
    }
    for engine in [&owner, &other] {
        engine.list(&Filter::default()).await.unwrap();
    }
    let rows = world.store().runs.list(&RunFilter::default()).await.unwrap();
    assert_eq!(rows.len(), names.len());
    let ended = rows.iter().find(|row| row.run == runs[0]).unwrap();
    assert_eq!(ended.status, RunStatus::Cancelled);
}
