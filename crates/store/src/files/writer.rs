//! Writing to a session: commit and recovery.
//!
//! A [`Writer`] is the witness that the lock is held and the data sound. Committing needs
//! one, [`Writer::begin`] is the only way to one, and it cannot outlive the lock.

use std::path::Path;
use std::sync::Arc;

use cairn_core::id::{EventIndex, SessionId};
use cairn_core::journal::Commit;
use cairn_core::pin;

use super::changes::Changes;
use super::durable::{failed, not_durable, quarantine, replace, sync_dir, sync_file, sync_parent};
use super::fs::{Fs, Open};
use super::head::{Head, HeadFile, Witness};
use super::layout::{JOURNAL, SessionDir, rotated_journal};
use super::load::{Journal, Loaded, Resident, Trust, load};
use super::lock::Held;
use super::session::State;
use super::{Config, epoch};
use crate::admit::{Admission, Admitted, Prepared};
use crate::error::{Error, Result, require_known};
use crate::fence::Epoch;
use crate::health::{Health, Notice};
use crate::plan::Appended;

/// What a writer writes to.
pub(super) struct Access<'a> {
    pub(super) id: SessionId,
    pub(super) dir: &'a SessionDir,
    pub(super) fs: &'a dyn Fs,
    pub(super) config: &'a Config,
    pub(super) changes: Option<&'a Changes>,
    pub(super) head: &'a mut Option<HeadFile>,
    pub(super) state: &'a mut State,
}

/// The proof that a session's lock is held and its data healthy: without one nothing is written.
pub(super) struct Writer<'a> {
    to: Access<'a>,
    /// What is known of the session; it goes back to the session when the writer goes.
    resident: Resident,
    _held: Held<'a>,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.to.state.resident = Some(std::mem::take(&mut self.resident));
    }
}

impl Access<'_> {
    /// What is known of the session, up to date and sound.
    fn prepare(&mut self, held: &Held<'_>) -> Result<Resident> {
        // Whoever else changed something signed before. Asking the journal's own file would make
        // the system note when it changed with each commit, and write that down each time.
        let is_open = |known: &Resident| known.active().is_some_and(|journal| journal.writable);
        let known = match self.state.take_known() {
            Some(known) if is_open(&known) && self.head.is_some() && held.took_last() => {
                return Ok(known);
            }
            known => known,
        };
        held.sign()?;
        let loaded = load(self.fs, self.dir, self.id, known, Trust::Everything)?;
        match loaded.health {
            Health::Healthy => {
                require_known(self.id, loaded.resident.needs)?;
                self.settle(loaded)
            }
            health => Err(Error::unhealthy(self.id, health, loaded.damage)),
        }
    }

    /// Sets aside what never was, and makes sure of what may not be durable yet.
    fn settle(&mut self, loaded: Loaded) -> Result<Resident> {
        let Loaded { mut resident, witness, mut notices, torn, beyond_head, .. } = loaded;
        resident.index.ownership = epoch::ownership(self.fs, self.dir, self.id, resident.epoch)?;
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
            // Readers who cannot be told that there is more trust less than they could.
            && self.changes.is_none_or(|changes| changes.announce(self.id, last).is_ok())
        {
            head.write(Head { last, rec });
        }
        *self.head = Some(head);
        self.state.sound = true;
        self.state.notices = notices;
        Ok(resident)
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
        let bytes = journal.file.read_range(0, journal.end).map_err(failed("reading", &path))?;
        if bytes.len() as u64 != journal.end {
            let what = Some(format!("{} is shorter than its commits", journal.name));
            return Err(Error::unhealthy(self.id, Health::CorruptTail, what));
        }
        replace(self.fs, &path, &bytes)
    }
}

impl<'a> Writer<'a> {
    /// Proves with the lock that nobody else writes, and by looking that the data is sound;
    /// mends what a crash left behind.
    pub(super) fn begin(mut to: Access<'a>, held: Held<'a>) -> Result<Self> {
        match to.prepare(&held) {
            Ok(resident) => Ok(Self { to, resident, _held: held }),
            Err(error) => {
                to.state.poison_on(&error);
                Err(error)
            }
        }
    }

    /// Compares an epoch with the session's own.
    pub(super) fn check_epoch(&self, held: Epoch) -> Result<()> {
        self.resident.index.ownership.check(self.to.id, held)
    }

    /// Raises the epoch for a new owner. Durable when this returns.
    pub(super) fn raise_epoch(&mut self) -> Result<Epoch> {
        if self.resident.index.last().is_none() {
            return Err(Error::NotFound(self.to.id));
        }
        let raised = self.resident.index.ownership.raised();
        let written = epoch::write(self.to.fs, self.to.dir, raised.epoch);
        if let Err(error) = &written {
            self.poison_on(error);
            // The file may hold the new epoch all the same.
            self.to.state.sound = false;
        }
        written?;
        self.resident.index.ownership = raised;
        Ok(raised.epoch)
    }

