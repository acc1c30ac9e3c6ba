//! What documents, the audit record and locks promise, on every backend.

use cairn_store::port::documents::{Documents, Name};
use cairn_store::port::locks::{Claim, Exclusive};
use cairn_store::{Error, Result, Store};

use crate::given::{Given, conformance};

static TOKENS: Name = Name::fixed("keys/tokens.json");

conformance! {
    a_document_is_replaced_by_whoever_saw_it_last
    a_document_that_was_seen_is_removed
    a_change_is_decided_again_when_somebody_else_was_faster
    many_changes_at_once_are_all_there
    a_stamp_changes_with_its_document
    the_documents_of_a_folder_are_listed
    lines_are_added_behind_the_last_one
    lines_are_read_from_a_place_on
    a_lock_is_held_by_one_and_free_when_it_is_dropped
    whoever_waits_for_a_lock_gets_it
}

fn moved<T>(result: Result<T>) -> bool {
    let error = result.err();
    error.as_ref().is_none_or(|error| error.code() == "STORE_CONFLICT")
        && matches!(error, Some(Error::DocumentMoved { .. }))
}

async fn text(documents: &dyn Documents, name: &Name) -> Option<String> {
    let found = documents.read(name).await.unwrap()?;
    Some(String::from_utf8(found.bytes).unwrap())
}

async fn a_document_is_replaced_by_whoever_saw_it_last(given: &Given) {
    let (one, other) = (&given.store.documents, given.again().documents);
    assert_eq!(one.read(&TOKENS).await.unwrap(), None);
    let first = one.replace(&TOKENS, None, b"first".to_vec()).await.unwrap();
    assert!(moved(other.replace(&TOKENS, None, b"other".to_vec()).await));
    let seen = other.read(&TOKENS).await.unwrap().unwrap();
    assert_eq!((&*seen.bytes, &seen.version), (&b"first"[..], &first));
    let second = other.replace(&TOKENS, Some(&first), b"second".to_vec()).await.unwrap();
    assert!(moved(one.replace(&TOKENS, Some(&first), b"late".to_vec()).await));
    assert_eq!(text(&**one, &TOKENS).await.unwrap(), "second");
    one.replace(&TOKENS, Some(&second), Vec::new()).await.unwrap();
    assert_eq!(text(&*other, &TOKENS).await.unwrap(), "");
    assert_eq!(one.exposed(&TOKENS).await.unwrap(), None);
    assert!(one.place(&TOKENS).ends_with("keys/tokens.json"));
}

async fn a_document_that_was_seen_is_removed(given: &Given) {
    let documents = &given.store.documents;
    let first = documents.replace(&TOKENS, None, b"first".to_vec()).await.unwrap();
    let second = documents.replace(&TOKENS, Some(&first), b"second".to_vec()).await.unwrap();
    assert!(moved(documents.remove(&TOKENS, &first).await));
    documents.remove(&TOKENS, &second).await.unwrap();
    assert_eq!(given.again().documents.read(&TOKENS).await.unwrap(), None);
    assert!(moved(documents.remove(&TOKENS, &second).await), "it is gone already");
    assert!(moved(documents.replace(&TOKENS, Some(&second), Vec::new()).await));
}

async fn a_change_is_decided_again_when_somebody_else_was_faster(given: &Given) {
    let (one, other) = (&given.store.documents, given.again().documents);
    let version = one.replace(&TOKENS, None, b"1".to_vec()).await.unwrap();
    let mut looks = Vec::new();
    let added = one.update(&TOKENS, |old| {
        let old = String::from_utf8(old.unwrap().to_vec()).unwrap();
        if looks.is_empty() {
            // Between the look and the change somebody else is faster.
            let (other, version) = (other.clone(), version.clone());
            let change = async move {
                other.replace(&TOKENS, Some(&version), b"2".to_vec()).await.unwrap();
            };
            std::thread::spawn(|| {
                tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(change);
            })
            .join()
            .unwrap();
        }
        looks.push(old.clone());
        Ok::<_, Error>((Some(format!("{old}+").into_bytes()), old))
    });
    assert_eq!(added.await.unwrap(), "2");
    assert_eq!(looks, ["1", "2"]);
    assert_eq!(text(&**one, &TOKENS).await.unwrap(), "2+");
    let left = one.update(&TOKENS, |_| Ok::<_, Error>((None, "left")));
    assert_eq!(left.await.unwrap(), "left");
    let refused = one.update(&TOKENS, |_| Err::<(_, ()), _>(Error::InvalidPlan("no")));
    assert_eq!(refused.await.unwrap_err().code(), "STORE_INVALID_PLAN");
    assert_eq!(text(&**one, &TOKENS).await.unwrap(), "2+");
}

async fn many_changes_at_once_are_all_there(given: &Given) {
    let stores: Vec<Store> = (0..4).map(|_| given.again()).collect();
    std::thread::scope(|scope| {
        for store in stores {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for _ in 0..5 {
                    let add = |old: Option<&[u8]>| {
                        let mut new = old.unwrap_or_default().to_vec();
                        new.push(b'x');
                        Ok::<_, Error>((Some(new), ()))
                    };
                    runtime.block_on(store.documents.update(&TOKENS, add)).unwrap();
                }
            });
        }
    });
    assert_eq!(text(&*given.store.documents, &TOKENS).await.unwrap(), "x".repeat(20));
}

