//! Things that happen at the same time.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

use cairn_core::id::{BundleId, EventIndex};
use cairn_core::pin::BlobKind;
use cairn_store::bundle::{self, ExportInfo};
use cairn_store::{Config, Error, gc, open};

use crate::given::{self, SESSION, notes, snapshot, start, step};

/// Blobs are put before they are pinned; a collection in between must not take them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collecting_beside_appends_takes_nothing_that_is_needed() {
    let home = tempfile::tempdir().unwrap();
    let store = open(&Config::files(home.path())).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    let (done, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let collector = {
        let (done, rounds) = (done.clone(), rounds.clone());
        let other = open(&Config::files(home.path())).unwrap();
        tokio::spawn(async move {
            let policy = gc::Policy { older_than_ms: None, min_age_ms: 0, dry_run: false };
            while !done.load(Ordering::Relaxed) {
                gc::collect(&other, &policy, u64::MAX).await.unwrap();
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut appended = 0;
    while rounds.load(Ordering::Relaxed) < 5 {
        // The collector seals what it finds idle, so the session may be busy for a moment.
        match store.log.append(SESSION, step(appended)).await {
            Err(Error::Locked { .. }) => {}
            result => {
                result.unwrap();
                appended += 1;
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    collector.await.unwrap();
    assert!(appended > 0, "no append beside 5 collections");
    let report = cairn_store::verify(&store, SESSION).await.unwrap();
    assert_eq!((report.problems, report.events), (Vec::new(), 2 + 2 * appended));
}

/// A caller that goes away takes neither its append back nor the share that keeps the append's
/// blobs: a collection that begins then finds them pinned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_nobody_waits_for_is_done_and_has_its_blobs() {
    let home = tempfile::tempdir().unwrap();
    let store = open(&Config::files(home.path())).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    // Only who finds somebody else committing has to wait, and can stop waiting.
    let busy = {
        let (store, done) = (store.clone(), done.clone());
        tokio::spawn(async move {
            for number in 1_000_000.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                store.log.append(SESSION, notes(number)).await.unwrap();
            }
        })
    };
    let (mut left, mut number) = (0, 0);
    while left < 20 {
        let mut append = store.log.append(SESSION, step(number));
        let waits = poll_fn(|task| Poll::Ready(append.as_mut().poll(task).is_pending())).await;
        drop(append);
        left += u64::from(waits);
        let sweep = store.blobs.sweep().await.unwrap();
        let pins = store.log.status(SESSION).await.unwrap().pins;
        for (blob, _) in sweep.list(BlobKind::Snapshot).await.unwrap() {
            if pins.iter().all(|pin| pin.snapshot_ref != blob) {
                sweep.remove(BlobKind::Snapshot, blob).await.unwrap();
            }
        }
        number += 1;
    }
    done.store(true, Ordering::Relaxed);
    busy.await.unwrap();
    let again = open(&Config::files(home.path())).unwrap();
    for number in 0..number {
        // The retry below would bring the blob along.
        again.blobs.get(BlobKind::Snapshot, snapshot(number).digest()).await.unwrap();
        let appended = again.log.append(SESSION, step(number)).await.unwrap();
        assert!(appended.replayed, "step {number} was undone");
    }
}

/// Whoever reads a session that is being deleted gets all of it or is told that it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_beside_readers_shows_all_or_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = open(&Config::files(home.path())).unwrap();
    for round in 0..30 {
        let session = given::session(round);
        store.log.append(session, start()).await.unwrap();
        store.log.append(session, step(0)).await.unwrap();
        store.log.seal(session).await.unwrap();
        store.log.append(session, step(1)).await.unwrap();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let other = open(&Config::files(home.path())).unwrap();
                tokio::spawn(async move {
                    loop {
                        match other.log.read(session, EventIndex(0)).await {
                            Ok(events) => assert_eq!(events.len(), 6),
                            Err(Error::NotFound(_)) => return,
                            Err(error) => panic!("round {round}: {error}"),
                        }
                    }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        loop {
            match store.sessions.delete(session, None).await {
                Err(Error::Locked { .. }) => {}
                deleted => break deleted.unwrap(),
            }
        }
        for reader in readers {
            reader.await.unwrap();
        }
    }
    assert_eq!(store.sessions.list().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotating_keys_at_the_same_time_loses_no_key() {
    let home = tempfile::tempdir().unwrap();
    let first = open(&Config::files(home.path())).unwrap().keys.load().await.unwrap();
    let rotations: Vec<_> = (0..2)
        .map(|_| {
            let store = open(&Config::files(home.path())).unwrap();
            tokio::spawn(async move {
                let mut rings = Vec::new();
                while rings.len() < 20 {
                    match store.keys.rotate().await {
                        Ok(ring) => rings.push(ring),
                        Err(error) => assert_eq!(error.code(), "KEYRING_BUSY"),
                    }
                }
                rings
            })
        })
        .collect();
    let mut rings = vec![first];
    for rotation in rotations {
        rings.extend(rotation.await.unwrap());
    }
    rings.sort_by_key(|ring| ring.generation);
    for (before, after) in rings.iter().zip(rings.iter().skip(1)) {
        assert_eq!(after.generation, before.generation + 1);
        assert_eq!(after.previous.as_ref(), Some(&before.current));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imports_at_the_same_time_are_all_there() {
    let source = open(&Config::Memory).unwrap();
    source.log.append(SESSION, start()).await.unwrap();
    source.log.append(SESSION, step(0)).await.unwrap();
    let info = ExportInfo {
        bundle_id: BundleId::from_bits(1),
        exported_at: String::new(),
        app_version: String::new(),
    };
    let bundle = Arc::new(bundle::export(&source, SESSION, info).await.unwrap());
    for round in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let imports: Vec<_> = (0..4)
            .map(|_| {
                let (store, bundle) = (open(&Config::files(home.path())).unwrap(), bundle.clone());
                tokio::spawn(async move { bundle::import(&store, &bundle).await.unwrap().session })
            })
            .collect();
        let mut sessions = Vec::new();
        for import in imports {
            sessions.push(import.await.unwrap());
        }
        sessions.dedup();
        let store = open(&Config::files(home.path())).unwrap().with_papers().unwrap();
        assert_eq!(store.sessions.list().await.unwrap(), [SESSION], "round {round}");
        assert_eq!(sessions, [SESSION], "round {round}: all of them get the same one");
        for session in sessions {
            let report = cairn_store::verify(&store, session).await.unwrap();
            assert_eq!((report.events, report.problems), (4, Vec::new()), "round {round}");
        }
    }
}
