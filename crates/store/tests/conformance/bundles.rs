//! Bundles that somebody made wrong, by accident or on purpose: nothing of them is stored.

use cairn_core::bundle::BYTES_MAX;
use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_core::event::Scope;
use cairn_core::event::guided::{NodeOutputAppended, OutputChannel, OutputPayload};
use cairn_core::id::{BundleId, OutputId};
use cairn_core::pin::BlobKind;
use cairn_store::bundle::{ExportInfo, export, import};
use cairn_store::{AppendPlan, Blob, Config, Store, open};
use serde_json::{Value, json};

use crate::given::{self, SESSION, start, step};

async fn bundle() -> Value {
    let store = open(&Config::Memory).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    store.log.append(SESSION, step(0)).await.unwrap();
    store.log.append(SESSION, step(1)).await.unwrap();
    let info = ExportInfo {
        bundle_id: BundleId::from_bits(7),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    };
    serde_json::from_slice(&export(&store, SESSION, info).await.unwrap()).unwrap()
}

/// Attests whatever a bundle holds, as an author who knows the format would.
fn attest(bundle: &mut Value) {
    let session = bundle["session"].clone();
    let mut entries = Vec::new();
    let mut entry = |path: String, value: &Value| {
        let bytes = canonical::to_vec(value).unwrap();
        let sha256 = Digest::of(&bytes).to_string();
        entries.push(json!({"path": path, "sha256": sha256, "bytes": bytes.len()}));
    };
    for part in ["events", "manifest"] {
        entry(format!("session/{part}"), &session[part]);
    }
    for part in ["snapshots", "pinnedWorkflows"] {
        for (name, value) in session[part].as_object().unwrap() {
            entry(format!("session/{part}/{name}"), value);
        }
    }
    bundle["integrity"]["entries"] = Value::Array(entries);
}

/// Tries to import; gives the code of the refusal, and sees to it that nothing was stored.
async fn refused(bytes: &[u8]) -> &'static str {
    let home = tempfile::tempdir().unwrap();
    let store: Store = open(&Config::files(home.path())).unwrap();
    let error = import(&store, bytes).await.expect_err("must be refused");
    assert_eq!(store.sessions.list().await.unwrap(), [], "{error}");
    let left: Vec<_> = std::fs::read_dir(home.path().join("sessions")).unwrap().collect();
    assert!(left.is_empty(), "{error}: {left:?}");
    for shelf in ["snapshots", "artifacts", "workflows/pinned"] {
        let blobs = std::fs::read_dir(home.path().join(shelf)).unwrap();
        let blobs = blobs.filter(|blob| blob.as_ref().unwrap().path().is_dir());
        assert_eq!(blobs.count(), 0, "{error}: blobs in {shelf}");
    }
    assert!(!error.to_string().contains('\n'), "one line: {error}");
    error.code()
}

async fn changed(change: impl FnOnce(&mut Value)) -> &'static str {
    let mut bundle = bundle().await;
    change(&mut bundle);
    refused(&serde_json::to_vec(&bundle).unwrap()).await
}

/// Changes the contents and attests them again, so that only their meaning is wrong.
async fn forged(change: impl FnOnce(&mut Value)) -> &'static str {
    changed(|bundle| {
        change(&mut bundle["session"]);
        attest(bundle);
    })
    .await
}