async fn a_stamp_changes_with_its_document(given: &Given) {
    let (one, other) = (&given.store.documents, given.again().documents);
    assert_eq!(one.stamp(&TOKENS).await.unwrap(), None);
    let mut version = one.replace(&TOKENS, None, b"0".to_vec()).await.unwrap();
    // Of the same length, and as quickly as can be.
    for number in 1..100_u32 {
        let before = other.stamp(&TOKENS).await.unwrap().unwrap();
        let bytes = (number % 10).to_string().into_bytes();
        version = one.replace(&TOKENS, Some(&version), bytes).await.unwrap();
        assert_ne!(other.stamp(&TOKENS).await.unwrap().unwrap(), before, "{number}");
    }
    assert_eq!(one.stamp(&TOKENS).await.unwrap(), one.stamp(&TOKENS).await.unwrap());
}

async fn the_documents_of_a_folder_are_listed(given: &Given) {
    let (documents, env) = (&given.store.documents, Name::fixed("env"));
    assert_eq!(documents.list(&env).await.unwrap(), []);
    let names = ["env/@a.yaml", "env/b.yaml"].map(Name::fixed);
    let elsewhere = ["envy/c.yaml", "env.yaml"].map(Name::fixed);
    for name in names.iter().rev().chain(&elsewhere) {
        documents.replace(name, None, b"A: 1\n".to_vec()).await.unwrap();
    }
    assert_eq!(given.again().documents.list(&env).await.unwrap(), names);
}

/// Adds a line that counts.
async fn count(store: &Store) -> bool {
    let next = |last: Option<&[u8]>| {
        let last = last.map(|last| std::str::from_utf8(last).unwrap().parse::<u32>().unwrap());
        Some(last.map_or(0, |last| last + 1).to_string().into_bytes())
    };
    store.audit.append(Box::new(next)).await.unwrap()
}

fn shown(lines: Vec<Vec<u8>>) -> String {
    let lines: Vec<String> =
        lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
    lines.join(" ")
}

async fn lines_are_added_behind_the_last_one(given: &Given) {
    assert_eq!(shown(given.store.audit.read(0, 9).await.unwrap()), "");
    for _ in 0..2 {
        assert!(count(&given.store).await && count(&given.again()).await);
    }
    assert_eq!(shown(given.again().audit.read(0, 9).await.unwrap()), "0 1 2 3");
    assert!(!given.store.audit.append(Box::new(|_| None)).await.unwrap());
    let stores: Vec<Store> = (0..4).map(|_| given.again()).collect();
    std::thread::scope(|scope| {
        for store in stores {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                assert!((0..4).all(|_| runtime.block_on(count(&store))));
            });
        }
    });
    let last = given.store.audit.read(19, usize::MAX).await.unwrap();
    assert_eq!(shown(last), "19");
}

async fn lines_are_read_from_a_place_on(given: &Given) {
    let long = vec![b'x'; cairn_store::port::audit::LINE_MAX];
    for _ in 0..70 {
        let line = long.clone();
        given.store.audit.append(Box::new(move |_| Some(line))).await.unwrap();
    }
    given.store.audit.append(Box::new(|_| Some(b"0".to_vec()))).await.unwrap();
    assert!(count(&given.store).await);
    assert_eq!(given.store.audit.read(0, usize::MAX).await.unwrap().len(), 72);
    assert_eq!(given.store.audit.read(3, 5).await.unwrap(), vec![long; 5]);
    assert_eq!(shown(given.store.audit.read(70, 5).await.unwrap()), "0 1");
    assert_eq!(shown(given.store.audit.read(u64::MAX, 5).await.unwrap()), "");
}

async fn a_lock_is_held_by_one_and_free_when_it_is_dropped(given: &Given) {
    let (one, other) = (&given.store.locks, given.again().locks);
    let Claim::Taken(lock) = one.try_lock(Exclusive::Server).await.unwrap() else { panic!() };
    let holder = async || match other.try_lock(Exclusive::Server).await.unwrap() {
        Claim::Taken(_) => panic!("two have it"),
        Claim::Held(holder) => holder,
    };
    assert_eq!(holder().await, None);
    lock.sign("process 7 at a long address");
    lock.sign("process 7");
    assert_eq!(holder().await.unwrap(), "process 7");
    assert!(matches!(other.try_lock(Exclusive::Vault).await.unwrap(), Claim::Taken(_)));
    drop(lock);
    let Claim::Taken(again) = other.try_lock(Exclusive::Server).await.unwrap() else { panic!() };
    let Claim::Held(holder) = one.try_lock(Exclusive::Server).await.unwrap() else { panic!() };
    assert_eq!(holder, None, "who was here before is not");
    drop(again);
}

async fn whoever_waits_for_a_lock_gets_it(given: &Given) {
    let lock = given.store.locks.lock(Exclusive::Vault).await.unwrap();
    let other = given.again().locks;
    let waiting = tokio::spawn(async move { other.lock(Exclusive::Vault).await.map(drop) });
    for _ in 0..3 {
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
    }
    drop(lock);
    waiting.await.unwrap().unwrap();
}