    /// Commits the plans that can be committed, as one; answers each.
    pub(super) fn commit(&mut self, plans: &[Prepared]) -> Vec<Result<Appended>> {
        let index = &self.resident.index;
        let mut batch = Admitted::on(index);
        let admissions: Vec<Result<Admission>> =
            plans.iter().map(|plan| batch.admit(index, plan)).collect();
        let fresh = admissions.iter().zip(plans).filter_map(|(admission, plan)| match admission {
            Ok(Admission::Append(at)) => Some((at.first, plan)),
            _ => None,
        });
        let fresh: Vec<(EventIndex, &Prepared)> = fresh.collect();
        let first = fresh.first().map(|(first, _)| *first);
        let written = first.map_or(Ok(()), |first| self.write_commit(first, &fresh, batch));
        if let Err(error) = &written {
            self.poison_on(error);
        }
        let session_bytes = self.resident.bytes;
        let answer = |admission| match admission {
            // A replay of something in this very batch is as good as the batch.
            Ok(Admission::Append(at) | Admission::Replay(at)) => {
                written.clone().map(|()| Appended { session_bytes, ..at })
            }
            Err(error) => Err(error),
        };
        admissions.into_iter().map(answer).collect()
    }

    fn write_commit(
        &mut self,
        first: EventIndex,
        plans: &[(EventIndex, &Prepared)],
        batch: Admitted,
    ) -> Result<()> {
        let (mut bytes, mut pins, mut last) = (Vec::new(), Vec::new(), first);
        for (start, plan) in plans {
            for (event, at) in plan.events.iter().zip(start.0..) {
                last = EventIndex(at);
                event.write(last, &mut bytes);
                pins.extend(event.pins(last));
            }
        }
        let added = bytes.len() as u64;
        let epoch = self.next_epoch();
        let pins = pin::once(pins);
        let commit = Commit { epoch: epoch.0, first, last, pins, prev: self.resident.chain };
        let rec = commit.close(&mut bytes)?;
        self.to.changes.map_or(Ok(()), |changes| changes.announce(self.to.id, last))?;
        self.write_journal(first, &bytes)?;
        let resident = &mut self.resident;
        resident.index.join(batch);
        resident.index.ownership.epoch = epoch;
        resident.pins.extend(commit.pins);
        resident.bytes += added;
        resident.chain = Some(rec);
        resident.epoch = epoch.0;
        self.to.state.own_last = Some(rec);
        if let Some(head) = self.to.head.as_mut() {
            head.write(Head { last, rec });
            if self.to.config.strict && !head.sync() {
                let source = Arc::new(std::io::Error::other("the witness could not be synced"));
                return Err(Error::DurabilityLost { path: self.to.dir.head(), source });
            }
        }
        // It is recorded: a line that cannot be repeated makes nobody doubt it.
        let _ = self.to.changes.map(|changes| changes.confirm(self.to.id, last));
        Ok(())
    }

    /// The epoch of a commit. In a session that never had an owner it rises whenever somebody
    /// else wrote last; once there was one, acquiring alone raises it.
    fn next_epoch(&self) -> Epoch {
        let (last, ownership) = (self.resident.chain, self.resident.index.ownership);
        let others = last.is_some() && last != self.to.state.own_last;
        if others && !ownership.acquired { ownership.epoch.next() } else { ownership.epoch }
    }

    /// The commit point: one write at the acknowledged length and one sync.
    fn write_journal(&mut self, first: EventIndex, bytes: &[u8]) -> Result<()> {
        let (fs, dir, path) = (self.to.fs, self.to.dir, self.to.dir.journal());
        if self.resident.active().is_none() {
            let journal = self.new_journal(&path)?;
            self.resident.journals.push(journal);
        }
        let Some(journal) = self.resident.active_mut() else {
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
        let file = self.to.fs.open(path, Open::CreateNew).map_err(failed("making", path))?;
        let inode = file.stat().map_err(failed("reading", path))?.inode;
        let name = JOURNAL.to_owned();
        let commits = Vec::new();
        Ok(Journal { name, file, inode, writable: true, named: false, end: 0, room: 0, commits })
    }

    /// Whether the journal is so long that it should be sealed.
    pub(super) fn is_full(&mut self) -> bool {
        let max = self.to.config.journal_max;
        self.resident.active().is_some_and(|journal| journal.end >= max)
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
        let (fs, dir) = (self.to.fs, self.to.dir);
        let Some(journal) = self.resident.active_mut() else { return Ok(()) };
        let Some((first, _)) = journal.commits.first() else { return Ok(()) };
        let name = rotated_journal(first.0);
        let path = dir.file(&name);
        fs.rename_new(&dir.journal(), &path).map_err(failed("renaming to", &path))?;
        journal.name = name;
        sync_dir(fs, &dir.path)
    }

    fn poison_on(&mut self, error: &Error) {
        self.to.state.poison_on(error);
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
    // A journal longer than memory can hold gets as much room as any long one.
    let room = usize::try_from(journal.end).unwrap_or(ROOM_MAX).clamp(ROOM_MIN, ROOM_MAX);
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len() + room, 0);
    match write_or_cut(journal, &padded, path) {
        // The room is not worth failing for.
        Err(Error::Full { .. }) => write_or_cut(journal, bytes, path),
        written => written,
    }
}

const ROOM_MIN: usize = 4 << 10;
const ROOM_MAX: usize = 1 << 20;

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
