//! A guide over a store of its own, workflows of its own, and an eye on what is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cairn_core::event::guided::Autonomy;
use cairn_core::event::{Event, EventData};
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::pin::BlobKind;
use cairn_core::projection::session::SessionView;
use cairn_core::snapshot::{EngineState, ExecutionSnapshot};
use cairn_engine::Result;
use cairn_engine::catalog::{Catalog, Directory};
use cairn_engine::guided::answer::{Answer, Checkpointed, TokenSet};
use cairn_engine::guided::ask::{
    At, Checkpoint, CheckpointAt, Continue, Intent, Output, Start, Tokens, Wanted,
};
use cairn_engine::guided::{Guide, Options};
use cairn_engine::host::SystemHost;
use cairn_engine::performer::Performers;
use cairn_lang::ids::SourceKind;
use cairn_store::port::{Prefix, Status};
use cairn_store::{AppendPlan, Appended, Config, EventLog, Store};
use serde_json::Value;

/// Three plain steps.
pub(crate) const THREE: &str = "
id: project.three
name: Three steps
description: One after the other.
version: 1.0.0
steps:
  - {id: first, title: The first, prompt: 'Do the first thing for {{ticket}}.'}
  - {id: second, title: The second, prompt: Do the second thing.}
  - {id: third, title: The third, prompt: Do the third thing.}
";

pub(crate) struct World {
    pub(crate) home: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) guide: Guide,
    writes: Arc<AtomicUsize>,
}

