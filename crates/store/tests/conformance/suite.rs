//! What every store promises, tried on each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::given::{
    self, Given, RUN, SESSION, at, conformance, notes, plan_blob, snapshot, start, step,
    without_places,
};
use cairn_core::event::Event;
use cairn_core::id::{BundleId, EventIndex, SessionId};
use cairn_core::pin::BlobKind;
use cairn_core::projection::session::SessionView;
use cairn_store::bundle::ExportInfo;
use cairn_store::port::search::{Findable, FindableRun, Wanted};
use cairn_store::port::{Mark, Place, Which};
use cairn_store::{AppendPlan, Appended, Error, Health, Store, bundle, gc};

async fn append(store: &Store, plan: AppendPlan) -> Result<Appended, Error> {
    store.log.append(SESSION, plan).await
}

async fn read(store: &Store) -> Vec<Event> {
    store.log.read(SESSION, EventIndex(0)).await.unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.expect_err("this must be refused").code()
}

conformance! {
    a_mark_changes_with_every_append
    what_moved_is_told_to_whoever_looks
    what_can_be_found_is_kept_by_session
    what_is_appended_can_be_read
    the_same_plan_twice_changes_nothing
    a_half_known_plan_is_refused
    a_plan_on_an_older_run_is_refused
    plans_that_make_no_sense_are_refused
    a_session_begins_with_its_creation
    a_missing_blob_is_refused
    many_writers_lose_nothing
    sealing_changes_nothing_that_can_be_read
    reading_from_the_middle
    what_is_not_there_is_not_found
    blobs_come_back_as_they_went
    a_lease_is_held_by_one
    kept_sessions_stay_and_old_ones_go
    a_session_that_moved_is_not_retired
    collection_keeps_what_is_needed
    an_exported_session_comes_back_equal
    an_import_beside_its_original_gets_a_new_id
    keys_rotate
}

async fn a_mark_changes_with_every_append(given: &Given) {
    let mark = async |store: &Store| store.sessions.mark(SESSION).await.unwrap();
    assert_eq!(mark(&given.store).await, None);
    append(&given.store, start()).await.unwrap();
    let mut before = mark(&given.again()).await;
    assert!(before.is_some());
    for number in 0..20 {
        append(&given.store, notes(number)).await.unwrap();
        let after = mark(&given.again()).await;
        assert_ne!(after, before, "after append {number}");
        assert_eq!(after, mark(&given.store).await, "it is for everybody");
        before = after;
    }
}

async fn what_moved_is_told_to_whoever_looks(given: &Given) {
    let moved = async |since: Option<&Place>| given.again().sessions.moved(since).await.unwrap();
    let names = |sessions: &[SessionId]| Some(sessions.iter().copied().collect::<BTreeSet<_>>());
    let nothing = moved(None).await;
    assert_eq!((nothing.marks.len(), nothing.names), (0, names(&[])));
    append(&given.store, start()).await.unwrap();
    let came = moved(Some(&nothing.place)).await;
    let mark = given.store.sessions.mark(SESSION).await.unwrap();
    assert_eq!(came.marks, BTreeMap::from([(SESSION, mark)]));
    assert_eq!(came.names, names(&[SESSION]));
    append(&given.store, notes(1)).await.unwrap();
    let mark = given.store.sessions.mark(SESSION).await.unwrap();
    let later = moved(Some(&came.place)).await;
    assert_eq!(later.marks, BTreeMap::from([(SESSION, mark.clone())]));
    // Whoever looks from an earlier place is told the same.
    let same = moved(Some(&nothing.place)).await;
    assert_eq!(same.marks, later.marks);
    assert_eq!(moved(None).await.marks, later.marks);
    assert!(!given.store.sessions.is_deleted(SESSION).await.unwrap());
    given.store.sessions.delete(SESSION, None).await.unwrap();
    assert!(given.again().sessions.is_deleted(SESSION).await.unwrap());
    let gone = moved(Some(&later.place)).await;
    assert_eq!(gone.names, names(&[]));
    let unknown = moved(Some(&Place("from another store".to_owned()))).await;
    assert_eq!(unknown.names, names(&[]), "everything, which is nothing");
}

