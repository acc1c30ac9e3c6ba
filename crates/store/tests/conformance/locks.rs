//! Locks: held by one at a time, never stolen, free when their holder is gone.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cairn_core::id::EventIndex;
use cairn_store::{Config, open};

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