impl World {
    /// A world with these workflows, each a file's name and text.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("workflows");
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        Self::over(home, &[(SourceKind::Project, &folder)])
    }

    /// A world with one workflow.
    pub(crate) fn of(text: &str) -> Self {
        Self::with(&[("one.yaml", text)])
    }

    pub(crate) fn over(home: tempfile::TempDir, folders: &[(SourceKind, &Path)]) -> Self {
        let mut store = cairn_store::open(&Config::files(home.path().join("data"))).unwrap();
        let writes = Arc::new(AtomicUsize::new(0));
        store.log = Arc::new(Watched { log: store.log, writes: Arc::clone(&writes) });
        let guide = guide(&store, folders, Performers::default());
        Self { home, store, guide, writes }
    }

    /// The same workflows over other data, with an engine that does these steps by itself.
    pub(crate) fn performing(&self, store: &Store, performers: Performers) -> Guide {
        guide(store, &self.folders(), performers)
    }

    /// The same workflows and a copy of the data, from which it goes on differently.
    pub(crate) fn copied(&self) -> Self {
        let home = tempfile::tempdir().unwrap();
        copy(self.home.path(), home.path());
        let folder = home.path().join("workflows");
        Self::over(home, &[(SourceKind::Project, &folder)])
    }

    /// The same data, seen by a process that starts now.
    pub(crate) fn restarted(&self) -> Guide {
        let store = cairn_store::open(&Config::files(self.home.path().join("data"))).unwrap();
        guide(&store, &self.folders(), Performers::default())
    }

    fn folders(&self) -> [(SourceKind, PathBuf); 1] {
        [(SourceKind::Project, self.home.path().join("workflows"))]
    }

    /// How often anything was appended.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    pub(crate) async fn start(&self, workflow: &str) -> Answer {
        self.guide.start(Start { workflow: workflow.into(), ..Start::default() }).await.unwrap()
    }

    pub(crate) async fn start_in(&self, workflow: &str, autonomy: Autonomy) -> Answer {
        let preferences = Wanted { autonomy: Some(autonomy), risk_policy: None };
        let start = Start { workflow: workflow.into(), preferences, ..Start::default() };
        self.guide.start(start).await.unwrap()
    }

    /// Goes on with notes alone.
    pub(crate) async fn go(&self, from: &Answer) -> Answer {
        self.go_with(from, Vec::new()).await
    }

    /// Goes on with artifacts.
    pub(crate) async fn go_with(&self, from: &Answer, artifacts: Vec<Value>) -> Answer {
        self.guide.proceed(ack(&from.tokens.continue_token, NOTES, artifacts)).await.unwrap()
    }

    /// Comes back to where a token stands.
    pub(crate) async fn back(&self, tokens: &TokenSet) -> Answer {
        self.guide.proceed(back(&tokens.continue_token)).await.unwrap()
    }

    /// Leaves notes where tokens stand.
    pub(crate) async fn note(&self, tokens: &TokenSet, notes: &str) -> Checkpointed {
        let note = Checkpoint {
            at: CheckpointAt::Compact(tokens.checkpoint_token.clone().unwrap()),
            output: Output { notes: Some(notes.to_owned()), artifacts: Vec::new() },
            replaces_notes: false,
            tokens: Tokens::Compact,
            by: None,
        };
        self.guide.checkpoint(note).await.unwrap()
    }

    /// Everything that is recorded of a session.
    pub(crate) async fn events(&self, session: SessionId) -> Vec<Event> {
        self.store.log.read(session, EventIndex(0)).await.unwrap()
    }

    /// A session at a glance.
    pub(crate) async fn view(&self, session: SessionId) -> SessionView {
        SessionView::fold(&self.events(session).await)
    }

    /// The states of a session's nodes, oldest first.
    pub(crate) async fn states(&self, session: SessionId) -> Vec<EngineState> {
        let mut states = Vec::new();
        for event in self.events(session).await {
            if let EventData::NodeCreated(node) = event.data {
                let blobs = &self.store.blobs;
                let bytes = blobs.get(BlobKind::Snapshot, node.snapshot_ref.0).await.unwrap();
                states.push(ExecutionSnapshot::decode(&bytes).unwrap().state);
            }
        }
        states
    }

    /// Starts a run with a context.
    pub(crate) async fn start_with(&self, workflow: &str, context: Value) -> Answer {
        let start = Start { workflow: workflow.into(), context: Some(context), ..Start::default() };
        self.guide.start(start).await.unwrap()
    }

    /// Goes on with notes and facts.
    pub(crate) async fn go_knowing(&self, from: &Answer, context: Value) -> Answer {
        let call = ack(&from.tokens.continue_token, NOTES, Vec::new());
        self.guide.proceed(Continue { context: Some(context), ..call }).await.unwrap()
    }

    /// The steps that a run asks for, one after the other, to its end.
    pub(crate) async fn to_the_end(&self, from: Answer) -> Vec<String> {
        let mut steps = Vec::new();
        let mut answer = from;
        while !answer.is_complete {
            assert_eq!(answer.blockers, [], "at {}", step(&answer));
            steps.push(step(&answer).to_owned());
            answer = self.go(&answer).await;
        }
        steps
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

pub(crate) const NOTES: &str = "Did it: changed `src/cart.rs`, 3 tests pass, nothing is open.";

fn guide(
    store: &Store,
    folders: &[(SourceKind, impl AsRef<Path>)],
    performers: Performers,
) -> Guide {
    let directory = |(kind, root): &(SourceKind, _)| Directory {
        kind: *kind,
        root: AsRef::<Path>::as_ref(root).to_path_buf(),
    };
    let catalog = Catalog::new(folders.iter().map(directory).collect());
    Guide::new(
        store.clone(),
        Arc::new(catalog),
        performers,
        SystemHost::shared(),
        Options::default(),
    )
}

/// What an agent sends to go on.
pub(crate) fn ack(token: &str, notes: &str, artifacts: Vec<Value>) -> Continue {
    Continue {
        at: At::Compact(token.to_owned()),
        intent: Some(Intent::Advance),
        output: Some(Output { notes: Some(notes.to_owned()), artifacts }),
        context: None,
        preferences: Wanted::default(),
        tokens: Tokens::Compact,
        by: None,
    }
}

/// What an agent sends that has lost its place.
pub(crate) fn back(token: &str) -> Continue {
    Continue { intent: None, output: None, ..ack(token, "", Vec::new()) }
}

/// The prompt of an answer; empty at the end.
pub(crate) fn prompt(answer: &Answer) -> &str {
    answer.pending.as_ref().map(|pending| pending.prompt.as_str()).unwrap_or_default()
}

/// The step that an answer asks for; empty at the end.
pub(crate) fn step(answer: &Answer) -> &str {
    answer.pending.as_ref().map(|pending| pending.step_id.as_str()).unwrap_or_default()
}

/// The codes of an answer's blockers.
pub(crate) fn blockers(answer: &Answer) -> Vec<String> {
    let code = |blocker: &cairn_core::reason::Blocker| {
        serde_json::to_value(blocker.code).unwrap().as_str().unwrap().to_owned()
    };
    answer.blockers.iter().map(code).collect()
}

/// The code of a refused call, and that it says what to do.
pub(crate) fn refused(result: Result<Answer>) -> &'static str {
    match result {
        Ok(answer) => panic!("it was answered: {answer:?}"),
        Err(error) => error.code(),
    }
}

/// A log that counts what is written to it.
struct Watched {
    log: Arc<dyn EventLog>,
    writes: Arc<AtomicUsize>,
}

#[async_trait]
impl EventLog for Watched {
    async fn append(&self, session: SessionId, plan: AppendPlan) -> cairn_store::Result<Appended> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.log.append(session, plan).await
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> cairn_store::Result<Vec<Event>> {
        self.log.read_between(session, from, through).await
    }

    async fn read_prefix(&self, session: SessionId) -> cairn_store::Result<Prefix> {
        self.log.read_prefix(session).await
    }

    async fn status(&self, session: SessionId) -> cairn_store::Result<Status> {
        self.log.status(session).await
    }

    async fn seal(&self, session: SessionId) -> cairn_store::Result<()> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.log.seal(session).await
    }
}
