//! Sessions, plans and stores to test with.

use cairn_core::digest::{Digest, SnapshotRef, WorkflowHash};
use cairn_core::event::engine::RunPaused;
use cairn_core::event::guided::{
    NodeCreated, NodeKind, NodeOutputAppended, OutputChannel, OutputPayload, RunStarted,
    SessionCreated, SourceKind,
};
use cairn_core::event::{Event, EventData, NewEvent, Scope};
use cairn_core::id::{ChangeId, EventId, EventIndex, NodeId, OutputId, RunId, SessionId};
use cairn_core::pin::BlobKind;
use cairn_store::memory::{Control, Outside};
use cairn_store::port::Lease;
use cairn_store::{AppendPlan, Blob, Config, Epoch, Store, open};

/// A store and what it needs to exist.
pub(crate) struct Given {
    pub(crate) store: Store,
    pub(crate) home: Option<tempfile::TempDir>,
    control: Option<Control>,
}

impl Given {
    pub(crate) fn memory() -> Self {
        let control = Control::new(Outside::system());
        Self { store: control.store(std::process::id()), home: None, control: Some(control) }
    }

    pub(crate) fn files() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = open(&Config::files(home.path())).unwrap();
        Self { store, home: Some(home), control: None }
    }

    /// The same data, opened again; a store in memory has only itself.
    pub(crate) fn again(&self) -> Store {
        match &self.home {
            Some(home) => open(&Config::files(home.path())).unwrap(),
            None => self.store.clone(),
        }
    }

    /// Lets the session be acquired by another one while its owner lives.
    pub(crate) fn take_away(&self) {
        if let Some(home) = &self.home {
            let session = home.path().join("sessions").join(SESSION.to_string());
            std::fs::remove_file(session.join(".owner")).unwrap();
        }
        if let Some(control) = &self.control {
            control.expire(SESSION).unwrap();
        }
    }
}

/// Makes a test of each function, for each store.
macro_rules! conformance {
    ($($name:ident)*) => {
        mod memory { $(
            #[tokio::test]
            async fn $name() { super::$name(&$crate::given::Given::memory()).await; }
        )* }
        mod files { $(
            #[tokio::test]
            async fn $name() { super::$name(&$crate::given::Given::files()).await; }
        )* }
    };
}
pub(crate) use conformance;

pub(crate) async fn acquire(store: &Store) -> Box<dyn Lease> {
    store.leases.acquire(SESSION, "test").await.unwrap()
}

/// A plan made by the owner of this epoch.
pub(crate) fn by(epoch: Epoch, plan: AppendPlan) -> AppendPlan {
    AppendPlan { fence: Some(epoch), ..plan }
}

/// A plan of a run that the engine performs.
pub(crate) fn paused(number: u64) -> AppendPlan {
    let change_id = ChangeId::derive(&[&number.to_string()]);
    let paused = RunPaused { by: "test".into(), change_id, imported: false, via: None };
    let events = vec![event(1000 + number, Scope::Run(RUN), paused)];
    AppendPlan { events, ..AppendPlan::default() }
}

pub(crate) const SESSION: SessionId = SessionId::from_bits(0x5e55);
pub(crate) const RUN: RunId = RunId::from_bits(0x12);

pub(crate) fn session(number: u64) -> SessionId {
    SessionId::mint(1_700_000_000_000, u128::from(number))
}

pub(crate) fn event(number: u64, scope: Scope, data: impl Into<EventData>) -> NewEvent {
    NewEvent {
        id: EventId::mint(1_700_000_000_000 + number, u128::from(number)),
        scope,
        data: data.into(),
    }
}

pub(crate) fn plan_blob() -> Blob {
    Blob { kind: BlobKind::Plan, bytes: br#"{"schemaVersion":1}"#.to_vec() }
}

pub(crate) fn snapshot(number: u64) -> Blob {
    Blob { kind: BlobKind::Snapshot, bytes: format!("{{\"n\":{number}}}").into_bytes() }
}

/// The first plan of a session: it exists and has a run.
pub(crate) fn start() -> AppendPlan {
    let started = RunStarted {
        assets: Vec::new(),
        goal: None,
        workflow_hash: WorkflowHash(plan_blob().digest()),
        workflow_id: "project.demo".into(),
        workflow_source_kind: SourceKind::Project,
        workflow_source_ref: "workflows/demo.json".into(),
        workspace: None,
    };
    AppendPlan {
        events: vec![
            event(0, Scope::Session, SessionCreated {}),
            event(1, Scope::Run(RUN), started),
        ],
        seen: vec![(RUN, None)],
        blobs: vec![plan_blob()],
        fence: None,
    }
}

pub(crate) fn node(number: u64) -> NodeId {
    NodeId::from_bits(u128::from(number) + 1)
}

/// The plan that adds step `number`: a node with its snapshot, and notes.
pub(crate) fn step(number: u64) -> AppendPlan {
    let blob = snapshot(number);
    let created = NodeCreated {
        node_kind: NodeKind::Step,
        parent_node_id: number.checked_sub(1).map(node),
        snapshot_ref: SnapshotRef(blob.digest()),
        workflow_hash: WorkflowHash(plan_blob().digest()),
    };
    let notes = note(number, format!("step {number} is done"));
    let scope = Scope::Node(RUN, node(number));
    AppendPlan {
        events: vec![event(2 * number + 2, scope, created), notes],
        blobs: vec![blob],
        ..AppendPlan::default()
    }
}

/// The plan that adds notes alone: nothing but an event line.
pub(crate) fn notes(number: u64) -> AppendPlan {
    let text = format!("notes {number}: {}", "x".repeat(200));
    AppendPlan { events: vec![note(number, text)], ..AppendPlan::default() }
}

fn note(number: u64, notes_markdown: String) -> NewEvent {
    let output = NodeOutputAppended {
        output_channel: OutputChannel::Recap,
        output_id: OutputId::derive(&[&number.to_string()]),
        payload: OutputPayload::Notes { notes_markdown },
        supersedes_output_id: None,
    };
    event(2 * number + 3, Scope::Node(RUN, node(number)), output)
}

/// A plan made when run `RUN` was at `seen`.
pub(crate) fn at(mut plan: AppendPlan, seen: Option<u64>) -> AppendPlan {
    plan.seen = vec![(RUN, seen.map(EventIndex))];
    plan
}

pub(crate) fn missing() -> Digest {
    Digest::of(b"nobody has this")
}

/// Events without the place of the file that their workflow was read from, which does not travel.
pub(crate) fn without_places(events: Vec<Event>) -> Vec<Event> {
    let without = |mut event: Event| {
        if let EventData::RunStarted(started) = &mut event.data {
            started.workflow_source_ref.clear();
        }
        event
    };
    events.into_iter().map(without).collect()
}
