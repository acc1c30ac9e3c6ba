//! What happens to runs when the disk is full, or refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::event::Event;
use cairn_core::event::engine::EndStatus;
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_store::port::{
    Place, Prefix, Room, RunFilter, RunIndex, RunRow, SessionRead, Status, Which,
};
use cairn_store::{AppendPlan, Appended, Error, EventLog, Result};
use serde_json::json;

use crate::world::{World, request, run};

/// A log on a disk that is full now and then, and refuses when it is told to.
struct Narrow {
    log: Arc<dyn EventLog>,
    no_runs: AtomicBool,
    no_steps: AtomicBool,
    /// How many appends fail from now on.
    refusals: AtomicU32,
    /// How often somebody found it full.
    asked: AtomicU32,
}

fn full() -> Error {
    Error::Full { context: "as told".to_owned() }
}

#[async_trait]
impl EventLog for Narrow {
    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        let left = |left: u32| left.checked_sub(1);
        if self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return Err(full());
        }
        self.log.append(session, plan).await
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> Result<Vec<Event>> {
        self.log.read_between(session, from, through).await
    }

    async fn read_prefix(&self, session: SessionId) -> Result<Prefix> {
        self.log.read_prefix(session).await
    }

    async fn status(&self, session: SessionId) -> Result<Status> {
        self.log.status(session).await
    }

    async fn seal(&self, session: SessionId) -> Result<()> {
        self.log.seal(session).await
    }

    async fn room(&self, wanted: Room) -> Result<()> {
        let full_for = match wanted {
            Room::Run => &self.no_runs,
            Room::Step => &self.no_steps,
        };
        if full_for.load(Ordering::SeqCst) {
            self.asked.fetch_add(1, Ordering::SeqCst);
            return Err(full());
        }
        Ok(())
    }
}

/// A list of runs that is written to only when it may be.
struct Slow {
    list: Arc<dyn RunIndex>,
    may: tokio::sync::Semaphore,
}

#[async_trait]
impl RunIndex for Slow {
    async fn record(&self, rows: Vec<RunRow>, read: Vec<SessionRead>) -> Result<()> {
        let _may = self.may.acquire().await.unwrap();
        self.list.record(rows, read).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        self.list.list(filter).await
    }

    async fn find(&self, run: RunId) -> Result<Option<RunRow>> {
        self.list.find(run).await
    }

    async fn place(&self) -> Result<Option<Place>> {
        self.list.place().await
    }

    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()> {
        self.list.reach(since, place).await
    }

    async fn sessions(&self, which: &Which) -> Result<Vec<SessionRead>> {
        self.list.sessions(which).await
    }

    async fn forget(&self, gone: Vec<SessionId>) -> Result<()> {
        self.list.forget(gone).await
    }
}

#[tokio::test]
async fn a_run_is_found_while_the_list_of_runs_is_being_written() {
    let world = World::new(&[
        ("outer", "{ id: c, type: workflow, workflow: project.inner }"),
        ("inner", "{ id: e, type: end, result: 4 }"),
    ]);
    let mut store = world.store();
    let slow = Slow { list: Arc::clone(&store.runs), may: tokio::sync::Semaphore::new(1) };
    let slow = Arc::new(slow);
    store.runs = Arc::clone(&slow) as _;
    let engine = world.engine_on(store);
    // Whoever takes the desk of a workflow looks at the whole list; after that nobody waits for it.
    let first = engine.submit(request("outer", json!({}))).await.unwrap().run;
    assert_eq!(ended(&engine, first).await, EndStatus::Succeeded);
    slow.may.acquire().await.unwrap().forget();
    let run = engine.submit(request("outer", json!({}))).await.unwrap().run;
    assert_eq!(ended(&engine, run).await, EndStatus::Succeeded);
    slow.may.add_permits(1);
    engine.stop(Duration::from_secs(5)).await;
}

const TWO: &str = "{ id: a, type: log, message: hold, next: b }
     { id: b, type: log, message: last }";

