//! Power failures while something is done to a session as a whole, or to the keys: afterwards
//! it is done or it is not.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that fails may panic, and how much was looked at is part of the result"
)]

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use cairn_core::bundle::unpack;
use cairn_core::event::Event;
use cairn_core::id::{BundleId, EventIndex};
use cairn_core::keyring::Keyring;
use cairn_sim::crash::{Depth, States};
use cairn_sim::disk::Disk;
use cairn_sim::world::{self, session};
use cairn_store::bundle::{ExportInfo, adopt, export};
use cairn_store::port::documents::Name;
use cairn_store::{AppendPlan, Config, Error, Health, Store, files, open, verify};

/// Runs something that waits for nothing outside.
fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn store_on(disk: &Disk) -> Store {
    files::open_on(Arc::new(disk.process()), &files::Config::new("/cairn")).unwrap()
}

/// Does something, and checks every disk that a power failure can leave on the way; `after`
/// says whether it had been answered by then.
fn whenever(what: &str, disk: &Disk, deed: impl AsyncFnOnce(&Store), check: impl Fn(&Store, bool)) {
    let disks = disks_of(what, disk, deed, check);
    assert!(disks > 20, "{what}: {disks} disks");
}

/// The same; gives how many different disks there were.
fn disks_of(
    what: &str,
    disk: &Disk,
    deed: impl AsyncFnOnce(&Store),
    check: impl Fn(&Store, bool),
) -> usize {
    let moments = Arc::new(Mutex::new(Vec::new()));
    let process = disk.process();
    process.watch({
        let (moments, disk) = (moments.clone(), disk.clone());
        Arc::new(move |_| moments.lock().unwrap().push((disk.fork(), false)))
    });
    let store = files::open_on(Arc::new(process), &files::Config::new("/cairn")).unwrap();
    now(deed(&store));
    moments.lock().unwrap().push((disk.fork(), true));
    let (mut seen, mut states) = (HashSet::new(), 0);
    for (moment, answered) in moments.lock().unwrap().iter() {
        let crashes = States::of(moment, Depth::QUICK);
        states += crashes.len();
        for (_, image) in crashes.iter() {
            if seen.insert((image.digest(), *answered)) {
                check(&store_on(&Disk::on(image)), *answered);
            }
        }
    }
    println!("{what}: {states} states, {} different disks", seen.len());
    seen.len()
}

fn bundle() -> (Vec<u8>, Vec<Event>) {
    let store = open(&Config::Memory).unwrap();
    now(async {
        for number in 0..3 {
            store.log.append(session(), world::plan(number)).await.unwrap();
        }
        let info = ExportInfo {
            bundle_id: BundleId::from_bits(1),
            exported_at: String::new(),
            app_version: String::new(),
        };
        let events = store.log.read(session(), EventIndex(0)).await.unwrap();
        (export(&store, session(), info).await.unwrap(), events)
    })
}

