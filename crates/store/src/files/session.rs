//! One session on disk: reading it, and the one way to write to it.
//!
//! A [`Writer`] is the witness that the lock is held and the data healthy. Committing
//! needs one, only [`Session::write`] makes one, and it cannot outlive the lock.

use std::path::Path;
use std::sync::Arc;

use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::journal::{self, Commit};

use super::Config;
use super::durable::{failed, not_durable, replace, sync_dir, sync_file, sync_parent, write_whole};
use super::fs::{Fs, Open};
use super::head::{self, Head, HeadFile, Witness};
use super::layout::{JOURNAL, SessionDir, rotated_journal};
use super::load::{Journal, Loaded, Resident, Trust, load};
use super::lock::{self, Held, LockFile};
use crate::admit::{Admission, Admitted, Prepared};
use crate::error::{Error, Result};
use crate::health::{Health, Notice};
use crate::plan::Appended;

/// A session, and what this process knows of it.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) dir: SessionDir,
    pub(super) fs: Arc<dyn Fs>,
    config: Config,
    lock: Option<LockFile>,
    head: Option<HeadFile>,
    pub(super) state: State,
}

/// What a process knows of a session.
#[derive(Default)]
pub(super) struct State {
    pub(super) resident: Option<Resident>,
    /// What is known is sound: a damaged session's prefix may be shown, never gone on from.
    sound: bool,
    pub(super) notices: Vec<Notice>,
    /// Why this process may not write any more.
    poison: Option<Error>,
    /// This process's own last commit: while it is the last of all, the epoch stays.
    own_last: Option<Digest>,
}

/// How often a reader looks again before it gives up on a busy session.
const LOOKS: usize = 3;

/// Whether to wait a moment for a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Some,
    None,
}

/// What a reader without the lock sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// All there is.
    Whole,
    /// All that is durable for sure; a commit may be under way behind it.
    Partial,
    /// Something that only the lock's holder can judge.
    Unsure,
}

/// How a session is, for whoever only looks.
pub(super) struct View<'a> {
    pub(super) resident: &'a Resident,
    pub(super) health: Health,
    pub(super) damage: Option<String>,
}

impl Session {
    pub(super) fn new(fs: Arc<dyn Fs>, config: &Config, dir: SessionDir, id: SessionId) -> Self {
        let config = config.clone();
        Self { id, dir, fs, config, lock: None, head: None, state: State::default() }
    }