fn narrow(world: &World) -> (cairn_engine::flow::Automations, Arc<Narrow>) {
    let mut store = world.store();
    let narrow = Arc::new(Narrow {
        log: Arc::clone(&store.log),
        no_runs: AtomicBool::new(false),
        no_steps: AtomicBool::new(false),
        refusals: AtomicU32::new(0),
        asked: AtomicU32::new(0),
    });
    store.log = Arc::clone(&narrow) as _;
    (world.engine_on(store), narrow)
}

async fn ended(engine: &cairn_engine::flow::Automations, run: cairn_core::id::RunId) -> EndStatus {
    let ended = tokio::time::timeout(Duration::from_secs(20), engine.ended(run));
    ended.await.unwrap().unwrap().status
}

#[tokio::test]
async fn a_full_disk_refuses_new_runs_and_lets_those_under_way_end() {
    let world = World::new(&[("w", TWO)]);
    world.done.holds.store(true, Ordering::SeqCst);
    let (engine, disk) = narrow(&world);
    let under_way = engine.submit(request("w", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    disk.no_runs.store(true, Ordering::SeqCst);
    let refused = engine.submit(request("w", json!({}))).await.unwrap_err();
    assert_eq!(refused.code(), "STORE_FULL", "{refused}");
    world.done.go.notify_one();
    assert_eq!(ended(&engine, under_way).await, EndStatus::Succeeded);
    assert_eq!(world.tries(), [1, 1], "nothing was called off");
    world.done.holds.store(false, Ordering::SeqCst);
    disk.no_runs.store(false, Ordering::SeqCst);
    run(&engine, "w", json!({})).await;
}

#[tokio::test]
async fn a_run_waits_for_room_and_repeats_nothing() {
    let world = World::new(&[("w", TWO)]);
    world.done.holds.store(true, Ordering::SeqCst);
    let (engine, disk) = narrow(&world);
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    disk.no_steps.store(true, Ordering::SeqCst);
    world.done.go.notify_one();
    let asked = async {
        while disk.asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asked).await.unwrap();
    disk.no_steps.store(false, Ordering::SeqCst);
    assert_eq!(ended(&engine, run).await, EndStatus::Succeeded);
    assert_eq!(world.tries(), [1, 1]);
}

#[tokio::test]
async fn whoever_asks_while_the_disk_is_full_is_told_so_and_nothing_comes_of_it() {
    let world = World::new(&[("w", TWO)]);
    world.done.holds.store(true, Ordering::SeqCst);
    let (engine, disk) = narrow(&world);
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    disk.no_steps.store(true, Ordering::SeqCst);
    let limit = Duration::from_secs(20);
    let told = tokio::time::timeout(limit, engine.cancel(run, "tester", "enough")).await.unwrap();
    assert_eq!(told.unwrap_err().code(), "STORE_FULL");
    let told = tokio::time::timeout(limit, engine.pause(run, "tester")).await.unwrap();
    assert_eq!(told.unwrap_err().code(), "STORE_FULL");
    disk.no_steps.store(false, Ordering::SeqCst);
    world.done.go.notify_one();
    assert_eq!(ended(&engine, run).await, EndStatus::Succeeded);
    assert_eq!(world.tries(), [1, 1]);
}

#[tokio::test]
async fn a_commit_that_failed_is_made_good_without_a_restart() {
    let world = World::new(&[("w", TWO)]);
    world.done.holds.store(true, Ordering::SeqCst);
    let (engine, disk) = narrow(&world);
    let run = engine.submit(request("w", json!({}))).await.unwrap().run;
    world.done.held.notified().await;
    world.done.holds.store(false, Ordering::SeqCst);
    disk.refusals.store(2, Ordering::SeqCst);
    world.done.go.notify_one();
    assert_eq!(ended(&engine, run).await, EndStatus::Succeeded);
    let mut tries = world.tries();
    tries.sort_unstable();
    // The second refusal is met by the intent to repeat, before anything is repeated.
    assert_eq!(tries, [1, 2], "what was not recorded is done again, with its key");
}
