//! Sealing: a full journal becomes segments, and the manifest attests them.
//!
//! Commits go on meanwhile, in a new journal. A crash anywhere in here is harmless: what
//! the manifest does not attest is still in the journal, and what it attests is skipped.

use std::io;

use cairn_core::id::{EventIndex, SessionId};
use cairn_core::journal::{self, Frame};
use cairn_core::manifest::{self, Record, Sealed};
use cairn_core::pin;

use super::durable::{
    ensure_dir, failed, quarantine, read_if_there, remove_if_there, replace, sync_dir, sync_file,
    write_whole,
};
use super::fs::{Fs, Open};
use super::layout::{SessionDir, rotated_first, temporary};
use super::load::{ManifestTip, Trust, load};
use super::lock::{self, LockFile};
use crate::error::{Error, Result, require_known};
use crate::health::Health;

/// Seals every journal of a session that is full.
pub(super) fn seal(
    fs: &dyn Fs,
    dir: &SessionDir,
    session: SessionId,
    segment_max: u64,
) -> Result<()> {
    let mut sealing = LockFile::open(fs, dir.seal_lock())?;
    let Some(_held) = sealing.acquire(fs)? else {
        return Err(Error::Locked { session, holder: lock::holder(fs, &dir.seal_lock()) });
    };
    let loaded = load(fs, dir, session, None, Trust::UpToHead)?;
    if loaded.health != Health::Healthy {
        return Err(Error::unhealthy(session, loaded.health, loaded.damage));
    }
    require_known(session, loaded.resident.needs)?;
    let sealed = loaded.resident.sealed();
    let mut seal = Seal { fs, dir, session, tip: loaded.resident.manifest, sealed };
    for journal in loaded.resident.journals {
        if rotated_first(&journal.name).is_some() {
            let path = dir.file(&journal.name);
            let bytes = journal.file.read_to_end_at(0).map_err(failed("reading", &path))?;
            seal.journal(&bytes, segment_max)?;
            remove_if_there(fs, &path)?;
        }
    }
    sync_dir(fs, &dir.path)
}

struct Seal<'a> {
    fs: &'a dyn Fs,
    dir: &'a SessionDir,
    session: SessionId,
    tip: ManifestTip,
    sealed: Option<EventIndex>,
}

