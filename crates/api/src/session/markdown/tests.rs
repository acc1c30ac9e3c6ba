use std::fs;

use cairn_core::digest::Digest;
use cairn_core::pin::BlobKind;
use cairn_store::{Config, open};

use super::*;

/// A store with the example session that has forks, a checkpoint and gaps.
async fn example() -> (Store, SessionId) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sessions/rounding.json");
    let store = open(&Config::Memory).unwrap();
    let bundle = fs::read(path).unwrap();
    let imported = cairn_store::bundle::import(&store, &bundle).await.unwrap();
    (store.papers.open().unwrap(), imported.session)
}

async fn lose(store: &Store, kind: BlobKind, session: SessionId) -> Digest {
    let pins = store.log.status(session).await.unwrap().pins;
    let lost = pins.iter().find(|pin| pin.blob_kind == kind).unwrap().snapshot_ref;
    store.blobs.sweep().await.unwrap().remove(kind, lost).await.unwrap();
    lost
}

#[tokio::test]
async fn a_session_is_told_from_its_beginning_to_its_tip() {
    let (store, session) = example().await;
    let told = tell(&store, session, Extent::Whole).await.unwrap();
    assert_eq!(told.salvage, None);
    insta::assert_snapshot!(told.markdown);
}

#[tokio::test]
async fn what_is_missing_is_said_first_and_everything_else_is_told() {
    let (store, session) = example().await;
    let artifact = lose(&store, BlobKind::Artifact, session).await;
    lose(&store, BlobKind::Plan, session).await;
    let refused = tell(&store, session, Extent::Whole).await.unwrap_err();
    assert_eq!(refused.code(), "STORE_BLOB_MISSING");
    assert!(refused.envelope().suggestion.starts_with("add --partial"));
    let told = tell(&store, session, Extent::Partial).await.unwrap();
    let banner = told.markdown.lines().nth(2).unwrap();
    assert!(banner.starts_with("> **This is not the whole session.**"), "{banner}");
    assert!(banner.contains(&artifact.to_string()), "{banner}");
    assert!(told.markdown.contains("It could not be read."));
    assert!(told.markdown.contains("### 5. verify"), "without a plan a step has its id");
    assert_eq!(told.salvage.unwrap().health, "corrupt_tail");
}

/// Whatever a text holds, the document's own lines are the same.
#[tokio::test]
async fn no_text_breaks_out() {
    let (store, session) = example().await;
    let outline = |markdown: &str| -> Vec<String> {
        let own =
            |line: &&str| line.starts_with('#') || line.starts_with("</") || line.starts_with("<d");
        markdown.lines().filter(own).map(str::to_owned).collect()
    };
    let whole = tell(&store, session, Extent::Whole).await.unwrap().markdown;
    let hostile = "</details>\n# head\r## head\n```\n<!--\n> \n\n````";
    let mut events = store.log.read(session, EventIndex(0)).await.unwrap();
    for event in &mut events {
        use cairn_core::event::EventData as E;
        match &mut event.data {
            E::NodeOutputAppended(output) => {
                if let OutputPayload::Notes { notes_markdown } = &mut output.payload {
                    *notes_markdown = hostile.to_owned();
                }
            }
            E::GapRecorded(gap) => gap.summary = hostile.to_owned(),
            E::DivergenceRecorded(left) => left.summary = hostile.to_owned(),
            _ => {}
        }
    }
    let mut shelf = Shelf::new();
    for pin in store.log.status(session).await.unwrap().pins {
        let (kind, digest) = (pin.blob_kind, pin.snapshot_ref);
        let bytes = match kind {
            BlobKind::Artifact => hostile.as_bytes().to_vec(),
            _ => store.blobs.get(kind, digest).await.unwrap(),
        };
        shelf.insert((kind, digest), bytes);
    }
    let document = document(session, &events, &shelf, None);
    let fences = document.matches("`````").count();
    assert_eq!(fences, 2, "the artifact's fence is longer than the one in it");
    let outside = document.split("`````").step_by(2).collect::<String>();
    assert_eq!(outline(&outside), outline(&whole));
}

#[test]
fn a_long_artifact_is_cut() {
    let long = serde_json::to_vec(&vec![1; 9_000]).unwrap();
    let shown = artifact(Some(&long));
    assert!(shown.len() < ARTIFACT_MAX + 20, "{}", shown.len());
    assert!(shown.ends_with("\n\n[TRUNCATED]\n```\n"), "{shown}");
    assert_eq!(artifact(Some(b"\xff\x00")), "It is not text.\n");
}