    /// Takes the lock, brings what is known up to date, and mends what a crash left behind.
    pub(super) fn write(&mut self) -> Result<Writer<'_>> {
        self.write_with(Patience::Some)
    }

    fn write_with(&mut self, patience: Patience) -> Result<Writer<'_>> {
        if let Some(poison) = &self.state.poison {
            return Err(poison.clone());
        }
        let Self { id, dir, fs, config, lock, head, state } = self;
        let lock = match lock {
            Some(lock) => lock,
            None => lock.insert(LockFile::open(&**fs, dir.lock())?),
        };
        let held = match patience {
            Patience::Some => lock.acquire(&**fs)?,
            Patience::None => lock.try_acquire(&**fs)?,
        };
        let Some(held) = held else {
            return Err(Error::Locked { session: *id, holder: lock::holder(&**fs, &dir.lock()) });
        };
        let mut writer = Writer { id: *id, dir, fs: &**fs, config, head, state, held };
        match writer.prepare() {
            Ok(()) => Ok(writer),
            Err(error) => {
                writer.poison_on(&error);
                Err(error)
            }
        }
    }

    /// Brings what is known up to date without the lock, as far as that can be trusted.
    ///
    /// Whatever looks wrong from here may be a writer at work: only the lock's holder may
    /// call it damage, so then the lock is taken if it is free.
    pub(super) fn look(&mut self) -> Result<View<'_>> {
        if self.is_current() {
            return Ok(self.view(Health::Healthy, None));
        }
        for _ in 0..LOOKS {
            let healthy = self.load_up_to_head()?;
            match healthy {
                Look::Whole => return Ok(self.view(Health::Healthy, None)),
                Look::Partial | Look::Unsure => {}
            }
            match self.write_with(Patience::None).map(|_| ()) {
                Ok(()) => return Ok(self.view(Health::Healthy, None)),
                Err(Error::Corrupt { .. } | Error::UnknownVersion { .. }) => return self.salvage(),
                // The witness is up to date while a writer is at work, and where this process
                // has written itself. Anywhere else it may be behind what was acknowledged.
                Err(error) => {
                    let busy = matches!(error, Error::Locked { .. });
                    if (busy || self.head.is_some()) && self.load_up_to_head()? != Look::Unsure {
                        return Ok(self.view(Health::Healthy, None));
                    }
                    if !busy {
                        return Err(error);
                    }
                    std::thread::sleep(lock::PAUSE);
                }
            }
        }
        Err(Error::Locked { session: self.id, holder: self.holder() })
    }

    fn load_up_to_head(&mut self) -> Result<Look> {
        let known = self.state.take_known();
        let loaded = load(&*self.fs, &self.dir, self.id, known, Trust::UpToHead)?;
        let look = match loaded.health {
            Health::Healthy if loaded.torn => Look::Partial,
            Health::Healthy => Look::Whole,
            _ => Look::Unsure,
        };
        self.state.sound = look != Look::Unsure;
        self.state.resident = Some(loaded.resident);
        self.state.notices = loaded.notices;
        Ok(look)
    }

    /// Whether the disk holds exactly what is known.
    fn is_current(&self) -> bool {
        let Some(resident) = self.state.resident.as_ref().filter(|_| self.state.sound) else {
            return false;
        };
        match (resident.active(), resident.journals.is_empty()) {
            (Some(journal), _) => unchanged(&*self.fs, &self.dir, journal),
            // All of it is sealed: then nothing may have come since.
            (None, true) => {
                let sealed = self.fs.stat(&self.dir.manifest());
                let last = head::read(&*self.fs, &self.dir).ok().and_then(Witness::head);
                sealed.is_ok_and(|stat| stat.len == resident.manifest.end)
                    && self.fs.stat(&self.dir.journal()).is_err()
                    && last.is_some_and(|head| Some(head.last) == resident.index.last())
            }
            (None, false) => false,
        }
    }

    fn holder(&self) -> Option<String> {
        lock::holder(&*self.fs, &self.dir.lock())
    }

    /// A failed sync outside a commit ends this process's writing too.
    pub(super) fn poison_on(&mut self, error: &Error) {
        self.state.poison_on(error);
    }

    /// What can still be trusted of a damaged session.
    fn salvage(&mut self) -> Result<View<'_>> {
        let loaded = load(&*self.fs, &self.dir, self.id, None, Trust::Everything)?;
        self.state.sound = loaded.health == Health::Healthy;
        self.state.resident = Some(loaded.resident);
        Ok(self.view(loaded.health, loaded.damage))
    }

    fn view(&mut self, health: Health, damage: Option<String>) -> View<'_> {
        View { resident: self.state.resident.get_or_insert_default(), health, damage }
    }

    /// Reads the events from `from` on.
    pub(super) fn events(&self, from: EventIndex) -> Result<Vec<Event>> {
        let Some(resident) = &self.state.resident else { return Ok(Vec::new()) };
        let mut events = Vec::new();
        for segment in resident.segments.iter().filter(|segment| segment.last >= from) {
            let path = self.dir.file(&segment.path);
            let lines = self.fs.read(&path).map_err(failed("reading", &path))?;
            if Digest::of(&lines) != segment.sha256 {
                return Err(
                    self.corrupt(format!("segment {} is not what was sealed", segment.path))
                );
            }
            self.decode(&lines, from, &mut events)?;
        }
        for journal in &resident.journals {
            self.journal_events(journal, from, &mut events)?;
        }
        Ok(events)
    }

    fn journal_events(
        &self,
        journal: &Journal,
        from: EventIndex,
        events: &mut Vec<Event>,
    ) -> Result<()> {
        let wanted = events.last().map_or(from, |last| last.index.next().max(from));
        let place = journal.commits.partition_point(|(first, _)| *first <= wanted);
        let Some((_, start)) = journal.commits.get(place.saturating_sub(1)) else { return Ok(()) };
        let path = self.dir.file(&journal.name);
        let mut bytes = journal.file.read_to_end_at(*start).map_err(failed("reading", &path))?;
        bytes.truncate(usize::try_from(journal.end - start).unwrap_or_default());
        let scan = journal::scan(&bytes);
        if scan.end() != bytes.len() {
            return Err(self.corrupt(format!("{} is not what was written", journal.name)));
        }
        for frame in scan.frames.iter().filter(|frame| frame.commit.last >= wanted) {
            self.decode(frame.lines, wanted, events)?;
        }
        Ok(())
    }

    fn decode(&self, lines: &[u8], from: EventIndex, events: &mut Vec<Event>) -> Result<()> {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event = Event::decode(line).map_err(|error| Error::UnknownVersion {
                session: self.id,
                what: error.to_string(),
            })?;
            if event.index >= from {
                events.push(event);
            }
        }
        Ok(())
    }

    fn corrupt(&self, what: String) -> Error {
        Error::Corrupt { session: self.id, health: Health::CorruptTail, what }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // After a clean stop the witness is as good as the journal.
        self.head.as_ref().map(HeadFile::sync);
    }
}