impl Seal<'_> {
    fn journal(&mut self, bytes: &[u8], segment_max: u64) -> Result<()> {
        let scan = journal::scan(bytes);
        let open = |frame: &&Frame<'_>| self.sealed.is_none_or(|last| frame.commit.last > last);
        let open: Vec<&Frame<'_>> = scan.frames.iter().filter(open).collect();
        let sealed = scan.frames.iter().take(scan.frames.len() - open.len());
        if let Some(first) = sealed.map(|frame| frame.commit.first).min() {
            self.make_sure(first)?;
        }
        if open.is_empty() {
            return Ok(());
        }
        ensure_dir(self.fs, &self.dir.events())?;
        let mut records = Vec::new();
        for frames in partition(&open, segment_max) {
            records.extend(self.segment(frames)?);
        }
        sync_dir(self.fs, &self.dir.events())?;
        self.attest(records)
    }

    /// Writes a segment; its name is durable only after the directory's sync. Gives its records.
    fn segment(&self, frames: &[&Frame<'_>]) -> Result<Vec<Record>> {
        let lines: Vec<u8> = frames.iter().flat_map(|frame| frame.lines).copied().collect();
        let pins = pin::once(frames.iter().flat_map(|frame| &frame.commit.pins).copied());
        let (Some(first), Some(last)) = (frames.first(), frames.last()) else {
            return Ok(Vec::new());
        };
        let commit = Some((last.rec, last.commit.epoch));
        let (first, last) = (first.commit.first, last.commit.last);
        self.place_segment(&manifest::segment_path(first, last), &lines)?;
        let segment = Sealed { first, last, lines: &lines, pins: &pins, commit };
        Ok(Record::of(&segment, self.session).collect())
    }

    fn place_segment(&self, rel_path: &str, lines: &[u8]) -> Result<()> {
        let path = self.dir.file(rel_path);
        let temporary = temporary(&path);
        write_whole(self.fs, &temporary, lines)?;
        match self.fs.rename_new(&temporary, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Nothing attests it, so a seal that was cut off left it there.
                if let Some(orphan) = read_if_there(self.fs, &path)? {
                    let name = rel_path.replace('/', "-");
                    quarantine(self.fs, self.dir, &name, &orphan)?;
                }
                self.fs.rename(&temporary, &path).map_err(failed("renaming to", &path))
            }
            placed => placed.map_err(failed("renaming to", &path)),
        }
    }

    /// Attests segments: one write, one sync.
    fn attest(&mut self, records: Vec<Record>) -> Result<()> {
        let (mut tip, mut sealed, mut lines) = (self.tip.clone(), self.sealed, Vec::new());
        let owed = std::mem::take(&mut tip.owed_pins);
        let owed = owed.iter().map(|pin| Record::pinned(pin, self.session));
        for record in owed.chain(records) {
            if let Record::SegmentClosed { last_event_index, .. } = &record {
                sealed = Some(*last_event_index);
            }
            let (record, rec) = record.placed(tip.next).chained(tip.rec)?;
            lines.extend_from_slice(&record.encode()?);
            (tip.next, tip.rec) = (tip.next + 1, Some(rec));
        }
        self.append_manifest(&lines)?;
        tip.end += lines.len() as u64;
        (self.tip, self.sealed) = (tip, sealed);
        Ok(())
    }

    fn append_manifest(&self, lines: &[u8]) -> Result<()> {
        let path = self.dir.manifest();
        let is_new = self.fs.stat(&path).is_err();
        let file = self.fs.open(&path, Open::Create).map_err(failed("opening", &path))?;
        let cut = || file.set_len(self.tip.end).and_then(|()| file.sync());
        if file.stat().map_err(failed("reading", &path))?.len > self.tip.end {
            let torn = file.read_to_end_at(self.tip.end).map_err(failed("reading", &path))?;
            let name = format!("manifest.jsonl-{}", self.tip.end);
            quarantine(self.fs, self.dir, &name, &torn)?;
            cut().map_err(super::durable::not_durable(&path))?;
        }
        if let Err(error) = file.write_all_at(lines, self.tip.end) {
            cut().map_err(super::durable::not_durable(&path))?;
            return Err(failed("writing", &path)(error));
        }
        sync_file(&*file, &path)?;
        if is_new { sync_dir(self.fs, &self.dir.path) } else { Ok(()) }
    }

    /// A seal was cut off after it attested, and what it wrote may not be durable: write the
    /// same bytes again before the journal goes.
    fn make_sure(&self, first: EventIndex) -> Result<()> {
        let path = self.dir.manifest();
        // It attests what was sealed, so it has to be there: an empty one would forget it all.
        let manifest = self.fs.read(&path).map_err(failed("reading", &path))?;
        let scan = manifest::scan(&manifest);
        for record in &scan.records {
            if let Record::SegmentClosed { last_event_index, segment_rel_path, .. } = record
                && *last_event_index >= first
            {
                let path = self.dir.file(segment_rel_path);
                let lines = self.fs.read(&path).map_err(failed("reading", &path))?;
                replace(self.fs, &path, &lines)?;
            }
        }
        let whole = manifest.get(..scan.end).ok_or_else(|| {
            let what = Some("manifest.jsonl is shorter than its records".to_owned());
            Error::unhealthy(self.session, Health::CorruptTail, what)
        })?;
        replace(self.fs, &path, whole)
    }
}

/// Splits commits into segments of at most so many bytes; a larger commit is one by itself.
fn partition<'a, 'b>(frames: &'b [&'a Frame<'a>], max: u64) -> Vec<&'b [&'a Frame<'a>]> {
    let mut segments = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (place, frame) in frames.iter().enumerate() {
        let len = frame.lines.len() as u64;
        if place > start && size + len > max {
            segments.extend(frames.get(start..place));
            (start, size) = (place, 0);
        }
        size += len;
    }
    segments.extend(frames.get(start..).filter(|rest| !rest.is_empty()));
    segments
}