async fn what_can_be_found_is_kept_by_session(given: &Given) {
    let search = &given.store.search;
    let run = |text: &str| FindableRun {
        names: vec![format!("{text}-name")],
        is_over: false,
        last_ms: 1,
        commit: Some("abc".to_owned()),
        branch: Some("main".to_owned()),
        texts: vec![format!(" {text} words ")],
        value: format!("what is kept of {text}"),
    };
    let mark = |mark: &str| Some(Mark(mark.to_owned()));
    let found = |known: Option<Mark>, mark: Option<Mark>, text: &str| {
        let runs = vec![run(text)];
        vec![Findable { session: SESSION, known, mark, runs }]
    };
    assert!(search.keep(found(None, mark("x"), "old"), Vec::new()).await.unwrap());
    assert!(search.keep(found(mark("x"), mark("y"), "new"), Vec::new()).await.unwrap());
    let behind = search.keep(found(mark("x"), mark("z"), "late"), Vec::new()).await.unwrap();
    assert!(!behind, "somebody else has looked meanwhile");
    let again = &given.again().search;
    assert_eq!(again.marks(&Which::All).await.unwrap(), [(SESSION, mark("y"))]);
    assert_eq!(again.marks(&Which::Unsettled).await.unwrap(), []);
    let words = |words: &str| words.split(' ').map(str::to_owned).collect();
    for wanted in [
        Wanted { words: words("new words"), ..Wanted::default() },
        Wanted { words: words("new-name"), ..Wanted::default() },
        Wanted { commit: Some("abc".to_owned()), ..Wanted::default() },
        Wanted { branch: Some("ma".to_owned()), ..Wanted::default() },
        Wanted::default(),
    ] {
        let kept = again.find(&wanted).await.unwrap();
        assert_eq!(kept, [(SESSION, "what is kept of new".to_owned())], "{wanted:?}");
    }
    assert!(search.keep(Vec::new(), vec![SESSION]).await.unwrap());
    assert_eq!(again.find(&Wanted::default()).await.unwrap(), []);
    assert_eq!(again.marks(&Which::All).await.unwrap(), []);
}

async fn what_is_appended_can_be_read(given: &Given) {
    let first = append(&given.store, start()).await.unwrap();
    let second = append(&given.store, step(0)).await.unwrap();
    let places = |a: Appended| (a.first.0, a.last.0, a.replayed);
    assert_eq!((places(first), places(second)), ((0, 1, false), (2, 3, false)));
    for store in [&given.store, &given.again()] {
        let events = read(store).await;
        let indexes: Vec<u64> = events.iter().map(|event| event.index.0).collect();
        assert_eq!(indexes, [0, 1, 2, 3]);
        let written: Vec<_> = [start(), step(0)].into_iter().flat_map(|plan| plan.events).collect();
        for (event, written) in events.iter().zip(written) {
            assert_eq!(*event, written.at(SESSION, event.index));
        }
        let status = store.log.status(SESSION).await.unwrap();
        assert_eq!((status.health, status.events, status.pins.len()), (Health::Healthy, 4, 2));
    }
}

async fn the_same_plan_twice_changes_nothing(given: &Given) {
    append(&given.store, start()).await.unwrap();
    let once = append(&given.store, at(step(0), Some(1))).await.unwrap();
    for store in [&given.store, &given.again()] {
        // What it has seen of the run is out of date by now; the facts are there all the same.
        let twice = append(store, at(step(0), Some(1))).await.unwrap();
        assert_eq!(twice, Appended { replayed: true, ..once });
        assert_eq!(read(store).await.len(), 4);
    }
}

async fn a_half_known_plan_is_refused(given: &Given) {
    append(&given.store, start()).await.unwrap();
    append(&given.store, step(0)).await.unwrap();
    let mut mixed = step(0);
    mixed.events.extend(notes(7).events);
    assert_eq!(code(append(&given.store, mixed).await), "INVARIANT_VIOLATION");
    assert_eq!(read(&given.store).await.len(), 4);
}

async fn a_plan_on_an_older_run_is_refused(given: &Given) {
    append(&given.store, start()).await.unwrap();
    append(&given.store, at(step(0), Some(1))).await.unwrap();
    for seen in [None, Some(0), Some(1), Some(2), Some(4)] {
        match append(&given.store, at(step(1), seen)).await {
            Err(Error::Conflict { run, expected, actual }) => {
                assert_eq!((run, expected), (RUN, seen.map(EventIndex)));
                assert_eq!(actual, Some(EventIndex(3)));
            }
            other => panic!("seen {seen:?}: {other:?}"),
        }
    }
    append(&given.store, at(step(1), Some(3))).await.unwrap();
}

