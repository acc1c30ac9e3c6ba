//! Whatever happens to the bytes of a session: it is noticed, or it changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::given::{self, SESSION, start, step};
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};
use cairn_store::port::Prefix;
use cairn_store::{Config, Error, Health, Store, open};

/// A data directory with two sessions, and the bytes of all its files.
struct Golden {
    home: tempfile::TempDir,
    files: BTreeMap<PathBuf, Vec<u8>>,
    events: Vec<Event>,
}

const OTHER: u64 = 1;

impl Golden {
    async fn new() -> Self {
        let shared_memory = Path::new("/dev/shm");
        let home = if shared_memory.is_dir() {
            tempfile::tempdir_in(shared_memory).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        };
        let store = open(&Config::files(home.path())).unwrap();
        store.keys.load().await.unwrap();
        for session in [SESSION, given::session(OTHER)] {
            store.log.append(session, start()).await.unwrap();
            store.log.append(session, step(0)).await.unwrap();
            store.log.seal(session).await.unwrap();
            store.log.append(session, step(1)).await.unwrap();
            store.log.seal(session).await.unwrap();
            store.log.append(session, step(2)).await.unwrap();
            store.log.append(session, step(3)).await.unwrap();
        }
        let events = store.log.read(SESSION, EventIndex(0)).await.unwrap();
        let mut files = BTreeMap::new();
        collect(home.path(), &mut files);
        Self { home, files, events }
    }

    fn store(&self) -> Store {
        open(&Config::files(self.home.path())).unwrap()
    }

    fn session_dir(&self) -> PathBuf {
        self.home.path().join("sessions").join(SESSION.to_string())
    }

    /// The session's files, by their names below it, but for locks.
    fn session_files(&self) -> Vec<String> {
        let dir = self.session_dir();
        let inside = self.files.keys().filter_map(|path| path.strip_prefix(&dir).ok());
        let names = inside.map(|path| path.to_str().unwrap().to_owned());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    fn bytes(&self, name: &str) -> &[u8] {
        &self.files[&self.session_dir().join(name)]
    }

    /// A file's bytes without the room behind them.
    fn written(&self, name: &str) -> &[u8] {
        let bytes = self.bytes(name);
        let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &bytes[..len]
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.session_dir().join(name), bytes).unwrap();
    }

    /// Puts the session back as it was.
    fn restore(&self) {
        let mut found = BTreeMap::new();
        collect(&self.session_dir(), &mut found);
        for (path, bytes) in self.files.range(self.session_dir()..) {
            if !path.starts_with(self.session_dir()) {
                break;
            }
            if found.get(path) != Some(bytes) {
                fs::write(path, bytes).unwrap();
            }
        }
        for path in found.keys().filter(|path| !self.files.contains_key(*path)) {
            fs::remove_file(path).unwrap();
        }
    }

    /// Looks at the damaged session: it must say so, or show what it always showed.
    async fn judge(&self, case: &str) -> Health {
        let store = self.store();
        let health = match store.log.read_prefix(SESSION).await {
            Ok(Prefix { events, health, damage }) => {
                let healthy = health == Health::Healthy;
                assert_eq!(damage.is_none(), healthy, "{case}");
                assert!(self.events.starts_with(&events), "{case}: other events");
                assert!(!healthy || events.len() == self.events.len(), "{case}: events lost");
                health
            }
            Err(Error::NotFound(_)) => panic!("{case}: the session is not there any more"),
            Err(error) => panic!("{case}: {error}"),
        };
        let strict = store.log.read(SESSION, EventIndex(0)).await;
        assert_eq!(strict.is_ok(), health == Health::Healthy, "{case}: {strict:?}");
        let more = store.log.append(SESSION, step(4)).await;
        assert_eq!(more.is_ok(), health == Health::Healthy, "{case}: {more:?}");
        health
    }

    async fn the_other_session_is_well(&self, case: &str) {
        let other = given::session(OTHER);
        let events = self.store().log.read(other, EventIndex(0)).await.unwrap();
        assert_eq!(events.len(), self.events.len(), "{case}");
    }
}

fn collect(dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

#[tokio::test]
async fn every_byte_changed_zeroed_or_cut_off() {
    let golden = Golden::new().await;
    let (mut states, mut noticed) = (0, 0);
    for name in golden.session_files() {
        let bytes = golden.bytes(&name).to_vec();
        let written = golden.written(&name).len();
        let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let last_line = lines.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
        for at in 0..bytes.len().min(written + 64) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let mut zeroed = bytes.clone();
            zeroed[at] = 0;
            for (how, changed) in
                [("flipped", &flipped[..]), ("zeroed", &zeroed[..]), ("cut", &bytes[..at])]
            {
                let case = format!("{name} {how} at byte {at}");
                golden.write(&name, changed);
                let health = golden.judge(&case).await;
                // The witness is redundant, and so is a pin line at the manifest's end: the
                // segment's record names the pin too. Room behind the last commit holds nothing.
                let redundant = match name.as_str() {
                    "head" => true,
                    "manifest.jsonl" => at >= last_line,
                    _ => at >= written,
                };
                assert!(health != Health::Healthy || redundant, "{case}: not noticed");
                noticed += u64::from(health != Health::Healthy);
                states += 1;
                golden.restore();
            }
        }
        golden.the_other_session_is_well(&name).await;
    }
    println!("{states} damaged sessions, {noticed} noticed, the rest unharmed");
    assert!(states > 10_000, "{states}");
}