/// Whether a journal's file is the one that was read, and nothing was added to it.
fn unchanged(fs: &dyn Fs, dir: &SessionDir, journal: &Journal) -> bool {
    let same = fs.stat(&dir.journal()).is_ok_and(|stat| stat.inode == journal.inode);
    // Behind the last commit is the end of the file, or room that nobody has used.
    let mut next = [0];
    same && journal.file.read_at(&mut next, journal.end).is_ok() && next == [0]
}

/// The proof that a session's lock is held and its data healthy: without one nothing is written.
pub(super) struct Writer<'a> {
    id: SessionId,
    dir: &'a SessionDir,
    fs: &'a dyn Fs,
    config: &'a Config,
    head: &'a mut Option<HeadFile>,
    state: &'a mut State,
    held: Held<'a>,
}

impl Writer<'_> {
    fn resident(&mut self) -> &mut Resident {
        self.state.resident.get_or_insert_default()
    }

    fn prepare(&mut self) -> Result<()> {
        let known = self.state.resident.as_ref().filter(|_| self.state.sound);
        let known = known.and_then(Resident::active);
        let ready = |journal: &Journal| journal.writable && unchanged(self.fs, self.dir, journal);
        if known.is_some_and(ready) && self.head.is_some() {
            return Ok(());
        }
        self.held.sign();
        let known = self.state.take_known();
        let loaded = load(self.fs, self.dir, self.id, known, Trust::Everything)?;
        match loaded.health {
            Health::Healthy => self.settle(loaded),
            Health::UnknownVersion => Err(Error::UnknownVersion {
                session: self.id,
                what: loaded.damage.unwrap_or_default(),
            }),
            health => {
                let what = loaded.damage.unwrap_or_default();
                Err(Error::Corrupt { session: self.id, health, what })
            }
        }
    }

    /// Sets aside what never was, and makes sure of what may not be durable yet.
    fn settle(&mut self, loaded: Loaded) -> Result<()> {
        let Loaded { mut resident, witness, mut notices, torn, beyond_head, .. } = loaded;
        if torn && self.quarantine_tail(&resident)? {
            notices.push(Notice::TornTailRecovered);
        }
        if witness == Witness::Absent {
            // Nobody has acknowledged anything here yet: the directory itself may be new.
            sync_parent(self.fs, &self.dir.path)?;
        }
        // A commit that was acknowledged made its journal's name durable. Without one, whoever
        // made or renamed the journal may have died before that.
        let acknowledged = |journal: &Journal| !journal.commits.is_empty();
        if !beyond_head && !resident.active().is_some_and(acknowledged) {
            sync_dir(self.fs, &self.dir.path)?;
        }
        if let Some(journal) = resident.active_mut() {
            let path = self.dir.journal();
            if beyond_head {
                self.copy_afresh(journal)?;
            }
            journal.file = self.fs.open(&path, Open::Write).map_err(failed("opening", &path))?;
            let stat = journal.file.stat().map_err(failed("reading", &path))?;
            (journal.inode, journal.room) = (stat.inode, stat.len);
            (journal.writable, journal.named) = (true, true);
            if torn && !beyond_head {
                journal.file.set_len(journal.end).map_err(failed("cutting", &path))?;
                sync_file(&*journal.file, &path)?;
                journal.room = journal.end;
            }
        }
        let mut head = HeadFile::open(self.fs, self.dir, witness)?;
        if let (true, Some(last), Some(rec)) = (beyond_head, resident.index.last(), resident.chain)
        {
            head.write(Head { last, rec });
        }
        *self.head = Some(head);
        self.state.sound = true;
        self.state.resident = Some(resident);
        self.state.notices = notices;
        Ok(())
    }

    /// Keeps a copy of the bytes behind the last whole commit; room set aside is not worth one.
    fn quarantine_tail(&self, resident: &Resident) -> Result<bool> {
        let Some(journal) = resident.journals.last() else { return Ok(false) };
        let path = self.dir.file(&journal.name);
        let tail = journal.file.read_to_end_at(journal.end).map_err(failed("reading", &path))?;
        if tail.iter().all(|byte| *byte == 0) {
            return Ok(false);
        }
        quarantine(self.fs, self.dir, &format!("{}-{}", journal.name, journal.end), &tail)?;
        Ok(true)
    }

    /// Commits that nobody has seen acknowledged may be in the system's cache alone, and a
    /// failed sync may have been forgotten: a fresh copy of them is durable for sure.
    fn copy_afresh(&self, journal: &Journal) -> Result<()> {
        let path = self.dir.journal();
        let mut bytes = journal.file.read_to_end_at(0).map_err(failed("reading", &path))?;
        bytes.truncate(usize::try_from(journal.end).unwrap_or_default());
        replace(self.fs, &path, &bytes)
    }

    /// Commits the plans that can be committed, as one; answers each.
    pub(super) fn commit(&mut self, plans: &[Prepared]) -> Vec<Result<Appended>> {
        let mut batch = Admitted::on(&self.resident().index);
        let admissions: Vec<Result<Admission>> = {
            let index = &self.resident().index;
            plans.iter().map(|plan| batch.admit(index, plan)).collect()
        };
        let fresh = admissions.iter().zip(plans).filter_map(|(admission, plan)| match admission {
            Ok(Admission::Append(at)) => Some((at.first, plan)),
            _ => None,
        });
        let fresh: Vec<(EventIndex, &Prepared)> = fresh.collect();
        let written = if fresh.is_empty() { Ok(()) } else { self.write_commit(&fresh, batch) };
        if let Err(error) = &written {
            self.poison_on(error);
        }
        let answer = |admission| match admission {
            // A replay of something in this very batch is as good as the batch.
            Ok(Admission::Append(at) | Admission::Replay(at)) => written.clone().map(|()| at),
            Err(error) => Err(error),
        };
        admissions.into_iter().map(answer).collect()
    }

    fn write_commit(&mut self, plans: &[(EventIndex, &Prepared)], batch: Admitted) -> Result<()> {
        let (mut bytes, mut pins) = (Vec::new(), Vec::new());
        let (mut first, mut next) = (None, EventIndex(0));
        for (start, plan) in plans {
            first.get_or_insert(*start);
            next = *start;
            for event in &plan.events {
                event.write(next, &mut bytes);
                pins.extend(event.pins(next));
                next = next.next();
            }
        }
        let added = bytes.len() as u64;
        let epoch = self.next_epoch();
        let resident = self.resident();
        let (first, last) = (first.unwrap_or_default(), EventIndex(next.0.saturating_sub(1)));
        let commit = Commit { epoch, first, last, pins, prev: resident.chain };
        let rec = commit.close(&mut bytes)?;
        self.write_journal(first, &bytes)?;
        let resident = self.resident();
        resident.index.join(batch);
        resident.pins.extend(commit.pins);
        resident.bytes += added;
        resident.chain = Some(rec);
        resident.epoch = epoch;
        self.state.own_last = Some(rec);
        if let Some(head) = self.head.as_mut() {
            head.write(Head { last, rec });
            if self.config.strict && !head.sync() {
                let source = Arc::new(std::io::Error::other("the witness could not be synced"));
                return Err(Error::DurabilityLost { path: self.dir.head(), source });
            }
        }
        Ok(())
    }

    /// The epoch rises whenever somebody else wrote last.
    fn next_epoch(&mut self) -> u64 {
        let last = self.resident().chain;
        let rise = u64::from(last.is_some() && last != self.state.own_last);
        self.resident().epoch + rise
    }

    /// The commit point: one write at the acknowledged length and one sync.
    fn write_journal(&mut self, first: EventIndex, bytes: &[u8]) -> Result<()> {
        let (fs, dir, path) = (self.fs, self.dir, self.dir.journal());
        if self.resident().active().is_none() {
            let journal = self.new_journal(&path)?;
            self.resident().journals.push(journal);
        }
        let Some(journal) = self.resident().active_mut() else {
            return Err(Error::InvalidPlan("the session has no journal to write to"));
        };
        write_with_room(journal, bytes, &path)?;
        sync_file(&*journal.file, &path)?;
        if !journal.named {
            sync_dir(fs, &dir.path)?;
            journal.named = true;
        }
        journal.commits.push((first, journal.end));
        journal.end += bytes.len() as u64;
        Ok(())
    }

    fn new_journal(&self, path: &Path) -> Result<Journal> {
        let file = self.fs.open(path, Open::CreateNew).map_err(failed("making", path))?;
        let inode = file.stat().map_err(failed("reading", path))?.inode;
        let name = JOURNAL.to_owned();
        let commits = Vec::new();
        Ok(Journal { name, file, inode, writable: true, named: false, end: 0, room: 0, commits })
    }

    /// Whether the journal is so long that it should be sealed.
    pub(super) fn is_full(&mut self) -> bool {
        let max = self.config.journal_max;
        self.resident().active().is_some_and(|journal| journal.end >= max)
    }

    /// Ends the journal, so that it can be sealed while commits go on in a new one.
    pub(super) fn rotate(&mut self) -> Result<()> {
        let result = self.try_rotate();
        if let Err(error) = &result {
            self.poison_on(error);
        }
        result
    }

    fn try_rotate(&mut self) -> Result<()> {
        let (fs, dir) = (self.fs, self.dir);
        let Some(journal) = self.resident().active_mut() else { return Ok(()) };
        let Some((first, _)) = journal.commits.first() else { return Ok(()) };
        let name = rotated_journal(first.0);
        let path = dir.file(&name);
        fs.rename_new(&dir.journal(), &path).map_err(failed("renaming to", &path))?;
        journal.name = name;
        sync_dir(fs, &dir.path)
    }

    fn poison_on(&mut self, error: &Error) {
        self.state.poison_on(error);
    }
}