async fn plans_that_make_no_sense_are_refused(given: &Given) {
    append(&given.store, start()).await.unwrap();
    assert_eq!(code(append(&given.store, AppendPlan::default()).await), "STORE_INVALID_PLAN");
    let mut twice = step(0);
    twice.events.extend(step(0).events);
    assert_eq!(code(append(&given.store, twice).await), "STORE_INVALID_PLAN");
    let mut wrong_scope = step(0);
    wrong_scope.events[0].scope = cairn_core::event::Scope::Session;
    assert_eq!(code(append(&given.store, wrong_scope).await), "STORE_INVALID_PLAN");
    assert_eq!(read(&given.store).await.len(), 2);
}

async fn a_session_begins_with_its_creation(given: &Given) {
    assert_eq!(code(append(&given.store, step(0)).await), "STORE_INVALID_PLAN");
    assert_eq!(code(given.store.log.status(SESSION).await), "SESSION_NOT_FOUND");
    append(&given.store, start()).await.unwrap();
}

async fn a_missing_blob_is_refused(given: &Given) {
    append(&given.store, start()).await.unwrap();
    let mut bare = step(0);
    let blobs = std::mem::take(&mut bare.blobs);
    assert_eq!(code(append(&given.store, bare.clone()).await), "STORE_BLOB_MISSING");
    for blob in blobs {
        given.store.blobs.put(blob).await.unwrap();
    }
    append(&given.store, bare).await.unwrap();
}

async fn many_writers_lose_nothing(given: &Given) {
    append(&given.store, start()).await.unwrap();
    let writers: Vec<_> = (0..8u64)
        .map(|writer| {
            let store = given.store.clone();
            tokio::spawn(async move {
                let mut places = Vec::new();
                for number in 0..20 {
                    let plan = notes(writer * 100 + number);
                    places.push(append(&store, plan).await.unwrap().first);
                }
                places
            })
        })
        .collect();
    let mut places = Vec::new();
    for writer in writers {
        let own = writer.await.unwrap();
        assert!(own.is_sorted(), "a writer's own plans stay in order");
        places.extend(own);
    }
    places.sort_unstable();
    assert_eq!(places, (2..162).map(EventIndex).collect::<Vec<_>>());
    assert_eq!(read(&given.again()).await.len(), 162);
}

async fn sealing_changes_nothing_that_can_be_read(given: &Given) {
    append(&given.store, start()).await.unwrap();
    for number in 0..5 {
        append(&given.store, step(number)).await.unwrap();
        let before = read(&given.store).await;
        given.store.log.seal(SESSION).await.unwrap();
        assert_eq!(read(&given.store).await, before);
        assert_eq!(read(&given.again()).await, before);
        given.store.log.seal(SESSION).await.unwrap();
    }
    let again = append(&given.again(), step(2)).await.unwrap();
    assert!(again.replayed, "sealed facts are known too");
    assert_eq!(given.store.log.status(SESSION).await.unwrap().health, Health::Healthy);
}

async fn reading_from_the_middle(given: &Given) {
    append(&given.store, start()).await.unwrap();
    for number in 0..4 {
        append(&given.store, step(number)).await.unwrap();
        if number == 1 {
            given.store.log.seal(SESSION).await.unwrap();
        }
    }
    let all = read(&given.store).await;
    for from in 0..12 {
        let tail = given.store.log.read(SESSION, EventIndex(from)).await.unwrap();
        assert_eq!(tail, all[(from as usize).min(all.len())..], "from {from}");
        for through in 0..12 {
            let between = (EventIndex(from), EventIndex(through));
            let part = given.store.log.read_between(SESSION, between.0, between.1).await.unwrap();
            let wanted = all.iter().filter(|e| between.0 <= e.index && e.index <= between.1);
            assert!(part.iter().eq(wanted), "from {from} to {through}: {part:?}");
        }
    }
}

async fn what_is_not_there_is_not_found(given: &Given) {
    let store = &given.store;
    assert_eq!(code(store.log.read(SESSION, EventIndex(0)).await), "SESSION_NOT_FOUND");
    assert_eq!(code(store.log.read_prefix(SESSION).await), "SESSION_NOT_FOUND");
    assert_eq!(code(store.log.status(SESSION).await), "SESSION_NOT_FOUND");
    assert_eq!(code(store.log.seal(SESSION).await), "SESSION_NOT_FOUND");
    assert_eq!(code(store.sessions.delete(SESSION, None).await), "SESSION_NOT_FOUND");
    assert_eq!(code(store.sessions.keep(SESSION, true).await), "SESSION_NOT_FOUND");
    assert_eq!(code(store.leases.acquire(SESSION, "test").await.map(drop)), "SESSION_NOT_FOUND");
    assert_eq!(store.sessions.list().await.unwrap(), []);
}

