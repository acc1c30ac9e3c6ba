//! One session on disk: what this process knows of it, and how it is read.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::journal;

use super::Config;
use super::changes::Changes;
use super::durable::failed;
use super::fs::Fs;
use super::head::{self, HeadFile, Witness};
use super::layout::SessionDir;
use super::load::{Journal, Resident, Segment, Trust, load};
use super::lock::{self, LockFile};
use super::writer::{Access, Writer};
use crate::error::{Error, Result};
use crate::health::{Health, Notice};

/// A session, and what this process knows of it.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) dir: SessionDir,
    pub(super) fs: Arc<dyn Fs>,
    config: Config,
    changes: Option<Arc<Changes>>,
    lock: Option<LockFile>,
    head: Option<HeadFile>,
    pub(super) state: State,
}

/// What a process knows of a session.
#[derive(Default)]
pub(super) struct State {
    pub(super) resident: Option<Resident>,
    /// What is known is sound: a damaged session's prefix may be shown, never gone on from.
    pub(super) sound: bool,
    pub(super) notices: Vec<Notice>,
    /// Why this process may not write any more.
    pub(super) poison: Option<Error>,
    /// This process's own last commit: while it is the last of all, the epoch stays.
    pub(super) own_last: Option<Digest>,
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
    pub(super) fn new(
        fs: Arc<dyn Fs>,
        config: &Config,
        changes: Option<Arc<Changes>>,
        dir: SessionDir,
        id: SessionId,
    ) -> Self {
        let config = config.clone();
        Self { id, dir, fs, config, changes, lock: None, head: None, state: State::default() }
    }

