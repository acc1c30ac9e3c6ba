//! The fence: whoever is not the owner any more changes nothing, and is told so.

use std::fs;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use cairn_core::event::Event;
use cairn_core::id::EventIndex;
use cairn_store::port::Lease;
use cairn_store::{AppendPlan, Epoch, Error, Store};

use crate::given::{Given, SESSION, acquire, by, conformance, notes, paused, start, step};

conformance! {
    each_acquiring_raises_the_epoch
    whoever_asks_for_an_owned_session_is_told_who_has_it
    a_replaced_owner_changes_nothing_and_hears_of_it
    an_owner_can_ask_whether_it_was_replaced
    an_epoch_that_nobody_was_given_changes_nothing
    what_owners_add_needs_an_epoch
    guided_runs_are_added_to_beside_an_owner
    an_owner_may_remove_its_session
    an_owner_that_does_nothing_is_told_when_it_is_replaced
    a_session_that_is_gone_is_not_found_by_its_owner
}

/// Something that an owner does to its session.
#[derive(Clone, Copy, Debug)]
enum Change {
    Append,
    Replay,
    Retire,
    Delete,
}

const CHANGES: [Change; 4] = [Change::Append, Change::Replay, Change::Retire, Change::Delete];

impl Change {
    async fn make(self, store: &Store, fence: Option<Epoch>) -> Result<(), Error> {
        let append = async |plan| {
            let plan = AppendPlan { fence, ..plan };
            store.log.append(SESSION, plan).await.map(drop)
        };
        match self {
            Self::Append => append(paused(99)).await,
            Self::Replay => append(paused(0)).await,
            Self::Retire => store.sessions.retire(SESSION, EventIndex(2), fence).await.map(drop),
            Self::Delete => store.sessions.delete(SESSION, fence).await,
        }
    }
}

/// A session whose owner has added something under its epoch.
async fn owned(given: &Given) -> Box<dyn Lease> {
    given.store.log.append(SESSION, start()).await.unwrap();
    let lease = acquire(&given.store).await;
    given.store.log.append(SESSION, by(lease.epoch(), paused(0))).await.unwrap();
    lease
}

async fn events(store: &Store) -> Vec<Event> {
    store.log.read(SESSION, EventIndex(0)).await.unwrap()
}

/// Whether an owner has been told, by either way to learn of it.
fn is_lost(lease: &dyn Lease) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    let told = pin!(lease.lost()).as_mut().poll(&mut context) == Poll::Ready(());
    assert_eq!(told, lease.is_lost());
    told
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.expect_err("this must be refused").code()
}

async fn each_acquiring_raises_the_epoch(given: &Given) {
    given.store.log.append(SESSION, start()).await.unwrap();
    let mut last = Epoch(0);
    for round in 0..6 {
        let store = given.again();
        let lease = acquire(&store).await;
        assert!(lease.epoch() > last, "round {round}: {} after {last}", lease.epoch());
        assert_eq!(lease.session(), SESSION);
        last = lease.epoch();
        // Whether or not its owner did anything, and wherever that is by now.
        if round % 2 == 0 {
            store.log.append(SESSION, by(last, paused(round))).await.unwrap();
        }
        if round % 3 == 0 {
            store.log.seal(SESSION).await.unwrap();
        }
        assert!(!is_lost(&*lease));
    }
}

