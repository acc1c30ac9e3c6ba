//! What the files backend does not do: write when it only reads, and read what it knows.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cairn_core::id::EventIndex;
use cairn_store::files::fs::{Disk, File, Fs, Open, Space, Stat};
use cairn_store::files::{Config, open_on};

use crate::given::{SESSION, acquire, by, notes, start, step};

/// The disk, with a record of what was done to it.
#[derive(Clone)]
struct Watched {
    done: Arc<Mutex<Vec<(&'static str, PathBuf)>>>,
    bytes_read: Arc<AtomicUsize>,
}

struct WatchedFile {
    file: Box<dyn File>,
    path: PathBuf,
    disk: Watched,
}

impl Watched {
    fn new() -> Self {
        Self { done: Arc::default(), bytes_read: Arc::default() }
    }

    fn note(&self, what: &'static str, path: &Path) {
        self.done.lock().unwrap().push((what, path.to_owned()));
    }

    /// What was done since the last time somebody asked.
    fn take(&self) -> Vec<(&'static str, PathBuf)> {
        std::mem::take(&mut *self.done.lock().unwrap())
    }
}

impl Fs for Watched {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn File>> {
        if matches!(how, Open::CreateNew) || (how == Open::Create && !path.exists()) {
            self.note("write", path);
        }
        let file = Disk.open(path, how)?;
        Ok(Box::new(WatchedFile { file, path: path.to_owned(), disk: self.clone() }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.note("read", path);
        let bytes = Disk.read(path)?;
        self.bytes_read.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("write", to);
        Disk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("write", to);
        Disk.rename_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.note("write", path);
        Disk.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.note("write", path);
        Disk.remove_dir_all(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.note("write", path);
        Disk.create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.note("sync", path);
        Disk.sync_dir(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<String>> {
        Disk.read_dir(path)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Disk.stat(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        Disk.space(path)
    }
}

impl WatchedFile {
    fn note(&self, what: &'static str) {
        self.disk.note(what, &self.path);
    }
}

impl File for WatchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if buffer.len() > 1 {
            self.note("read");
        }
        let read = self.file.read_at(buffer, offset)?;
        self.disk.bytes_read.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.note("write");
        self.file.write_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note("write");
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.note("sync");
        self.file.sync()
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.file.try_lock_shared()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }
}

fn is_segment(path: &Path) -> bool {
    path.parent().is_some_and(|parent| parent.ends_with("events"))
}

#[tokio::test]
async fn a_commit_is_one_write_one_sync_and_the_witness_whether_or_not_it_is_fenced() {
    let home = tempfile::tempdir().unwrap();
    let disk = Watched::new();
    let store = open_on(Arc::new(disk.clone()), &Config::new(home.path())).unwrap();
    store.log.append(SESSION, start()).await.unwrap();
    store.log.append(SESSION, notes(0)).await.unwrap();
    let done = || {
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let done = disk.take().into_iter().map(|(what, path)| format!("{what} {}", name(path)));
        done.collect::<Vec<String>>()
    };
    let expected = ["read .lock", "write journal.jsonl", "sync journal.jsonl", "write head"];
    done();
    store.log.append(SESSION, notes(1)).await.unwrap();
    assert_eq!(done(), expected);
    let lease = acquire(&store).await;
    done();
    for number in 2..5 {
        store.log.append(SESSION, by(lease.epoch(), notes(number))).await.unwrap();
        assert_eq!(done(), expected);
    }
}

#[tokio::test]
async fn reading_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let writer = cairn_store::open(&cairn_store::Config::files(home.path())).unwrap();
    writer.log.append(SESSION, start()).await.unwrap();
    writer.log.append(SESSION, step(0)).await.unwrap();
    writer.log.seal(SESSION).await.unwrap();
    writer.log.append(SESSION, step(1)).await.unwrap();
    let disk = Watched::new();
    let reader = open_on(Arc::new(disk.clone()), &Config::new(home.path())).unwrap();
    disk.take();
    for _ in 0..3 {
        assert_eq!(reader.log.read(SESSION, EventIndex(0)).await.unwrap().len(), 6);
        reader.log.status(SESSION).await.unwrap();
        reader.sessions.list().await.unwrap();
    }
    let writes: Vec<_> = disk.take().into_iter().filter(|(what, _)| *what != "read").collect();
    assert_eq!(writes, []);
}

#[tokio::test]
async fn what_is_known_is_not_read_again() {
    let home = tempfile::tempdir().unwrap();
    let other = cairn_store::open(&cairn_store::Config::files(home.path())).unwrap();
    other.log.append(SESSION, start()).await.unwrap();
    for number in 0..10 {
        other.log.append(SESSION, step(number)).await.unwrap();
        other.log.seal(SESSION).await.unwrap();
    }
    let disk = Watched::new();
    let store = open_on(Arc::new(disk.clone()), &Config::new(home.path())).unwrap();
    store.log.status(SESSION).await.unwrap();
    let first = disk.take().into_iter().filter(|(_, path)| is_segment(path)).count();
    assert_eq!(first, 10, "each segment is validated once");
    // Appends, reads of what is new, what another process did, and a further seal.
    for number in 10..14 {
        store.log.append(SESSION, step(number)).await.unwrap();
        store.log.read(SESSION, EventIndex(2 * number + 2)).await.unwrap();
        other.log.append(SESSION, notes(100 + number)).await.unwrap();
        store.log.status(SESSION).await.unwrap();
    }
    let again = disk.take().into_iter().filter(|(_, path)| is_segment(path)).count();
    assert_eq!(again, 0, "no validated segment is read again");
    other.log.seal(SESSION).await.unwrap();
    store.log.append(SESSION, step(14)).await.unwrap();
    let again = disk.take().into_iter().filter(|(_, path)| is_segment(path)).count();
    assert!(again <= 1, "only the new segment: {again}");
}

/// A process that is told of one more commit reads about that much, however long the journal.
#[tokio::test]
async fn only_what_came_since_is_read() {
    let home = tempfile::tempdir().unwrap();
    let other = cairn_store::open(&cairn_store::Config::files(home.path())).unwrap();
    other.log.append(SESSION, start()).await.unwrap();
    for number in 0..2000 {
        other.log.append(SESSION, notes(number)).await.unwrap();
    }
    let disk = Watched::new();
    let store = open_on(Arc::new(disk.clone()), &Config::new(home.path())).unwrap();
    let bytes = store.log.status(SESSION).await.unwrap().bytes as usize;
    assert!(disk.bytes_read.swap(0, Ordering::Relaxed) > bytes, "once, all of it");
    for number in 2000..2010 {
        other.log.append(SESSION, notes(number)).await.unwrap();
        let new = store.log.read(SESSION, EventIndex(number + 2)).await.unwrap();
        assert_eq!(new.len(), 1);
    }
    let read = disk.bytes_read.swap(0, Ordering::Relaxed);
    // The room behind the last commit is looked at, too.
    assert!(read < 12 << 20, "{read} bytes for ten commits beside {bytes}");
    store.log.append(SESSION, notes(2010)).await.unwrap();
    disk.bytes_read.store(0, Ordering::Relaxed);
    for number in 2011..2020 {
        store.log.append(SESSION, notes(number)).await.unwrap();
    }
    let read = disk.bytes_read.swap(0, Ordering::Relaxed);
    assert!(read < 1000, "{read} bytes for appends of one's own");
}
