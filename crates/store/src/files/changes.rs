//! The order of changes: a line for each commit, for whoever only looks at what moved.
//!
//! A line is written before its commit, so that no commit is without one, and is nothing but a
//! hint: whoever reads it looks at the session itself. It is never synced. After a crash of the
//! system the file is of another boot, and whoever reads it looks at every session once.
//!
//! A full file makes room for the next one and stays beside it, so that a reader who is not far
//! behind goes on where it was. Nobody waits for anybody: who writes a line looks afterwards
//! whether its file still takes lines, and else writes it again into the next one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cairn_core::id::{EventIndex, SessionId};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::durable::failed;
use crate::error::Result;

/// How long a file gets before another takes its place.
const FILE_MAX: u64 = 1 << 20;

/// Where the lines are.
pub(super) struct Changes {
    folder: PathBuf,
    /// Which start of the system this is; none where it cannot be told, and nothing is trusted.
    boot: Option<String>,
    file: Mutex<Option<Lines>>,
}

/// A file that is written to.
struct Lines {
    file: File,
    inode: u64,
}

/// What a file says of itself in its first line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Header {
    id: u64,
    /// The file whose place it took.
    before: Option<u64>,
    boot: String,
}

/// How far somebody has read, and what was announced there and not seen yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    id: u64,
    offset: u64,
    pub(super) open: BTreeMap<SessionId, EventIndex>,
}

/// What was announced since somebody looked.
pub(super) struct Announced {
    /// The last event that was announced of each session.
    pub(super) lines: BTreeMap<SessionId, EventIndex>,
    /// Whether that is everything since then.
    pub(super) is_all: bool,
    /// From where to go on, before it is known which of these have come to pass.
    pub(super) seen: Seen,
}

impl Header {
    fn encode(&self) -> String {
        let before = self.before.map_or_else(|| "-".to_owned(), |before| format!("{before:016x}"));
        format!("cairn-changes 1 {:016x} {before} {}\n", self.id, self.boot)
    }

    fn decode(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("cairn-changes 1 ")?.split(' ');
        let mut number = || words.next().map(|word| u64::from_str_radix(word, 16).ok());
        let (id, before) = (number()??, number()?);
        Some(Self { id, before, boot: words.next()?.to_owned() })
    }
}

impl Seen {
    pub(super) fn encode(&self) -> String {
        let mut text = format!("{:016x} {}", self.id, self.offset);
        for (session, last) in &self.open {
            // Writing to a string cannot fail.
            let _ = write!(text, " {session} {last}");
        }
        text
    }

    pub(super) fn decode(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let id = u64::from_str_radix(words.next()?, 16).ok()?;
        let offset = words.next()?.parse().ok()?;
        let mut open = BTreeMap::new();
        while let Some(session) = words.next() {
            let last = EventIndex(words.next()?.parse().ok()?);
            open.insert(session.parse().ok()?, last);
        }
        Some(Self { id, offset, open })
    }

    /// Leaves out what has come to pass, as far as each session says.
    pub(super) fn settle(mut self, last: impl Fn(SessionId) -> Option<EventIndex>) -> Self {
        self.open.retain(|session, announced| last(*session).is_none_or(|last| last < *announced));
        self
    }
}

impl Changes {
    pub(super) fn new(folder: PathBuf) -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let boot = boot.map(|boot| boot.trim().to_owned()).filter(|boot| !boot.is_empty());
        Self { folder, boot, file: Mutex::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("current")
    }

    /// Announces a commit up to an event of a session.
    pub(super) fn announce(&self, session: SessionId, last: EventIndex) -> Result<()> {
        let path = self.path();
        let written = self.add(&path, format!("{session} {last}\n").as_bytes());
        written.map_err(failed("writing", &path))
    }

    /// Announces a commit again when its line is in a file that is left behind: whoever wrote it
    /// may have been stopped for long between the line and the commit.
    pub(super) fn confirm(&self, session: SessionId, last: EventIndex) -> Result<()> {
        let is_current = {
            let held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            held.as_ref().is_some_and(|lines| lines.is_at(&self.path()))
        };
        if is_current { Ok(()) } else { self.announce(session, last) }
    }

