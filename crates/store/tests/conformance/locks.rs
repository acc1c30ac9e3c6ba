//! Locks: held by one at a time, never stolen, free when their holder is gone.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cairn_core::id::EventIndex;
use cairn_store::port::documents::Name;
use cairn_store::port::locks::Exclusive;
use cairn_store::{Config, Error, open};

use crate::given::{SESSION, notes, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_on_one_directory_take_turns() {
    let home = tempfile::tempdir().unwrap();
    let stores = [(); 2].map(|()| open(&Config::files(home.path())).unwrap());
    stores[0].log.append(SESSION, start()).await.unwrap();
    let writers = stores.clone().into_iter().zip(0u64..).map(|(store, writer)| {
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for number in 0..200 {
                let plan = notes(writer * 1000 + number);
                match store.log.append(SESSION, plan).await {
                    Ok(at) => acknowledged.push(at.first),
                    Err(error) => assert_eq!(error.code(), "SESSION_LOCKED"),
                }
            }
            acknowledged
        })
    });
    let mut acknowledged = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        acknowledged.extend(writer.await.unwrap());
    }
    acknowledged.sort_unstable();
    let count = acknowledged.len() as u64;
    assert!(count > 100, "{count} of 400 appends got the lock");
    assert_eq!(acknowledged, (2..2 + count).map(EventIndex).collect::<Vec<_>>());
    for store in stores {
        let events = store.log.read(SESSION, EventIndex(0)).await.unwrap();
        assert_eq!(events.len() as u64, 2 + count);
    }
}

#[tokio::test]
async fn a_held_lock_is_reported_with_its_holder_and_never_stolen() {
    let home = tempfile::tempdir().unwrap();
    let store = open(&Config::files(home.path())).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    let path = home.path().join("sessions").join(SESSION.to_string()).join(".lock");
    let holder = std::fs::File::open(&path).unwrap();
    holder.try_lock().unwrap();
    let before = Instant::now();
    let error = store.log.append(SESSION, notes(0)).await.unwrap_err();
    assert_eq!(error.code(), "SESSION_LOCKED");
    let process = std::process::id();
    assert!(error.to_string().contains(&format!("process {process}")), "{error}");
    assert!(before.elapsed() < Duration::from_secs(2), "fails fast");
    let events = store.log.read(SESSION, EventIndex(0)).await.unwrap();
    assert_eq!(events.len(), 2, "reading needs no lock");
    holder.unlock().unwrap();
    store.log.append(SESSION, notes(0)).await.unwrap();
}

#[tokio::test]
async fn a_lock_file_that_was_removed_locks_nothing() {
    let home = tempfile::tempdir().unwrap();
    let [first, second] = [(); 2].map(|()| open(&Config::files(home.path())).unwrap());
    first.log.append(SESSION, start()).await.unwrap();
    let path = home.path().join("sessions").join(SESSION.to_string()).join(".lock");
    std::fs::remove_file(&path).unwrap();
    second.log.append(SESSION, notes(0)).await.unwrap();
    let holder = std::fs::File::open(&path).unwrap();
    holder.try_lock().unwrap();
    let error = first.log.append(SESSION, notes(1)).await.unwrap_err();
    assert_eq!(error.code(), "SESSION_LOCKED", "the old file's lock does not count");
    holder.unlock().unwrap();
    first.log.append(SESSION, notes(1)).await.unwrap();
}

/// A child that is being made holds its parent's open files for a moment, locks included.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spawn_storm_leaves_no_lock_behind() {
    let home = tempfile::tempdir().unwrap();
    let store = open(&Config::files(home.path())).unwrap();
    let other = open(&Config::files(home.path())).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let storm = {
        let done = done.clone();
        std::thread::spawn(move || {
            let mut children = 0;
            while !done.load(Ordering::Relaxed) {
                Command::new("/bin/true").status().unwrap();
                children += 1;
            }
            children
        })
    };
    for number in 0..200 {
        store.log.append(SESSION, notes(number)).await.unwrap();
        other.log.append(SESSION, notes(1000 + number)).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    let children = storm.join().unwrap();
    assert!(children > 10, "{children} children");
}

/// What is said of a lock that another process holds and does not give back, within two seconds
/// however many wait for it in one process.
async fn require_holder_is_named<T, W>(path: &std::path::Path, wait: impl Fn() -> W)
where
    T: Send + 'static,
    W: Future<Output = cairn_store::Result<T>> + Send + 'static,
{
    let holder = std::fs::File::open(path).unwrap();
    holder.try_lock().unwrap();
    let before = Instant::now();
    let waiting: Vec<_> = (0..4).map(|_| tokio::spawn(wait())).collect();
    for waiting in waiting {
        let error = waiting.await.unwrap().map(drop).unwrap_err();
        assert_eq!(error.code(), "STORE_BUSY", "{error}");
        let named = format!("process {} since 20", std::process::id());
        assert!(error.to_string().contains(&named), "{error}");
    }
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
    holder.unlock().unwrap();
    wait().await.map(drop).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_long_where_somebody_was_stopped_and_hears_who_it_was() {
    let home = tempfile::tempdir().unwrap();
    let store = open(&Config::files(home.path())).unwrap();
    let audit = store.audit.clone();
    let add = move || {
        let audit = audit.clone();
        async move { audit.append(Box::new(|_| Some(b"{}".to_vec()))).await }
    };
    // Whoever holds it now was the last to do so.
    add().await.unwrap();
    require_holder_is_named(&home.path().join("audit/audit.jsonl"), add).await;
    let documents = store.documents.clone();
    let change = move || {
        let documents = documents.clone();
        let content = |_: Option<&[u8]>| Ok((Some(b"{}".to_vec()), ()));
        async move { documents.update::<(), Error>(&Name::fixed("schedules.json"), content).await }
    };
    change().await.unwrap();
    require_holder_is_named(&home.path().join(".documents.lock"), change).await;
    let locks = store.locks.clone();
    let seal = move || {
        let locks = locks.clone();
        async move { locks.lock(Exclusive::Vault).await }
    };
    drop(seal().await.unwrap());
    require_holder_is_named(&home.path().join("secrets/.lock"), seal).await;
}