#[tokio::test]
async fn what_is_no_bundle() {
    for bytes in [&b""[..], b"{}", b"[]", b"null", b"\xff", b"{\"bundleSchemaVersion\":1}"] {
        assert_eq!(refused(bytes).await, "BUNDLE_INVALID_FORMAT", "{bytes:?}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(refused(deep.as_bytes()).await, "BUNDLE_INVALID_FORMAT");
    let long = vec![b' '; cairn_core::bundle::BYTES_MAX + 1];
    assert_eq!(refused(&long).await, "BUNDLE_INVALID_FORMAT");
    let whole = serde_json::to_string(&bundle().await).unwrap();
    for cut in [1, whole.len() / 2, whole.len() - 1] {
        assert_eq!(refused(&whole.as_bytes()[..cut]).await, "BUNDLE_INVALID_FORMAT");
    }
    let twice = whole.replacen('{', r#"{"bundleId":"bundle_00000000000000000000000001","#, 1);
    assert_eq!(refused(twice.as_bytes()).await, "BUNDLE_INVALID_FORMAT", "a key twice");
    assert_eq!(changed(|b| b["approved"] = true.into()).await, "BUNDLE_INVALID_FORMAT");
    let huge = whole.replace("\"bundleSchemaVersion\":1", "\"bundleSchemaVersion\":1e400");
    assert_eq!(refused(huge.as_bytes()).await, "BUNDLE_INVALID_FORMAT");
}

// case: bundle.version
#[tokio::test]
async fn versions_that_are_not_known() {
    for version in [json!(0), json!(2), json!("1"), json!(null), json!(1.5)] {
        let code = changed(|bundle| bundle["bundleSchemaVersion"] = version.clone()).await;
        assert_eq!(code, "BUNDLE_UNSUPPORTED_VERSION", "{version}");
    }
    let kind = changed(|bundle| bundle["integrity"]["kind"] = "md5".into()).await;
    assert_eq!(kind, "BUNDLE_UNSUPPORTED_VERSION");
    let record = forged(|session| session["manifest"][0]["v"] = 2.into()).await;
    assert_eq!(record, "BUNDLE_UNSUPPORTED_VERSION");
}

// case: bundle.integrity
#[tokio::test]
async fn contents_that_were_changed() {
    let notes = |bundle: &mut Value| {
        bundle["session"]["events"][3]["data"]["payload"]["notesMarkdown"] = "other".into();
    };
    assert_eq!(changed(notes).await, "BUNDLE_INTEGRITY_FAILED");
    // Attested anew, the manifest's digest of the segment still gives it away.
    let code = forged(|session| {
        session["events"][3]["data"]["payload"]["notesMarkdown"] = "other".into();
    })
    .await;
    assert_eq!(code, "BUNDLE_INTEGRITY_FAILED");
    let unattested = |bundle: &mut Value| {
        bundle["integrity"]["entries"].as_array_mut().unwrap().pop();
    };
    assert_eq!(changed(unattested).await, "BUNDLE_INTEGRITY_FAILED");
    let extra = |bundle: &mut Value| {
        let entries = bundle["integrity"]["entries"].as_array_mut().unwrap();
        let copy = entries[0].clone();
        entries.push(copy);
    };
    assert_eq!(changed(extra).await, "BUNDLE_INTEGRITY_FAILED");
    let other_snapshot = forged(|session| {
        let snapshots = session["snapshots"].as_object_mut().unwrap();
        snapshots.values_mut().for_each(|snapshot| *snapshot = json!({"n": 77}));
    })
    .await;
    assert_eq!(other_snapshot, "BUNDLE_INTEGRITY_FAILED");
}

// case: bundle.order
#[tokio::test]
async fn events_that_are_no_log() {
    let swapped = forged(|session| session["events"].as_array_mut().unwrap().swap(1, 2)).await;
    assert_eq!(swapped, "BUNDLE_EVENT_ORDER_INVALID");
    let gap = forged(|session| drop(session["events"].as_array_mut().unwrap().remove(2))).await;
    assert_eq!(gap, "BUNDLE_EVENT_ORDER_INVALID");
    let foreign = forged(|session| {
        session["sessionId"] = "sess_00000000000000000000000001".into();
    })
    .await;
    assert_eq!(foreign, "BUNDLE_EVENT_ORDER_INVALID");
    let repeated = forged(|session| {
        let events = session["events"].as_array_mut().unwrap();
        let mut again = events[3].clone();
        again["eventIndex"] = events.len().into();
        events.push(again);
    })
    .await;
    assert_eq!(repeated, "BUNDLE_EVENT_ORDER_INVALID");
    let unknown = forged(|session| session["events"][3]["kind"] = "run_exploded".into()).await;
    assert_eq!(unknown, "BUNDLE_INVALID_FORMAT");
    let headless = forged(|session| session["events"] = json!([])).await;
    assert_eq!(headless, "BUNDLE_EVENT_ORDER_INVALID");
}

// case: bundle.paths
#[tokio::test]
async fn manifests_that_lead_elsewhere() {
    for path in ["../../keys/keyring.json", "/etc/passwd", "events/0-1.jsonl", ""] {
        let code = forged(|session| {
            session["manifest"][0]["segmentRelPath"] = path.into();
            rechain(session);
        })
        .await;
        assert_eq!(code, "BUNDLE_INVALID_FORMAT", "{path}");
    }
    let short = forged(|session| session["manifest"] = json!([])).await;
    assert_eq!(short, "BUNDLE_MANIFEST_ORDER_INVALID");
    let swapped = forged(|session| session["manifest"].as_array_mut().unwrap().swap(0, 1)).await;
    assert_eq!(swapped, "BUNDLE_MANIFEST_ORDER_INVALID");
}

/// Chains a manifest's records again, as an author who knows the format would.
fn rechain(session: &mut Value) {
    use cairn_core::manifest::Record;
    let mut before = None;
    for value in session["manifest"].as_array_mut().unwrap() {
        let record: Record = serde_json::from_value(value.clone()).unwrap();
        let (record, rec) = record.chained(before).unwrap();
        before = Some(rec);
        *value = serde_json::to_value(record).unwrap();
    }
}

#[tokio::test]
async fn blobs_that_are_missing() {
    let snapshot = forged(|session| session["snapshots"] = json!({})).await;
    assert_eq!(snapshot, "BUNDLE_MISSING_SNAPSHOT");
    let plan = forged(|session| session["pinnedWorkflows"] = json!({})).await;
    assert_eq!(plan, "BUNDLE_MISSING_PINNED_WORKFLOW");
}

/// The bytes of a bundle are a promise to other stores: they change with a new version only.
#[tokio::test]
async fn the_golden_bundle() {
    let bytes = canonical::to_vec(&bundle().await).unwrap();
    insta::assert_snapshot!(Digest::of(&bytes).to_string(), @"sha256:8f6a6cb739125cd1447cb1d7ae9f75b7237f3611e434e3a2d7aa9b47dd1f8ff2");
    insta::assert_json_snapshot!(bundle().await);
}

#[tokio::test]
async fn a_session_that_could_not_be_imported_again_is_not_exported() {
    let store = open(&Config::Memory).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    store.log.append(SESSION, step(0)).await.unwrap();
    // An artifact is kept as text in a bundle, so this one alone is too much.
    let bytes = canonical::to_vec(&json!({"kind": "log", "text": "x".repeat(BYTES_MAX)})).unwrap();
    let blob = Blob { kind: BlobKind::Artifact, bytes };
    let output = NodeOutputAppended {
        output_channel: OutputChannel::Artifact,
        output_id: OutputId::derive(&["large"]),
        payload: OutputPayload::ArtifactRef {
            byte_length: u64::try_from(blob.bytes.len()).unwrap(),
            content_type: "application/json".into(),
            sha256: blob.digest(),
        },
        supersedes_output_id: None,
    };
    let scope = Scope::Node(given::RUN, given::node(0));
    let events = vec![given::event(99, scope, output)];
    store
        .log
        .append(SESSION, AppendPlan { events, blobs: vec![blob], ..AppendPlan::default() })
        .await
        .unwrap();
    let info = ExportInfo {
        bundle_id: BundleId::from_bits(7),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    };
    let error = export(&store, SESSION, info).await.unwrap_err();
    assert_eq!(error.code(), "BUNDLE_TOO_LARGE");
}