    /// Takes the lock, brings what is known up to date, and mends what a crash left behind.
    pub(super) fn write(&mut self) -> Result<Writer<'_>> {
        self.write_with(Patience::Some)
    }

    fn write_with(&mut self, patience: Patience) -> Result<Writer<'_>> {
        if let Some(poison) = &self.state.poison {
            return Err(poison.clone());
        }
        let Self { id, dir, fs, config, changes, lock, head, state } = self;
        // Without its directory there is no session, whether it never was or is gone by now.
        let unless_gone = |error| match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Error::NotFound(*id)
            }
            error => error,
        };
        let lock = match lock {
            Some(lock) => lock,
            None => lock.insert(LockFile::open(&**fs, dir.lock()).map_err(unless_gone)?),
        };
        let held = match patience {
            Patience::Some => lock.acquire(&**fs),
            Patience::None => lock.try_acquire(&**fs),
        };
        let held = held.map_err(unless_gone)?;
        let Some(held) = held else {
            return Err(Error::Locked { session: *id, holder: lock::holder(&**fs, &dir.lock()) });
        };
        let changes = changes.as_deref();
        Writer::begin(Access { id: *id, dir, fs: &**fs, config, changes, head, state }, held)
    }

    /// Brings what is known up to date without the lock, as far as that can be trusted.
    ///
    /// Whatever looks wrong from here may be a writer at work: only the lock's holder may
    /// call it damage, so then the lock is taken if it is free.
    pub(super) fn look(&mut self) -> Result<View<'_>> {
        if self.is_current() {
            return self.view(Health::Healthy, None);
        }
        for _ in 0..LOOKS {
            let (look, seen) = self.load_up_to_head()?;
            match look {
                Look::Whole => return self.view(Health::Healthy, None),
                // The witness moves: somebody is writing, and will settle what is behind it.
                Look::Partial if head::read(&*self.fs, &self.dir)? != seen => {
                    return self.view(Health::Healthy, None);
                }
                Look::Partial | Look::Unsure => {}
            }
            match self.write_with(Patience::None).map(|_| ()) {
                Ok(()) => return self.view(Health::Healthy, None),
                Err(Error::Corrupt { .. } | Error::UnknownVersion { .. }) => return self.salvage(),
                // Nobody mends what a later version left, and what is durable can be read.
                Err(Error::Newer { .. }) => {
                    return match self.load_up_to_head()?.0 {
                        Look::Unsure => self.salvage(),
                        Look::Whole | Look::Partial => self.view(Health::Healthy, None),
                    };
                }
                // The witness is up to date while a writer is at work, and where this process
                // has written itself. Anywhere else it may be behind what was acknowledged.
                Err(error) => {
                    let busy = matches!(error, Error::Locked { .. });
                    if (busy || self.head.is_some()) && self.load_up_to_head()?.0 != Look::Unsure {
                        return self.view(Health::Healthy, None);
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

    fn load_up_to_head(&mut self) -> Result<(Look, Witness)> {
        let known = self.state.take_known();
        let loaded = load(&*self.fs, &self.dir, self.id, known, Trust::UpToHead)?;
        let look = match loaded.health {
            // Without a witness nothing says how far a commit that is under way reaches.
            Health::Healthy if loaded.torn && loaded.witness.head().is_none() => Look::Unsure,
            Health::Healthy if loaded.torn => Look::Partial,
            Health::Healthy => Look::Whole,
            _ => Look::Unsure,
        };
        self.state.sound = look != Look::Unsure;
        self.state.resident = Some(loaded.resident);
        self.state.notices = loaded.notices;
        Ok((look, loaded.witness))
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
        self.state.notices = loaded.notices;
        self.view(loaded.health, loaded.damage)
    }

    fn view(&self, health: Health, damage: Option<String>) -> Result<View<'_>> {
        Ok(View { resident: self.resident()?, health, damage })
    }

    /// What is known. Whoever has not looked yet knows nothing.
    fn resident(&self) -> Result<&Resident> {
        self.state.resident.as_ref().ok_or(Error::NotFound(self.id))
    }

    /// Reads the events from one to another.
    pub(super) fn events(&self, from: EventIndex, through: EventIndex) -> Result<Vec<Event>> {
        let resident = self.resident()?;
        let mut events = Vec::new();
        let wanted = from..=through;
        let has_some = |segment: &&Segment| segment.last >= from && segment.first <= through;
        for segment in resident.segments.iter().filter(has_some) {
            let path = self.dir.file(&segment.path);
            let lines = self.fs.read(&path).map_err(failed("reading", &path))?;
            if Digest::of(&lines) != segment.sha256 {
                return Err(
                    self.corrupt(format!("segment {} is not what was sealed", segment.path))
                );
            }
            self.decode(&lines, &wanted, &mut events)?;
        }
        for journal in &resident.journals {
            self.journal_events(journal, &wanted, &mut events)?;
        }
        Ok(events)
    }

    fn journal_events(
        &self,
        journal: &Journal,
        wanted: &RangeInclusive<EventIndex>,
        events: &mut Vec<Event>,
    ) -> Result<()> {
        let (from, through) = (*wanted.start(), *wanted.end());
        let from = events.last().map_or(from, |last| last.index.next().max(from));
        let behind = |event| journal.commits.partition_point(|(first, _)| *first <= event);
        let Some((_, start)) = journal.commits.get(behind(from).saturating_sub(1)) else {
            return Ok(());
        };
        let end = journal.commits.get(behind(through)).map_or(journal.end, |(_, start)| *start);
        let path = self.dir.file(&journal.name);
        let bytes = journal.file.read_range(*start, end).map_err(failed("reading", &path))?;
        let scan = journal::scan(&bytes);
        if scan.end() != bytes.len() {
            return Err(self.corrupt(format!("{} is not what was written", journal.name)));
        }
        let wanted = from..=through;
        for frame in scan.frames.iter().filter(|frame| frame.commit.last >= from) {
            self.decode(frame.lines, &wanted, events)?;
        }
        Ok(())
    }

    fn decode(
        &self,
        lines: &[u8],
        wanted: &RangeInclusive<EventIndex>,
        events: &mut Vec<Event>,
    ) -> Result<()> {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event = Event::decode(line).map_err(|error| Error::UnknownVersion {
                session: self.id,
                what: error.to_string(),
            })?;
            if wanted.contains(&event.index) {
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

impl State {
    /// What is known, to go on from.
    pub(super) fn take_known(&mut self) -> Option<Resident> {
        self.resident.take().filter(|_| self.sound)
    }

    /// A failed sync cannot be tried again: this process stops writing to the session.
    pub(super) fn poison_on(&mut self, error: &Error) {
        if matches!(error, Error::DurabilityLost { .. }) {
            self.poison = Some(error.clone());
        }
    }
}