impl State {
    /// What is known, to go on from.
    fn take_known(&mut self) -> Option<Resident> {
        self.resident.take().filter(|_| self.sound)
    }

    /// A failed sync cannot be tried again: this process stops writing to the session.
    fn poison_on(&mut self, error: &Error) {
        if matches!(error, Error::DurabilityLost { .. }) {
            self.poison = Some(error.clone());
        }
    }
}

/// Writes a commit behind the last one.
///
/// A file that grows with each commit has to have its new length made durable each time, so
/// it grows ahead, by as much again as it holds, and its commits go into that room.
fn write_with_room(journal: &mut Journal, bytes: &[u8], path: &Path) -> Result<()> {
    let end = journal.end + bytes.len() as u64;
    if end <= journal.room {
        return write_or_cut(journal, bytes, path);
    }
    let room = journal.end.clamp(ROOM_MIN, ROOM_MAX);
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len() + usize::try_from(room).unwrap_or_default(), 0);
    match write_or_cut(journal, &padded, path) {
        // The room is not worth failing for.
        Err(Error::Full { .. }) => write_or_cut(journal, bytes, path),
        written => written,
    }
}

const ROOM_MIN: u64 = 4 << 10;
const ROOM_MAX: u64 = 1 << 20;

/// Writes behind the last commit; on an error the acknowledged part is all that is left.
fn write_or_cut(journal: &mut Journal, bytes: &[u8], path: &Path) -> Result<()> {
    match journal.file.write_all_at(bytes, journal.end) {
        Ok(()) => {
            journal.room = journal.room.max(journal.end + bytes.len() as u64);
            Ok(())
        }
        Err(error) => {
            let cut = journal.file.set_len(journal.end).and_then(|()| journal.file.sync());
            cut.map_err(not_durable(path))?;
            journal.room = journal.end;
            Err(failed("writing", path)(error))
        }
    }
}

/// Keeps bytes that are about to be cut off or moved away.
pub(super) fn quarantine(fs: &dyn Fs, dir: &SessionDir, name: &str, bytes: &[u8]) -> Result<()> {
    let shelf = dir.quarantine();
    super::durable::ensure_dir(fs, &shelf)?;
    write_whole(fs, &shelf.join(name), bytes)?;
    sync_dir(fs, &shelf)
}