async fn blobs_come_back_as_they_went(given: &Given) {
    let digest = given.store.blobs.put(snapshot(3)).await.unwrap();
    assert_eq!(digest, given.store.blobs.put(snapshot(3)).await.unwrap());
    for store in [&given.store, &given.again()] {
        let bytes = store.blobs.get(BlobKind::Snapshot, digest).await.unwrap();
        assert_eq!(bytes, snapshot(3).bytes);
    }
    let missing = given.store.blobs.get(BlobKind::Snapshot, given::missing()).await;
    assert_eq!(code(missing), "STORE_BLOB_MISSING");
}

async fn a_lease_is_held_by_one(given: &Given) {
    append(&given.store, start()).await.unwrap();
    let lease = given.store.leases.acquire(SESSION, "test").await.unwrap();
    assert_eq!(lease.session(), SESSION);
    for store in [&given.store, &given.again()] {
        assert_eq!(code(store.leases.acquire(SESSION, "test").await.map(drop)), "SESSION_OWNED");
        assert_eq!(code(store.sessions.delete(SESSION, None).await), "SESSION_OWNED");
    }
    drop(lease);
    given.again().leases.acquire(SESSION, "test").await.unwrap();
}

async fn kept_sessions_stay_and_old_ones_go(given: &Given) {
    let store = &given.store;
    for number in 0..3 {
        store.log.append(given::session(number), start()).await.unwrap();
    }
    store.sessions.keep(given::session(1), true).await.unwrap();
    let year = 365 * 24 * 60 * 60 * 1000;
    let policy = gc::Policy { older_than_ms: Some(year), ..gc::Policy::default() };
    let early = gc::collect(store, &policy, 1_700_000_000_000 + year).await.unwrap();
    assert_eq!(early.deleted_sessions, []);
    let dry = gc::Policy { dry_run: true, ..policy };
    let late = 1_700_000_000_002 + year;
    let expected = vec![given::session(0), given::session(2)];
    assert_eq!(gc::collect(store, &dry, late).await.unwrap().deleted_sessions, expected);
    assert_eq!(store.sessions.list().await.unwrap().len(), 3);
    assert_eq!(gc::collect(store, &policy, late).await.unwrap().deleted_sessions, expected);
    assert_eq!(given.again().sessions.list().await.unwrap(), [given::session(1)]);
    store.sessions.keep(given::session(1), false).await.unwrap();
    assert_eq!(gc::collect(store, &policy, late).await.unwrap().deleted_sessions.len(), 1);
    assert_eq!(code(store.log.read(given::session(0), EventIndex(0)).await), "SESSION_NOT_FOUND");
}

async fn a_session_that_moved_is_not_retired(given: &Given) {
    append(&given.store, start()).await.unwrap();
    let sessions = &given.store.sessions;
    assert!(!sessions.retire(SESSION, EventIndex(0), None).await.unwrap(), "it has gone on since");
    sessions.keep(SESSION, true).await.unwrap();
    assert!(!sessions.retire(SESSION, EventIndex(1), None).await.unwrap(), "it is kept");
    sessions.keep(SESSION, false).await.unwrap();
    assert_eq!(read(&given.again()).await.len(), 2);
    assert!(sessions.retire(SESSION, EventIndex(1), None).await.unwrap());
    assert_eq!(given.again().sessions.list().await.unwrap(), []);
}

async fn collection_keeps_what_is_needed(given: &Given) {
    let store = &given.store;
    append(store, start()).await.unwrap();
    append(store, step(0)).await.unwrap();
    store.log.seal(SESSION).await.unwrap();
    append(store, step(1)).await.unwrap();
    let orphan = store.blobs.put(snapshot(99)).await.unwrap();
    let all = gc::Policy { min_age_ms: 0, ..gc::Policy::default() };
    let never = gc::collect(store, &gc::Policy::default(), 0).await.unwrap();
    assert_eq!(never.deleted_blobs, 0, "a young blob is left alone");
    let report = gc::collect(store, &all, u64::MAX).await.unwrap();
    assert_eq!((report.deleted_blobs, report.safe_mode), (1, None));
    assert_eq!(code(store.blobs.get(BlobKind::Snapshot, orphan).await), "STORE_BLOB_MISSING");
    for blob in [snapshot(0), snapshot(1), plan_blob()] {
        store.blobs.get(blob.kind, blob.digest()).await.unwrap();
    }
    store.sessions.delete(SESSION, None).await.unwrap();
    assert_eq!(gc::collect(store, &all, u64::MAX).await.unwrap().deleted_blobs, 3);
}