    fn add(&self, path: &Path, line: &[u8]) -> io::Result<()> {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let lines = match held.take() {
                Some(lines) => lines,
                None => self.open()?,
            };
            let lines = held.insert(lines);
            // One write, so that nobody else's line is in between.
            let written = lines.file.write(line)?;
            if written < line.len() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            if lines.is_at(path) {
                return Ok(());
            }
            *held = None;
        }
    }

    /// Opens the file that takes lines, which is made when there is none.
    fn open(&self) -> io::Result<Lines> {
        let path = self.path();
        let append = || OpenOptions::new().append(true).open(&path);
        let file = match append() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.begin()?;
                append()?
            }
            opened => opened?,
        };
        let inode = file.metadata()?.ino();
        Ok(Lines { file, inode })
    }

    /// Makes the first file.
    fn begin(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let fresh = self.prepare(None)?;
        match renameat_with(CWD, &fresh, CWD, self.path(), RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            // Somebody else was first, or will be told that there is nothing to append to.
            Err(_) => fs::remove_file(&fresh),
        }
    }

    /// Writes a file that is to take lines.
    fn prepare(&self, before: Option<u64>) -> io::Result<PathBuf> {
        let id = crate::random().map_err(io::Error::other)?;
        let boot = self.boot.clone().unwrap_or_else(|| "-".to_owned());
        let path = self.folder.join(format!("{id:016x}.new"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(Header { id, before, boot }.encode().as_bytes())?;
        Ok(path)
    }

    /// What was announced since somebody looked; everything that is known when that is long ago.
    pub(super) fn since(&self, seen: Option<&Seen>) -> io::Result<Announced> {
        let current = match Text::read(&self.path(), None)? {
            Some(text) => text,
            None => {
                self.begin()?;
                Text::read(&self.path(), None)?.ok_or(io::ErrorKind::NotFound)?
            }
        };
        let is_of_now = |text: &Text| self.boot.as_ref() == Some(&text.header.boot);
        let (id, len) = (current.header.id, current.len);
        let mut lines = BTreeMap::new();
        let reached = match seen.filter(|_| is_of_now(&current)) {
            Some(seen) if seen.id == id => {
                lines.extend(seen.open.clone());
                current.lines_from(seen.offset, &mut lines)
            }
            Some(seen) if current.header.before == Some(seen.id) => {
                let before = Text::read(&self.folder.join("before"), Some(seen.id))?;
                lines.extend(seen.open.clone());
                let rest = before.and_then(|text| text.lines_from(seen.offset, &mut lines));
                rest.and_then(|_| current.lines_from(0, &mut lines))
            }
            _ => None,
        };
        let offset = reached.unwrap_or_else(|| {
            // Whatever was announced may still be on its way.
            lines.clear();
            let before = Text::read(&self.folder.join("before"), current.header.before);
            if let Ok(Some(before)) = before {
                before.lines_from(0, &mut lines);
            }
            current.lines_from(0, &mut lines).unwrap_or(len)
        });
        if len >= FILE_MAX || !is_of_now(&current) {
            // Another may be at it, and a disk that takes no more says so to whoever writes.
            let _ = self.turn_over(&current.header, is_of_now(&current));
        }
        let (open, is_all) = (lines.clone(), reached.is_some());
        Ok(Announced { lines, is_all, seen: Seen { id, offset, open } })
    }

    /// Puts a fresh file in the place of the one that takes lines.
    fn turn_over(&self, full: &Header, goes_on: bool) -> io::Result<()> {
        let lock = self.folder.join("lock");
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).mode(0o600).open(lock)?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        let still = Text::read(&self.path(), None)?.is_some_and(|text| text.header == *full);
        if still {
            let fresh = self.prepare(goes_on.then_some(full.id))?;
            renameat_with(CWD, &fresh, CWD, self.path(), RenameFlags::EXCHANGE)?;
            fs::rename(&fresh, self.folder.join("before"))?;
        }
        lock.unlock()
    }
}