#[test]
fn an_import_is_whole_or_absent() {
    let (bundle, events) = bundle();
    let opened = unpack(&bundle).unwrap();
    let taken = || (opened.events.clone(), opened.blobs.clone());
    let deed = async |store: &Store| adopt(store, session(), taken(), None).await.unwrap();
    whenever("import", &world::fresh(), deed, |store, answered| {
        let there = now(store.sessions.list()).unwrap().contains(&session());
        assert!(there || !answered, "an import that was answered is gone");
        match now(store.log.read(session(), EventIndex(0))) {
            Ok(read) => {
                assert!(there);
                assert_eq!(read, events);
                let report = now(verify(store, session())).unwrap();
                assert_eq!((report.health, report.problems), (Health::Healthy, Vec::new()));
            }
            Err(Error::NotFound(_)) => {
                assert!(!there);
                // What is left of it is in nobody's way.
                now(adopt(store, session(), taken(), None)).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn a_deleted_session_is_whole_or_gone() {
    let disk = world::fresh();
    let events = now(async {
        let store = store_on(&disk);
        for number in 0..3 {
            store.log.append(session(), world::plan(number)).await.unwrap();
        }
        store.log.seal(session()).await.unwrap();
        store.log.read(session(), EventIndex(0)).await.unwrap()
    });
    let deed = async |store: &Store| store.sessions.delete(session(), None).await.unwrap();
    whenever("delete", &disk, deed, |store, answered| {
        match now(store.log.read(session(), EventIndex(0))) {
            Ok(read) => {
                assert!(!answered, "a session that was deleted is back");
                assert_eq!(read, events);
            }
            Err(Error::NotFound(_)) => assert_eq!(now(store.sessions.list()).unwrap(), []),
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn an_epoch_that_was_given_out_is_never_given_out_again() {
    let disk = world::fresh();
    let acquired = async |store: &Store| store.leases.acquire(session(), "test").await.unwrap();
    let plan = |number, epoch| AppendPlan { fence: Some(epoch), ..world::plan(number) };
    let first = now(async {
        let store = store_on(&disk);
        store.log.append(session(), world::plan(0)).await.unwrap();
        let epoch = acquired(&store).await.epoch();
        store.log.append(session(), plan(1, epoch)).await.unwrap();
        epoch
    });
    let given_out = Mutex::new(None);
    let deed = async |store: &Store| {
        *given_out.lock().unwrap() = Some(acquired(store).await.epoch());
    };
    whenever("acquire", &disk, deed, |store, answered| {
        let second = given_out.lock().unwrap().unwrap();
        assert!(second > first);
        // Whoever was cut off while acquiring is in nobody's way.
        let lease = now(acquired(store));
        assert!(lease.epoch() > if answered { second } else { first });
        for replaced in [first, second].into_iter().filter(|epoch| *epoch < lease.epoch()) {
            let refused = now(store.log.append(session(), plan(2, replaced))).unwrap_err();
            assert_eq!(refused.code(), "STORE_FENCED");
        }
        let appended = now(store.log.append(session(), plan(2, lease.epoch()))).unwrap();
        assert!(!appended.replayed);
    });
}

#[test]
fn keys_are_rotated_or_they_are_not() {
    let disk = world::fresh();
    let before: Keyring = now(store_on(&disk).keys.load()).unwrap();
    let deed = async |store: &Store| store.keys.rotate().await.map(|_| ()).unwrap();
    whenever("key rotation", &disk, deed, |store, answered| {
        let ring = now(store.keys.load()).unwrap();
        let rotated = ring.generation == 2 && ring.previous.as_ref() == Some(&before.current);
        assert!(rotated || (!answered && ring == before), "{ring:?}");
    });
}

static TOKENS: Name = Name::fixed("keys/tokens.json");

#[test]
fn a_document_is_the_old_one_or_the_new_one() {
    let (disk, old, new) = (world::fresh(), vec![b'o'; 700], vec![b'n'; 900]);
    for (seen, bytes) in [(None, &old), (Some(&old), &new)] {
        let version = now(store_on(&disk).documents.read(&TOKENS)).unwrap();
        let version = version.map(|found| found.version);
        let deed = async |store: &Store| {
            store.documents.replace(&TOKENS, version.as_ref(), bytes.clone()).await.unwrap();
        };
        whenever("document", &disk, deed, |store, answered| {
            let found = now(store.documents.read(&TOKENS)).unwrap();
            let read = found.as_ref().map(|found| &found.bytes);
            assert!(read == Some(bytes) || (!answered && read == seen), "{read:?}");
            // Whoever was cut off is in nobody's way.
            let version = found.as_ref().map(|found| &found.version);
            now(store.documents.replace(&TOKENS, version, b"next".to_vec())).unwrap();
        });
    }
    let version = now(store_on(&disk).documents.read(&TOKENS)).unwrap().unwrap().version;
    let deed = async |store: &Store| store.documents.remove(&TOKENS, &version).await.unwrap();
    let gone = |store: &Store, answered: bool| {
        let found = now(store.documents.read(&TOKENS)).unwrap();
        assert!(found.is_none_or(|found| !answered && found.bytes == new));
    };
    assert!(disks_of("removal of a document", &disk, deed, gone) > 1);
}

#[test]
fn a_line_of_the_audit_record_that_was_acknowledged_stays() {
    let disk = world::fresh();
    for lines in 0..3 {
        let line = vec![b'0' + lines; 600];
        let deed = async |store: &Store| {
            let line = line.clone();
            assert!(store.audit.append(Box::new(|_| Some(line))).await.unwrap());
        };
        whenever("audit record", &disk, deed, |store, answered| {
            let read = now(store.audit.read(0, 9)).unwrap();
            let whole = |(number, line): (u8, &Vec<u8>)| *line == vec![b'0' + number; 600];
            let count = usize::from(lines);
            assert!(read.len() == count + 1 || (!answered && read.len() == count));
            assert!((0..).zip(&read).all(whole), "a line is not what was written");
            let last = read.last().cloned();
            let next = |found: Option<&[u8]>| {
                assert_eq!(found, last.as_deref());
                Some(b"next".to_vec())
            };
            now(store.audit.append(Box::new(next))).unwrap();
        });
    }
}