#[tokio::test]
async fn every_file_removed_or_emptied() {
    let golden = Golden::new().await;
    for name in golden.session_files() {
        fs::remove_file(golden.session_dir().join(&name)).unwrap();
        let health = golden.judge(&format!("{name} removed")).await;
        assert_eq!(health == Health::Healthy, name == "head", "{name} removed");
        golden.restore();
        golden.write(&name, b"");
        let health = golden.judge(&format!("{name} emptied")).await;
        assert_eq!(health == Health::Healthy, name == "head", "{name} emptied");
        golden.restore();
    }
}

#[tokio::test]
async fn segments_and_lines_swapped_moved_and_repeated() {
    let golden = Golden::new().await;
    let segments: Vec<String> =
        golden.session_files().into_iter().filter(|name| name.starts_with("events/")).collect();
    let [first, second] = &segments[..] else { panic!("two segments, not {segments:?}") };
    golden.write(first, golden.bytes(second));
    golden.write(second, golden.bytes(first));
    assert_eq!(golden.judge("segments swapped").await, Health::CorruptHead);
    golden.restore();
    for name in ["manifest.jsonl", "journal.jsonl"] {
        let lines: Vec<&[u8]> =
            golden.written(name).split_inclusive(|byte| *byte == b'\n').collect();
        let closes = |line: &&[u8]| line.windows(14).any(|word| word == b"segment_closed");
        let last_closed = lines.iter().rposition(closes).unwrap_or_default();
        for at in 0..lines.len() {
            let mut repeated = lines.clone();
            repeated.insert(at, lines[at]);
            let mut removed = lines.clone();
            removed.remove(at);
            let mut swapped = lines.clone();
            swapped.swap(at, (at + 1) % lines.len());
            for (how, changed) in [("repeated", repeated), ("removed", removed), ("moved", swapped)]
            {
                let case = format!("{name}: line {at} {how}");
                golden.write(name, &changed.concat());
                let health = golden.judge(&case).await;
                // A manifest may lack pin lines at its end: the segment's record names them too.
                // A commit line without events behind the last one is a torn tail.
                let last = at + 1 == lines.len();
                let redundant = match name {
                    "manifest.jsonl" => match how {
                        "removed" => last,
                        // Everything is attested by then, and the journal goes on from there.
                        _ => how == "repeated" && at >= last_closed,
                    },
                    _ => last && how == "repeated",
                };
                assert!(health != Health::Healthy || redundant, "{case}: not noticed");
                golden.restore();
            }
        }
    }
}

#[tokio::test]
async fn a_later_version_is_left_alone() {
    let golden = Golden::new().await;
    let text = String::from_utf8(golden.bytes("manifest.jsonl").to_vec()).unwrap();
    golden.write("manifest.jsonl", text.replace("\"v\":1", "\"v\":2").as_bytes());
    assert_eq!(golden.judge("manifest of version 2").await, Health::UnknownVersion);
}

#[tokio::test]
async fn a_damaged_blob_is_noticed_by_whoever_wants_it() {
    let golden = Golden::new().await;
    for blob in [given::snapshot(2), given::plan_blob()] {
        let hex = blob.digest().hex();
        let is_it = |path: &&PathBuf| path.file_name().is_some_and(|name| *name == *hex);
        let path = golden.files.keys().find(is_it).unwrap();
        for at in 0..blob.bytes.len() {
            let mut changed = blob.bytes.clone();
            changed[at] ^= 1;
            for bytes in [&changed[..], &blob.bytes[..at]] {
                fs::write(path, bytes).unwrap();
                let store = golden.store();
                let error = store.blobs.get(blob.kind, blob.digest()).await.unwrap_err();
                assert_eq!(error.code(), "STORE_BLOB_CORRUPT");
                let report = cairn_store::verify(&store, SESSION).await.unwrap();
                assert_eq!(report.problems.len(), 1, "{report:?}");
            }
        }
        // Whoever keeps the same blob again mends it.
        golden.store().blobs.put(blob.clone()).await.unwrap();
        let report = cairn_store::verify(&golden.store(), SESSION).await.unwrap();
        assert_eq!(report.problems, [""; 0]);
    }
}

#[tokio::test]
async fn a_damaged_key_ring_is_not_replaced() {
    let golden = Golden::new().await;
    let path = golden.home.path().join("keys").join("keyring.json");
    let bytes = golden.files[&path].clone();
    for cut in 0..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let store = golden.store();
        assert_eq!(store.keys.load().await.unwrap_err().code(), "KEYRING_UNUSABLE", "{cut}");
        assert_eq!(store.keys.rotate().await.unwrap_err().code(), "KEYRING_UNUSABLE", "{cut}");
        assert_eq!(fs::read(&path).unwrap(), &bytes[..cut]);
    }
    fs::write(&path, &bytes).unwrap();
    golden.store().keys.load().await.unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(golden.store().keys.load().await.unwrap_err().code(), "KEYRING_UNUSABLE");
}

#[tokio::test]
async fn a_damaged_session_stops_collection() {
    let golden = Golden::new().await;
    let mut journal = golden.bytes("journal.jsonl").to_vec();
    journal[10] ^= 1;
    golden.write("journal.jsonl", &journal);
    let store = golden.store();
    let orphan = store.blobs.put(given::snapshot(99)).await.unwrap();
    let policy = cairn_store::gc::Policy { min_age_ms: 0, older_than_ms: Some(0), dry_run: false };
    let report = cairn_store::gc::collect(&store, &policy, u64::MAX).await.unwrap();
    assert!(report.safe_mode.is_some_and(|why| why.contains("corrupt_tail")));
    store.blobs.get(cairn_core::pin::BlobKind::Snapshot, orphan).await.unwrap();
    let left: Vec<SessionId> = store.sessions.list().await.unwrap();
    assert_eq!(left, [SESSION], "the damaged one is never retired by age");
}