async fn whoever_asks_for_an_owned_session_is_told_who_has_it(given: &Given) {
    given.store.log.append(SESSION, start()).await.unwrap();
    let lease = given.store.leases.acquire(SESSION, "count stones").await.unwrap();
    let before = Instant::now();
    for store in [&given.store, &given.again()] {
        let refused = store.leases.acquire(SESSION, "test").await.map(drop);
        let Err(Error::Owned { session, owner: Some(owner) }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((session, owner.pid), (SESSION, std::process::id()));
        assert_eq!(owner.purpose, "count stones");
        assert!(owner.since_ms > 1_700_000_000_000, "{owner:?}");
        let said = Error::Owned { session, owner: Some(owner) }.to_string();
        assert!(said.contains(&format!("process {} since 20", std::process::id())), "{said}");
        assert_eq!(code(Change::Delete.make(store, None).await), "SESSION_OWNED");
    }
    assert!(before.elapsed() < Duration::from_secs(2), "nobody waits for an owner");
    drop(lease);
    acquire(&given.again()).await;
}

async fn a_replaced_owner_changes_nothing_and_hears_of_it(given: &Given) {
    drop(owned(given).await);
    for change in CHANGES {
        let (mine, other) = (given.again(), given.again());
        let old = acquire(&mine).await;
        given.take_away();
        let new = acquire(&other).await;
        // Also before the new owner has added anything.
        let before = events(&other).await;
        match change.make(&mine, Some(old.epoch())).await {
            Err(Error::Fenced { session, held, current }) => {
                assert_eq!((session, held, current), (SESSION, old.epoch(), new.epoch()));
            }
            refused => panic!("{change:?}: {refused:?}"),
        }
        assert!(is_lost(&*old), "{change:?}");
        assert_eq!(events(&given.again()).await, before, "{change:?}");
        let plan = by(new.epoch(), step(new.epoch().0));
        other.log.append(SESSION, plan.clone()).await.unwrap();
        assert_eq!(code(change.make(&mine, Some(old.epoch())).await), "STORE_FENCED");
        assert!(other.log.append(SESSION, plan).await.unwrap().replayed);
        assert!(!is_lost(&*new), "{change:?}");
    }
}

async fn an_owner_can_ask_whether_it_was_replaced(given: &Given) {
    let old = owned(given).await;
    let before = events(&given.store).await;
    old.verify().await.unwrap();
    given.take_away();
    old.verify().await.expect("nobody else has acquired it");
    let new = acquire(&given.again()).await;
    match old.verify().await {
        Err(Error::Fenced { held, current, .. }) => {
            assert_eq!((held, current), (old.epoch(), new.epoch()));
        }
        refused => panic!("{refused:?}"),
    }
    assert!(is_lost(&*old));
    new.verify().await.unwrap();
    assert!(!is_lost(&*new));
    assert_eq!(events(&given.store).await, before, "asking changes nothing");
}

async fn an_epoch_that_nobody_was_given_changes_nothing(given: &Given) {
    let lease = owned(given).await;
    let before = events(&given.store).await;
    let future = Epoch(lease.epoch().0 + 1);
    for change in CHANGES {
        for store in [&given.store, &given.again()] {
            match change.make(store, Some(future)).await {
                Err(Error::EpochBackwards { session, held, current }) => {
                    assert_eq!((session, held, current), (SESSION, future, lease.epoch()));
                }
                refused => panic!("{change:?}: {refused:?}"),
            }
        }
    }
    assert_eq!(events(&given.again()).await, before);
    given.store.log.append(SESSION, by(lease.epoch(), paused(1))).await.unwrap();
    assert!(!is_lost(&*lease));
}

async fn what_owners_add_needs_an_epoch(given: &Given) {
    // Nobody owned it so far: then anybody may add to it.
    given.store.log.append(SESSION, start()).await.unwrap();
    given.store.log.append(SESSION, paused(0)).await.unwrap();
    let lease = acquire(&given.store).await;
    let before = events(&given.store).await;
    let refused = async |store: &Store| {
        // A session of an owner takes no guided events by the way either, nor what it has.
        for plan in [paused(1), paused(0), notes(1)] {
            assert_eq!(code(store.log.append(SESSION, plan).await), "STORE_UNFENCED");
        }
    };
    refused(&given.store).await;
    refused(&given.again()).await;
    drop(lease);
    refused(&given.store).await;
    refused(&given.again()).await;
    assert_eq!(events(&given.again()).await, before);
}

async fn guided_runs_are_added_to_beside_an_owner(given: &Given) {
    given.store.log.append(SESSION, start()).await.unwrap();
    let lease = acquire(&given.store).await;
    let other = given.again();
    for number in 0..3 {
        other.log.append(SESSION, notes(number)).await.unwrap();
        let plan = by(lease.epoch(), notes(100 + number));
        given.store.log.append(SESSION, plan).await.unwrap();
    }
    assert!(!is_lost(&*lease), "who adds without an epoch replaces nobody");
    // The first event of an engine's run is for owners alone.
    assert_eq!(code(other.log.append(SESSION, paused(0)).await), "STORE_UNFENCED");
    assert_eq!(events(&other).await.len(), 8);
}

async fn an_owner_that_does_nothing_is_told_when_it_is_replaced(given: &Given) {
    let lease = owned(given).await;
    given.take_away();
    let next = acquire(&given.again()).await;
    let told = tokio::time::timeout(Duration::from_secs(5), lease.lost()).await;
    assert!(told.is_ok() && lease.is_lost(), "nobody told it");
    assert!(!next.is_lost());
}

async fn an_owner_may_remove_its_session(given: &Given) {
    for change in [Change::Retire, Change::Delete] {
        let lease = owned(given).await;
        assert_eq!(code(change.make(&given.again(), None).await), "SESSION_OWNED");
        change.make(&given.store, Some(lease.epoch())).await.unwrap();
        assert_eq!(given.again().sessions.list().await.unwrap(), [], "{change:?}");
    }
}

async fn a_session_that_is_gone_is_not_found_by_its_owner(given: &Given) {
    let lease = owned(given).await;
    given.take_away();
    given.again().sessions.delete(SESSION, None).await.unwrap();
    for change in CHANGES {
        let refused = change.make(&given.store, Some(lease.epoch())).await;
        assert_eq!(code(refused), "SESSION_NOT_FOUND", "{change:?}");
    }
    assert_eq!(given.again().sessions.list().await.unwrap(), []);
}

fn session_dir(given: &Given) -> std::path::PathBuf {
    given.home.as_ref().unwrap().path().join("sessions").join(SESSION.to_string())
}

/// The session's directory as it was before, in the place of what it is.
#[tokio::test]
async fn an_older_copy_of_a_session_is_noticed_by_its_owner() {
    let given = Given::files();
    let first = owned(&given).await;
    let (dir, copy) = (session_dir(&given), session_dir(&given).with_extension("copy"));
    fs::create_dir(&copy).unwrap();
    for file in fs::read_dir(&dir).unwrap().map(|file| file.unwrap()) {
        fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    drop(first);
    let second = acquire(&given.store).await;
    given.store.log.append(SESSION, by(second.epoch(), paused(1))).await.unwrap();
    fs::rename(&dir, dir.with_extension("away")).unwrap();
    fs::rename(&copy, &dir).unwrap();
    let refused = given.store.log.append(SESSION, by(second.epoch(), paused(2))).await;
    assert_eq!(code(refused), "STORE_EPOCH_BACKWARDS");
    assert!(is_lost(&*second));
    assert_eq!(events(&given.again()).await.len(), 3, "nothing was added to the copy");
}

/// Without its file the epoch is that of the log.
#[tokio::test]
async fn a_removed_epoch_is_found_in_the_log() {
    for sealed in [false, true] {
        let given = Given::files();
        let old = owned(&given).await;
        if sealed {
            given.store.log.seal(SESSION).await.unwrap();
        }
        fs::remove_file(session_dir(&given).join("epoch")).unwrap();
        given.take_away();
        let new = acquire(&given.again()).await;
        assert!(new.epoch() > old.epoch());
        let refused = given.store.log.append(SESSION, by(old.epoch(), paused(1))).await;
        assert_eq!(code(refused), "STORE_FENCED");
    }
}

/// Whoever adds without an epoch after the file is gone is noticed by the owner.
#[tokio::test]
async fn an_owner_without_its_epochs_file_is_not_interleaved_unnoticed() {
    let given = Given::files();
    let lease = owned(&given).await;
    fs::remove_file(session_dir(&given).join("epoch")).unwrap();
    given.again().log.append(SESSION, paused(1)).await.unwrap();
    let refused = given.store.log.append(SESSION, by(lease.epoch(), paused(2))).await;
    assert_eq!(code(refused), "STORE_FENCED");
    assert!(is_lost(&*lease));
}

#[tokio::test]
async fn a_damaged_epoch_is_said_to_be_and_hides_no_event() {
    let given = Given::files();
    let lease = owned(&given).await;
    let (path, epoch) = (session_dir(&given).join("epoch"), lease.epoch());
    drop(lease);
    let sound = fs::read(&path).unwrap();
    for bytes in [&b""[..], b"cairn-epoch 1 7", &sound[..sound.len() - 1]] {
        fs::write(&path, bytes).unwrap();
        let store = given.again();
        assert_eq!(events(&store).await.len(), 3);
        let refused = store.log.append(SESSION, by(epoch, paused(1))).await;
        assert_eq!(code(refused), "SESSION_CORRUPT");
        assert_eq!(code(store.leases.acquire(SESSION, "test").await.map(drop)), "SESSION_CORRUPT");
    }
    let damage = given.again().log.status(SESSION).await.unwrap().damage.unwrap();
    assert!(damage.contains("`epoch`") && damage.contains("remove"), "{damage}");
    // One of a later version is not damaged.
    fs::write(&path, b"cairn-epoch 2 7 and more").unwrap();
    let store = given.again();
    assert_eq!(code(store.leases.acquire(SESSION, "test").await.map(drop)), "SESSION_NEWER");
    assert_eq!(store.log.status(SESSION).await.unwrap().damage, None);
    fs::write(&path, &sound).unwrap();
    assert!(acquire(&given.again()).await.epoch() > epoch);
}
