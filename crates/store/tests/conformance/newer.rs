//! What a session is that a later version wrote to: readable whole, and not to be written.

use std::fs;
use std::path::Path;

use cairn_core::bundle;
use cairn_core::event::guided::SessionCreated;
use cairn_core::event::{EventData, Scope};
use cairn_core::id::{BundleId, EventIndex, RunId, SessionId};
use cairn_core::pin::BlobKind;
use cairn_core::projection::run::{RunState, RunStatus, StepStatus};
use cairn_core::projection::session::SessionView;
use cairn_core::projection::timeline::Timeline;
use cairn_core::snapshot::RunSnapshot;
use cairn_store::bundle::{ExportInfo, export, import};
use cairn_store::verify::verify;
use cairn_store::{AppendPlan, Config, Error, Health, Notice, Store, open};

use crate::given::{self, event, start};

const FUTURE: &str = "sess_01hf7yat00000000000000000f";

/// A copy of the golden session, and a store over it.
struct Future {
    home: tempfile::TempDir,
    store: Store,
    session: SessionId,
}

impl Future {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/newer"), home.path());
        let store = open(&Config::files(home.path())).unwrap();
        Self { home, store, session: FUTURE.parse().unwrap() }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("sessions").join(FUTURE).join(name)
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

fn info() -> ExportInfo {
    ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0".into(),
    }
}

#[tokio::test]
async fn it_is_listed_read_shown_and_verified() {
    let Future { store, session, .. } = &Future::new();
    assert_eq!(store.sessions.list().await.unwrap(), [*session]);
    let status = store.log.status(*session).await.unwrap();
    assert_eq!((status.health, status.events, status.format), (Health::Healthy, 7, 3));
    assert_eq!(status.notices, [Notice::NewerFormat]);
    let events = store.log.read(*session, EventIndex(0)).await.unwrap();
    let run: RunId = events[1].scope.run().unwrap();
    let view = SessionView::fold(&events);
    assert_eq!(view.runs[&run].workflow_id.as_deref(), Some("project.triage"));
    let state = RunState::fold(run, &events);
    assert_eq!(state.status(), RunStatus::Running);
    assert_eq!(state.steps[&"fetch".parse().unwrap()].status, StepStatus::Succeeded);
    let timeline = Timeline::fold(&events);
    let told: Vec<&str> = timeline.entries().iter().map(|entry| entry.text.as_str()).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    session created
    run of `project.triage` queued
    unknown kind `step_dreaming`, of a later version
    run of `project.triage` started
    fetch completed
    state stored through event 4
    step waiting, in a form of a later version
    ");
    let report = verify(store, *session).await.unwrap();
    assert_eq!((report.health, report.problems), (Health::Healthy, Vec::<String>::new()));
    let EventData::SnapshotTaken(taken) = &events[5].data else { panic!("{:?}", events[5]) };
    let bytes = store.blobs.get(BlobKind::Snapshot, taken.snapshot_ref.0).await.unwrap();
    assert_eq!(RunSnapshot::decode(&bytes).unwrap().state.steps.len(), 1);
}

#[tokio::test]
async fn it_is_exported_byte_for_byte_and_not_imported_here() {
    let future = Future::new();
    let bytes = export(&future.store, future.session, info()).await.unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    for file in ["events/00000000-00000002.jsonl", "journal.jsonl"] {
        let lines = fs::read_to_string(future.file(file)).unwrap();
        for line in lines.lines().filter(|line| !line.starts_with("{\"commit\"")) {
            assert!(text.contains(line), "{line}");
        }
    }
    let mut blobs = Vec::new();
    for folder in ["artifacts", "snapshots", "workflows/pinned"] {
        collect(&future.home.path().join(folder), &mut blobs);
    }
    assert_eq!(blobs.len(), 3);
    assert!(blobs.iter().all(|name| text.contains(name)), "{blobs:?}");
    let refused = bundle::unpack(&bytes).unwrap_err();
    assert_eq!(refused.code(), "BUNDLE_UNSUPPORTED_VERSION");
    let other = tempfile::tempdir().unwrap();
    let store = open(&Config::files(other.path())).unwrap();
    let refused = import(&store, &bytes).await.unwrap_err();
    assert_eq!(refused.code(), "BUNDLE_UNSUPPORTED_VERSION");
    assert_eq!(store.sessions.list().await.unwrap(), []);
}