fn info() -> ExportInfo {
    ExportInfo {
        bundle_id: BundleId::from_bits(7),
        exported_at: "2026-01-01T00:00:00Z".into(),
        app_version: "0.0.0".into(),
    }
}

async fn an_exported_session_comes_back_equal(given: &Given) {
    append(&given.store, start()).await.unwrap();
    append(&given.store, step(0)).await.unwrap();
    let bundle = bundle::export(&given.store, SESSION, info()).await.unwrap();
    let elsewhere = Given::files();
    let imported = bundle::import(&elsewhere.store, &bundle).await.unwrap();
    assert_eq!((imported.session, imported.events, imported.as_new), (SESSION, 4, false));
    assert!(elsewhere.store.sessions.list().await.unwrap().is_empty(), "it is paper");
    let papers = elsewhere.store.papers.open().unwrap();
    let whole = bundle::whole(&papers, SESSION).await.unwrap();
    bundle::adopt(&elsewhere.store, SESSION, whole.clone(), None).await.unwrap();
    let twice = bundle::adopt(&elsewhere.store, SESSION, whole, None).await;
    assert_eq!(code(twice), "SESSION_EXISTS");
    // What a bundle names of the machine it was made on means nothing elsewhere.
    let here = without_places(read(&given.store).await);
    let there = without_places(read(&elsewhere.store).await);
    assert_eq!(there, here);
    assert_eq!(SessionView::fold(&there), SessionView::fold(&here));
    // It goes on there as it would here.
    append(&elsewhere.again(), at(step(1), Some(3))).await.unwrap();
    append(&given.store, at(step(1), Some(3))).await.unwrap();
    let here = without_places(read(&given.store).await);
    assert_eq!(without_places(read(&elsewhere.again()).await), here);
    let there = bundle::export(&elsewhere.store, SESSION, info()).await.unwrap();
    // And on from there to a third place.
    let third = bundle::import(&Given::files().store, &there).await.unwrap();
    assert_eq!((third.session, third.events, third.as_new), (SESSION, 6, false));
}

async fn an_import_beside_its_original_gets_a_new_id(given: &Given) {
    append(&given.store, start()).await.unwrap();
    append(&given.store, step(0)).await.unwrap();
    let bundle = bundle::export(&given.store, SESSION, info()).await.unwrap();
    let imported = bundle::import(&given.store, &bundle).await.unwrap();
    assert_eq!((imported.original, imported.as_new, imported.again), (SESSION, true, false));
    let own = read(&given.store).await;
    let store = given.store.with_papers().unwrap();
    let copy = store.log.read(imported.session, EventIndex(0)).await.unwrap();
    assert_eq!(copy.len(), own.len());
    for (copy, own) in copy.iter().zip(&own) {
        assert_eq!(copy.session, imported.session);
        assert_eq!((copy.id, copy.data.kind()), (own.id, own.data.kind()));
        assert!(copy.scope.run().is_none() || copy.scope.run() != own.scope.run(), "{copy:?}");
    }
    let twice = bundle::import(&given.again(), &bundle).await.unwrap();
    assert_eq!((twice.session, twice.again), (imported.session, true), "the same bundle");
    assert_eq!(store.sessions.list().await.unwrap().len(), 2);
    store.sessions.delete(imported.session, None).await.unwrap();
    assert_eq!(store.sessions.list().await.unwrap(), [SESSION]);
}

async fn keys_rotate(given: &Given) {
    let first = given.store.keys.load().await.unwrap();
    assert_eq!(first, given.again().keys.load().await.unwrap());
    let second = given.again().keys.rotate().await.unwrap();
    assert_eq!((second.generation, second.previous.clone()), (2, Some(first.current)));
    assert_eq!(given.store.keys.load().await.unwrap(), second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_of_one_session_share_commits() {
    let given = Given::files();
    append(&given.store, start()).await.unwrap();
    let store = Arc::new(given.store.clone());
    let writers: Vec<_> = (0..64u64)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..10 {
                    append(&store, notes(writer * 100 + number)).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let home = given.home.as_ref().unwrap().path();
    let journal = home.join("sessions").join(SESSION.to_string()).join("journal.jsonl");
    let journal = std::fs::read(journal).unwrap();
    let commits = cairn_core::journal::scan(&journal).frames.len();
    assert!(commits < 320, "640 appends took {commits} commits");
    assert_eq!(read(&given.again()).await.len(), 642);
}
