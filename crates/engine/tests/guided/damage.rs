//! A session that is not whole: nothing goes on from it, and nothing of it is offered.

use std::path::{Path, PathBuf};

use cairn_core::event::EventData;
use cairn_engine::guided::Guide;
use cairn_engine::guided::answer::Answer;
use cairn_engine::guided::ask::{Checkpoint, CheckpointAt, Output, Resume, Tokens};

use crate::world::{NOTES, THREE, World, ack, back, refused};

/// A run that stands at its second step, with its session sealed.
async fn sealed() -> (World, Answer, PathBuf) {
    let world = World::of(THREE);
    let first = world.start("project.three").await;
    let second = world.go(&first).await;
    let session = first.session.unwrap().session;
    world.store.log.seal(session).await.unwrap();
    let folder = world.home.path().join("data/sessions").join(session.to_string());
    (world, second, folder)
}

/// The codes of going on, of leaving notes and of coming back.
async fn codes(guide: &Guide, answer: &Answer) -> [&'static str; 3] {
    let token = &answer.tokens.continue_token;
    let note = Checkpoint {
        at: CheckpointAt::Compact(answer.tokens.checkpoint_token.clone().unwrap()),
        output: Output { notes: Some("Halfway.".into()), artifacts: Vec::new() },
        replaces_notes: false,
        tokens: Tokens::Compact,
        by: None,
    };
    [
        refused(guide.proceed(ack(token, NOTES, Vec::new())).await),
        guide.checkpoint(note).await.unwrap_err().code(),
        refused(guide.proceed(back(token)).await),
    ]
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.get_mut(at).unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files
}

#[tokio::test]
async fn a_damaged_log_is_neither_gone_on_from_nor_shown_nor_offered() {
    for at_the_end in [false, true] {
        let (world, second, folder) = sealed().await;
        let segment = files(&folder.join("events")).pop().unwrap();
        let length = std::fs::read(&segment).unwrap().len();
        flip(&segment, if at_the_end { length - 40 } else { 10 });
        let fresh = world.restarted();
        assert_eq!(codes(&fresh, &second).await, ["SESSION_CORRUPT"; 3]);
        assert_eq!(fresh.resume(Resume::default()).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_log_of_a_later_version_is_left_alone() {
    let (world, second, folder) = sealed().await;
    let manifest = folder.join("manifest.jsonl");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"v\":1", "\"v\":2")).unwrap();
    let fresh = world.restarted();
    assert_eq!(codes(&fresh, &second).await, ["SESSION_UNKNOWN_VERSION"; 3]);
    assert_eq!(fresh.resume(Resume::default()).await.unwrap(), []);
}

#[tokio::test]
async fn a_snapshot_that_is_damaged_or_gone_is_never_made_up() {
    for (gone, code) in [(false, "STORE_BLOB_CORRUPT"), (true, "STORE_BLOB_MISSING")] {
        let (world, second, _) = sealed().await;
        let session = *world.store.sessions.list().await.unwrap().first().unwrap();
        let last = world.events(session).await.into_iter().rev().find_map(|e| match e.data {
            EventData::NodeCreated(node) => Some(node.snapshot_ref.0.hex()),
            _ => None,
        });
        let name = last.unwrap();
        let all = files(&world.home.path().join("data"));
        let path = all.iter().find(|p| p.ends_with(&name)).unwrap();
        match gone {
            true => std::fs::remove_file(path).unwrap(),
            false => flip(path, 5),
        }
        assert_eq!(codes(&world.restarted(), &second).await, [code; 3]);
        assert_eq!(world.restarted().resume(Resume::default()).await.unwrap(), []);
    }
}
