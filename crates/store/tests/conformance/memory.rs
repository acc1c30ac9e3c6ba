//! What only a store in memory does: what the hand that holds it wants.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use cairn_core::id::EventIndex;
use cairn_store::memory::{Control, Fault, Outside};
use cairn_store::{Error, Store};

use crate::given::{SESSION, acquire, by, notes, paused, start};

fn control() -> Control {
    let bytes = AtomicU64::new(0);
    Control::new(Outside {
        now_ms: Arc::new(|| 1_700_000_000_000),
        random_bytes: Arc::new(move || {
            Ok([u8::try_from(bytes.fetch_add(1, Ordering::Relaxed)).unwrap(); 32])
        }),
    })
}

async fn count(store: &Store) -> usize {
    store.log.read(SESSION, EventIndex(0)).await.unwrap().len()
}

#[tokio::test]
async fn planned_faults_strike_in_order_and_then_no_more() {
    let control = control();
    let store = control.store(1);
    store.log.append(SESSION, start()).await.unwrap();
    control.fail(Fault::Full, 2);
    control.fail(Fault::Io, 1);
    for code in ["STORE_FULL", "STORE_FULL", "STORE_IO"] {
        let failed = store.log.append(SESSION, notes(0)).await.unwrap_err();
        assert_eq!((failed.code(), count(&store).await), (code, 2));
    }
    store.log.append(SESSION, notes(0)).await.unwrap();
    control.fail(Fault::Full, 7);
    assert!(store.log.append(SESSION, notes(1)).await.is_err());
    assert_eq!(control.calm(), 6);
    store.log.append(SESSION, notes(1)).await.unwrap();
}

#[tokio::test]
async fn an_append_may_be_recorded_though_its_caller_is_told_otherwise_or_nothing() {
    let control = control();
    let store = control.store(1);
    store.log.append(SESSION, start()).await.unwrap();
    control.fail(Fault::Unsure, 1);
    let unsure = store.log.append(SESSION, notes(0)).await.unwrap_err();
    assert_eq!((unsure.code(), count(&store).await), ("STORE_DURABILITY_LOST", 3));
    control.fail(Fault::Unheard, 1);
    {
        let mut context = Context::from_waker(Waker::noop());
        let mut append = pin!(store.log.append(SESSION, notes(1)));
        assert!(matches!(append.as_mut().poll(&mut context), Poll::Pending));
    }
    assert_eq!(count(&store).await, 4);
    for number in 0..2 {
        assert!(store.log.append(SESSION, notes(number)).await.unwrap().replayed);
    }
    // What is refused is refused, heard or not.
    control.fail(Fault::Unheard, 1);
    let lease = acquire(&store).await;
    assert_eq!(store.log.append(SESSION, paused(0)).await.unwrap_err().code(), "STORE_UNFENCED");
    drop(lease);
}

#[tokio::test]
async fn a_lease_that_ran_out_is_good_until_another_has_it() {
    let control = control();
    control.tell_later();
    let (first, second) = (control.store(1), control.store(2));
    first.log.append(SESSION, start()).await.unwrap();
    let old = acquire(&first).await;
    assert_eq!(control.owner(SESSION), Some(old.epoch()));
    assert_eq!(control.expire(SESSION), Some(old.epoch()));
    assert_eq!((control.owner(SESSION), control.expire(SESSION)), (None, None));
    first.log.append(SESSION, by(old.epoch(), paused(0))).await.unwrap();
    let new = acquire(&second).await;
    assert!(!old.is_lost(), "it is told later");
    control.tell_replaced(SESSION);
    assert!(old.is_lost() && !new.is_lost());
    let refused = first.leases.acquire(SESSION, "test").await.map(drop);
    let Err(Error::Owned { owner: Some(owner), .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((owner.pid, owner.since_ms), (2, 1_700_000_000_000));
    // What is left of the old lease does not free the new one.
    drop(old);
    assert_eq!(control.owner(SESSION), Some(new.epoch()));
    assert_eq!(control.revoke(SESSION), Some(new.epoch()));
    assert!(new.is_lost());
    new.lost().await;
}

#[tokio::test]
async fn two_stores_from_the_same_outside_are_alike() {
    let mut rings = Vec::new();
    for _ in 0..2 {
        let control = control();
        let (one, other) = (control.store(1), control.store(2));
        assert_eq!(one.keys.load().await.unwrap(), other.keys.load().await.unwrap());
        rings.push(other.keys.rotate().await.unwrap());
    }
    assert_eq!(rings[0], rings[1]);
}