impl Lines {
    /// Whether it is the file at a path.
    fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| found.ino() == self.inode)
    }
}

/// A file of lines, as far as it was written.
struct Text {
    header: Header,
    file: File,
    /// Where its lines begin.
    start: u64,
    len: u64,
}

impl Text {
    /// Opens a file; none when it is not there, or not the one that is meant. A file that cannot
    /// be read as ours is an unknown one, of no boot.
    fn read(path: &Path, id: Option<u64>) -> io::Result<Option<Self>> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let len = file.metadata()?.len();
        let mut head = [0; 128];
        let filled = file.read(&mut head)?;
        let head = head.get(..filled).unwrap_or_default();
        let end = head.iter().position(|byte| *byte == b'\n');
        let line = end.and_then(|end| std::str::from_utf8(head.get(..end)?).ok());
        let header = line.and_then(Header::decode);
        let unknown = Header { id: 0, before: None, boot: String::new() };
        let header = header.unwrap_or(unknown);
        let start = end.map_or(len, |end| end as u64 + 1);
        Ok(id.is_none_or(|id| id == header.id).then_some(Self { header, file, start, len }))
    }

    /// Takes in the whole lines from a place on; gives where they end, if all could be read.
    fn lines_from(&self, offset: u64, lines: &mut BTreeMap<SessionId, EventIndex>) -> Option<u64> {
        let offset = offset.max(self.start);
        let len = usize::try_from(self.len.saturating_sub(offset)).ok()?;
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, offset).ok()?;
        // What is not a whole line is being written, and its commit comes later.
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(end);
        let text = String::from_utf8(bytes).ok()?;
        let is_read = text.split_terminator('\n').all(|line| {
            let line = line.split_once(' ');
            let read = line.and_then(|(session, last)| {
                Some((session.parse().ok()?, EventIndex(last.parse().ok()?)))
            });
            // The last line of a session counts: one commit is over before the next begins.
            lines.extend(read);
            read.is_some()
        });
        is_read.then_some(offset + end as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u128) -> SessionId {
        SessionId::from_bits(number)
    }

    fn changes() -> (tempfile::TempDir, Changes) {
        let home = tempfile::tempdir().unwrap();
        let changes = Changes::new(home.path().join("changes"));
        (home, changes)
    }

    fn known(announced: &Announced) -> Vec<(SessionId, u64)> {
        announced.lines.iter().map(|(session, last)| (*session, last.0)).collect()
    }

    #[test]
    fn whoever_looks_is_told_what_was_announced_since() {
        let (_home, changes) = changes();
        let first = changes.since(None).unwrap();
        assert!(!first.is_all);
        changes.announce(session(1), EventIndex(3)).unwrap();
        changes.announce(session(2), EventIndex(5)).unwrap();
        changes.announce(session(1), EventIndex(4)).unwrap();
        let second = changes.since(Some(&first.seen)).unwrap();
        assert!(second.is_all);
        assert_eq!(known(&second), [(session(1), 4), (session(2), 5)]);
        // One commit has come to pass, the other is on its way.
        let seen = second.seen.settle(|of| (of == session(1)).then_some(EventIndex(4)));
        let third = changes.since(Some(&Seen::decode(&seen.encode()).unwrap())).unwrap();
        assert!(third.is_all);
        assert_eq!(known(&third), [(session(2), 5)]);
    }

    #[test]
    fn a_full_file_makes_room_and_nobody_misses_a_line() {
        let (_home, changes) = changes();
        let mut seen = changes.since(None).unwrap().seen;
        let far_behind = seen.clone();
        let (mut told, mut files) = (BTreeMap::new(), std::collections::BTreeSet::new());
        let each = FILE_MAX / 40 / 3;
        for number in 0..each * 12 {
            changes.announce(session(u128::from(number) + 1), EventIndex(number)).unwrap();
            if number % each == 0 {
                let looked = changes.since(Some(&seen)).unwrap();
                assert!(looked.is_all, "at {number}");
                told.extend(looked.lines);
                seen = looked.seen.settle(|_| Some(EventIndex::LAST));
                files.insert(seen.id);
            }
        }
        let rest = changes.since(Some(&seen)).unwrap();
        told.extend(rest.lines);
        assert_eq!(told.len() as u64, each * 12);
        assert!(files.len() > 2, "{files:?}");
        assert!(!changes.since(Some(&far_behind)).unwrap().is_all, "that file is gone");
    }

    #[test]
    fn a_line_in_a_file_that_was_left_behind_is_repeated() {
        let (_home, changes) = changes();
        changes.announce(session(1), EventIndex(1)).unwrap();
        let header = Text::read(&changes.path(), None).unwrap().unwrap().header;
        changes.turn_over(&header, true).unwrap();
        let seen = changes.since(None).unwrap().seen;
        let seen = seen.settle(|_| Some(EventIndex::LAST));
        changes.confirm(session(1), EventIndex(1)).unwrap();
        assert_eq!(known(&changes.since(Some(&seen)).unwrap()), [(session(1), 1)]);
        changes.confirm(session(1), EventIndex(1)).unwrap();
        assert_eq!(changes.since(None).unwrap().seen.offset, seen.offset + 34, "once is enough");
    }

    #[test]
    fn what_another_boot_or_nobody_wrote_is_not_trusted() {
        let (home, mut changes) = changes();
        changes.announce(session(1), EventIndex(1)).unwrap();
        let seen = changes.since(None).unwrap().seen;
        assert!(changes.since(Some(&seen)).unwrap().is_all);
        changes.boot = Some("another".to_owned());
        let after = changes.since(Some(&seen)).unwrap();
        assert!(!after.is_all);
        let begun = changes.since(Some(&after.seen)).unwrap();
        assert!(!begun.is_all, "its own file is there from now on");
        assert!(changes.since(Some(&begun.seen)).unwrap().is_all);
        for garbage in [&b"\0\0\0\0"[..], b"", b"cairn-changes 1 zz - x\nsess_x 1\n"] {
            fs::write(changes.path(), garbage).unwrap();
            assert!(!changes.since(Some(&begun.seen)).unwrap().is_all, "{garbage:?}");
            let begun = changes.since(None).unwrap();
            assert!(changes.since(Some(&begun.seen)).unwrap().is_all, "{garbage:?}");
        }
        fs::remove_dir_all(home.path().join("changes")).unwrap();
        assert!(!changes.since(Some(&begun.seen)).unwrap().is_all);
        changes.announce(session(2), EventIndex(2)).unwrap();
        assert_eq!(known(&changes.since(None).unwrap()), [(session(2), 2)]);
    }

    #[test]
    fn many_at_once_lose_no_line() {
        let (home, _) = changes();
        let folder = home.path().join("changes");
        let (writers, lines) = (4_u64, 3_000_u64);
        std::thread::scope(|scope| {
            for writer in 0..writers {
                let own = Changes::new(folder.clone());
                scope.spawn(move || {
                    for line in 0..lines {
                        let of = session(u128::from(writer * lines + line) + 1);
                        own.announce(of, EventIndex(line)).unwrap();
                    }
                });
            }
            let own = Changes::new(folder.clone());
            let mut told = BTreeMap::new();
            let mut seen: Option<Seen> = None;
            while told.len() as u64 != writers * lines {
                let looked = own.since(seen.as_ref()).unwrap();
                assert!(looked.is_all || seen.is_none());
                // Files are turned over in between.
                if looked.seen.offset > 4_096 {
                    let header = Text::read(&own.path(), None).unwrap().unwrap().header;
                    own.turn_over(&header, true).unwrap();
                }
                told.extend(looked.lines);
                seen = Some(looked.seen.settle(|_| Some(EventIndex::LAST)));
            }
        });
    }
}
