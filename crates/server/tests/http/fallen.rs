//! Lanes that fall: the server says so until they are back, and their runs go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use cairn_core::event::{Event, EventData};
use cairn_core::id::{EventIndex, SessionId};
use cairn_store::port::{EventLog, Prefix, Status};
use cairn_store::{AppendPlan, Appended, Result, Store};
use serde_json::json;

use crate::client::{Server, World};

const APPROVE: &str = "name: Approve
graph:
  nodes:
    - { id: ask, type: human, prompt: May it?, cases: { approved: good, rejected: good } }
    - { id: good, type: log, message: good }
";

/// What the server says of itself: whether it is ready, and how many lanes fell and are down.
async fn state(server: &Server) -> (u16, u64, u64) {
    let metrics = server.get("/metrics").await.body;
    let number = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap().parse().unwrap()
    };
    let ready = server.ask("GET", "/readyz", &[]).await.status;
    (ready, number("cairn_lane_falls_total"), number("cairn_lanes_down"))
}

/// Looks until the server says this of itself.
async fn until(server: &Server, wanted: impl Fn((u16, u64, u64)) -> bool) {
    let looked = async {
        while !wanted(state(server).await) {
            tokio::task::yield_now().await;
        }
    };
    let patience = std::time::Duration::from_secs(30);
    if tokio::time::timeout(patience, looked).await.is_err() {
        panic!("it stays as it is: {:?}", state(server).await);
    }
}

async fn approve(server: &Server, run: &str) {
    let shown = server.until_status(run, "waiting").await;
    let task = shown["tasks"][0]["taskId"].as_str().unwrap().to_owned();
    let answer = json!({"verdict": "approved"});
    let path = format!("/api/v1/runs/{run}/tasks/{task}/answer");
    let answered = server.call("POST", &path, Some(&answer)).await;
    assert!(answered.status < 300, "{}", answered.body);
}

#[tokio::test]
async fn a_lane_that_cannot_come_back_is_told_of_until_it_does() {
    let world = World::new(&[("approve", APPROVE)]);
    let server = world.serve().await;
    let run = server.begin("approve", json!({})).await;
    let shown = server.until_status(&run, "waiting").await;
    assert_eq!(state(&server).await, (200, 0, 0));
    let session: SessionId = shown["sessionId"].as_str().unwrap().parse().unwrap();
    // Somebody removes its lock file, and another process has the session.
    let owner = world.home().join("sessions").join(session.to_string()).join(".owner");
    std::fs::remove_file(owner).unwrap();
    let lease = world.store().leases.acquire(session, "test").await.unwrap();
    until(&server, |(ready, falls, down)| ready == 503 && falls >= 1 && down == 1).await;
    drop(lease);
    until(&server, |(ready, _, down)| ready == 200 && down == 0).await;
    approve(&server, &run).await;
    server.until_status(&run, "succeeded").await;
}

/// A log in which something breaks once, in the middle of a lane's work.
struct Breaks {
    log: Arc<dyn EventLog>,
    breaks: AtomicBool,
}

#[async_trait]
impl EventLog for Breaks {
    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        let answers = |data: &EventData| matches!(data, EventData::TaskAnswered(_));
        let is_it = plan.events.iter().any(|event| answers(&event.data));
        assert!(!(is_it && self.breaks.swap(false, Ordering::SeqCst)), "an invariant is broken");
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
}

#[tokio::test]
async fn a_lane_that_panics_is_told_of_and_comes_back_with_its_runs() {
    let world = World::new(&[("approve", APPROVE)]);
    let store = world.store();
    let log = Arc::new(Breaks { log: Arc::clone(&store.log), breaks: AtomicBool::new(true) });
    let server = world.serve_on(Store { log, ..store }).await;
    let run = server.begin("approve", json!({})).await;
    // Whoever answers is heard by the lane that comes back.
    approve(&server, &run).await;
    server.until_status(&run, "succeeded").await;
    until(&server, |state| state == (200, 1, 0)).await;
}