fn collect(folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => collect(&entry.path(), names),
            false if name.starts_with('.') => {}
            false => names.push(name),
        }
    }
}

#[tokio::test]
async fn nothing_is_written_to_it_and_other_sessions_go_on() {
    let future = Future::new();
    let Future { store, session, .. } = &future;
    let before: Vec<Vec<u8>> = ["journal.jsonl", "manifest.jsonl"]
        .map(|file| fs::read(future.file(file)).unwrap())
        .to_vec();
    let events = vec![event(9, Scope::Session, SessionCreated {})];
    let plan = AppendPlan { events, ..AppendPlan::default() };
    let is_newer = |error: &Error| matches!(error, Error::Newer { found: 3, known: 1, .. });
    for _ in 0..2 {
        let refused = store.log.append(*session, plan.clone()).await.unwrap_err();
        assert!(is_newer(&refused), "{refused}");
        assert_eq!(refused.code(), "SESSION_NEWER");
    }
    assert!(is_newer(&store.log.seal(*session).await.unwrap_err()));
    assert!(is_newer(&store.sessions.retire(*session, EventIndex(6), None).await.unwrap_err()));
    let events = store.log.read(*session, EventIndex(0)).await.unwrap();
    let adopted = store.sessions.adopt(given::session(3), events, None).await;
    assert!(is_newer(&adopted.unwrap_err()));
    let after: Vec<Vec<u8>> = ["journal.jsonl", "manifest.jsonl"]
        .map(|file| fs::read(future.file(file)).unwrap())
        .to_vec();
    assert_eq!(before, after);
    store.log.append(given::SESSION, start()).await.unwrap();
    assert_eq!(store.log.status(given::SESSION).await.unwrap().format, 1);
    assert_eq!(store.log.read(*session, EventIndex(0)).await.unwrap().len(), 7);
}

/// Rewrites the journal's lines and vouches for them, as somebody who knows the format could.
fn forge(future: &Future, change: impl Fn(&str) -> String) {
    let path = future.file("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (events, commit): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| !line.starts_with("{\"commit\""));
    let lines: String = events.iter().map(|line| change(line) + "\n").collect();
    let mut commit: serde_json::Value = serde_json::from_str(commit[0]).unwrap();
    commit["commit"].as_object_mut().unwrap().remove("rec");
    let unsigned = cairn_core::canonical::to_vec(&commit).unwrap();
    let rec = cairn_core::digest::Digest::of_all(&[lines.as_bytes(), &unsigned]);
    commit["commit"]["rec"] = serde_json::to_value(rec).unwrap();
    let commit = cairn_core::canonical::to_vec(&commit).unwrap();
    fs::write(&path, [lines.as_bytes(), &commit, b"\n"].concat()).unwrap();
}

#[tokio::test]
async fn what_is_newer_and_does_not_say_so_is_a_named_error_and_stays() {
    for (from, to) in [
        // In the payload, in the envelope, and a kind.
        (r#","needs":2,"scope":{"#, r#","scope":{"#),
        (r#""kind":"run_started""#, r#""kind":"run_started","mood":"fine""#),
        (r#""kind":"run_started""#, r#""kind":"run_dreamt""#),
    ] {
        let future = Future::new();
        forge(&future, |line| line.replace(from, to));
        let written = fs::read(future.file("journal.jsonl")).unwrap();
        let read = future.store.log.read(future.session, EventIndex(0)).await.unwrap_err();
        assert_eq!(read.code(), "SESSION_UNKNOWN_VERSION", "{from} to {to}: {read}");
        let events = vec![event(9, Scope::Session, SessionCreated {})];
        let plan = AppendPlan { events, ..AppendPlan::default() };
        let refused = future.store.log.append(future.session, plan).await.unwrap_err();
        assert!(
            ["SESSION_UNKNOWN_VERSION", "SESSION_NEWER"].contains(&refused.code()),
            "{refused}"
        );
        let report = verify(&future.store, future.session).await.unwrap();
        assert!(!report.problems.is_empty(), "{from} to {to}");
        assert_eq!(fs::read(future.file("journal.jsonl")).unwrap(), written, "nothing is cut off");
        future.store.log.append(given::SESSION, start()).await.unwrap();
    }
}
