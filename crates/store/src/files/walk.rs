//! Walking through a session's data, from its first event on, until something is wrong.

use cairn_core::digest::Digest;
use cairn_core::event::{DecodeError, Event, Header, Kind};
use cairn_core::format;
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::journal::{self, Frame, Tail};
use cairn_core::manifest::{self, Record};
use cairn_core::pin::{BlobKind, Pin};

use super::durable::read_if_there;
use super::fs::Fs;
use super::head::Witness;
use super::layout::SessionDir;
use super::load::{Found, Journal, Loaded, ManifestTip, Opened, Resident, Segment};
use crate::error::{Error, Result};
use crate::health::{Health, Notice};

/// Why a walk through the data ends early.
enum Stop {
    /// What is there is not what was written.
    Damage(String),
    /// A later version wrote it.
    Version(String),
    /// It could not be read this time, which says nothing about it.
    Failed(Error),
}

impl Stop {
    fn damage(what: impl Into<String>) -> Self {
        Self::Damage(what.into())
    }

    fn version(what: impl Into<String>) -> Self {
        Self::Version(what.into())
    }
}

/// A walk through a session's data, from its first event on.
pub(super) struct Walk {
    session: SessionId,
    /// Where a reader without the lock has to stop.
    limit: Option<u64>,
    /// The next event to come.
    at: u64,
    resident: Resident,
    /// Segments that were validated before, so that they are not read again.
    known: Vec<Segment>,
    /// The last commit that was known before, until it has been met again.
    known_tip: Option<(EventIndex, Digest)>,
    known_epoch: u64,
    manifest_tail: Tail,
    /// A journal's commit ends where the walk is.
    reached: bool,
    torn: bool,
    last_in_journal: bool,
}

impl Walk {
    pub(super) fn new(session: SessionId, known: Option<Resident>, limit: Option<u64>) -> Self {
        let Resident { index, chain, epoch, segments, pins, bytes, needs, .. } =
            known.unwrap_or_default();
        let known_tip = index.last().zip(chain);
        let resident = Resident { index, pins, bytes, needs, ..Resident::default() };
        Self {
            session,
            limit,
            at: 0,
            resident,
            known: segments,
            known_tip,
            known_epoch: epoch,
            manifest_tail: Tail::Clean,
            reached: false,
            torn: false,
            last_in_journal: false,
        }
    }

    /// Walks as far as the data can be trusted; tells also whether the known history is part
    /// of what is there.
    pub(super) fn through(
        mut self,
        fs: &dyn Fs,
        dir: &SessionDir,
        found: Found,
    ) -> Result<(Loaded, bool)> {
        let Found { journals, manifest, witness } = found;
        let walked = self.manifest(fs, dir, &manifest).and_then(|()| self.journals(journals));
        let walked = walked.and_then(|()| self.check_manifest());
        let walked = walked.and_then(|()| self.check_witness(witness));
        let same_history = self.known_tip.is_none();
        let (health, damage) = match walked {
            Ok(()) => (Health::Healthy, None),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Version(what)) => (Health::UnknownVersion, Some(what)),
            Err(Stop::Damage(what)) if self.at == 0 => (Health::CorruptHead, Some(what)),
            Err(Stop::Damage(what)) => (Health::CorruptTail, Some(what)),
        };
        Ok((self.conclude(witness, health, damage), same_history))
    }

    fn manifest(&mut self, fs: &dyn Fs, dir: &SessionDir, bytes: &[u8]) -> Result<(), Stop> {
        let scan = manifest::scan(bytes);
        if scan.records.iter().any(|record| record.session() != self.session) {
            return Err(Stop::damage("a manifest record belongs to another session"));
        }
        let loose_pins: Vec<Pin> = scan.records.iter().filter_map(Record::pin).collect();
        for record in &scan.records {
            self.segment(fs, dir, record, &loose_pins)?;
        }
        let last = scan.records.last();
        self.resident.manifest = ManifestTip {
            end: scan.end as u64,
            next: last.map_or(0, |last| last.index() + 1),
            rec: last.and_then(Record::rec),
            owed_pins: owed_pins(&scan.records),
        };
        self.manifest_tail = scan.tail;
        self.met(scan.needs);
        match scan.tail {
            Tail::UnknownVersion => Err(Stop::version("manifest.jsonl has a later version")),
            Tail::Clean | Tail::Torn | Tail::Damaged => Ok(()),
        }
    }

    /// A broken manifest is a seal that was cut off if a journal still holds what it was
    /// about; journals go only when the manifest is durable. Pin lines are redundant.
    fn check_manifest(&self) -> Result<(), Stop> {
        let whole = match self.manifest_tail {
            Tail::Clean => true,
            Tail::Torn => self.reached || !self.resident.manifest.owed_pins.is_empty(),
            Tail::Damaged | Tail::UnknownVersion => self.reached,
        };
        if whole { Ok(()) } else { Err(Stop::damage("manifest.jsonl is damaged")) }
    }

    fn segment(
        &mut self,
        fs: &dyn Fs,
        dir: &SessionDir,
        record: &Record,
        loose_pins: &[Pin],
    ) -> Result<(), Stop> {
        let Record::SegmentClosed {
            bytes,
            epoch,
            first_event_index: first,
            last_commit,
            last_event_index: last,
            pins,
            segment_rel_path: path,
            sha256,
            ..
        } = record
        else {
            return Ok(());
        };
        let (first, last) = (*first, *last);
        if first.0 != self.at || last < first {
            return Err(Stop::damage(format!("segment {path} does not follow the one before")));
        }
        if *path != manifest::segment_path(first, last) {
            return Err(Stop::damage(format!("segment path {path:?} is not allowed")));
        }
        if epoch.is_some_and(|epoch| epoch < self.resident.epoch) {
            return Err(Stop::damage(format!("the epoch falls at segment {path}")));
        }
        let segment = Segment { first, last, path: path.clone(), sha256: *sha256, bytes: *bytes };
        if !self.known.contains(&segment) || last >= self.resident.index.next() {
            let lines = read_segment(fs, dir, &segment)?;
            let pins = match pins {
                Some(pins) => pins.clone(),
                None => attested_pins(&lines, first, last, loose_pins)?,
            };
            self.events(&lines, first, last, &pins)?;
        }
        let chain = last_commit.or(record.rec());
        self.passed(last, chain, epoch.unwrap_or(self.resident.epoch));
        self.resident.segments.push(segment);
        Ok(())
    }

    fn journals(&mut self, opened: Vec<Opened>) -> Result<(), Stop> {
        if opened.iter().any(|journal| journal.from > 0) {
            self.go_on_from_known();
        }
        let count = opened.len();
        for (place, journal) in opened.into_iter().enumerate() {
            self.journal(journal, place + 1 == count)?;
        }
        Ok(())
    }

    /// Goes to where the known part of the journals ends, unless the manifest led further.
    fn go_on_from_known(&mut self) {
        if let Some((last, chain)) = self.known_tip
            && last.0 >= self.at
        {
            self.passed(last, Some(chain), self.known_epoch);
            (self.reached, self.last_in_journal) = (true, true);
        }
    }

    fn journal(&mut self, opened: Opened, is_last: bool) -> Result<(), Stop> {
        let Opened { name, file, inode, from, mut commits, bytes } = opened;
        let scan = journal::scan(&bytes);
        let (mut start, mut found) = (0, Ok(()));
        for frame in &scan.frames {
            if self.limit.is_some_and(|limit| frame.commit.last.0 >= limit) {
                break;
            }
            found = self.frame(frame);
            if found.is_err() {
                break;
            }
            commits.push((frame.commit.first, from + frame.start as u64));
            start = frame.end;
        }
        let (end, room) = (from + start as u64, from + bytes.len() as u64);
        let behind = bytes.get(start..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0));
        let (writable, named, name_of) = (false, false, name.clone());
        let journal = Journal { name: name_of, file, inode, writable, named, end, room, commits };
        self.resident.journals.push(journal);
        found?;
        if self.limit.is_some() {
            self.torn |= behind;
            return Ok(());
        }
        match scan.tail {
            Tail::Clean | Tail::Torn if is_last => {
                self.torn = behind;
                Ok(())
            }
            Tail::Clean => Ok(()),
            Tail::UnknownVersion => Err(Stop::version(format!("{name} has a later version"))),
            Tail::Torn | Tail::Damaged => {
                let at = from + scan.end() as u64;
                Err(Stop::damage(format!("{name} is damaged at byte {at}")))
            }
        }
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), Stop> {
        let Frame { commit, rec, lines, .. } = frame;
        if commit.last.0 < self.at {
            // Sealed since, or walked through already: a crash came before the journal went.
            let tip = commit.last.0 + 1 == self.at;
            if tip && self.resident.chain.is_some_and(|chain| chain != *rec) {
                return Err(Stop::damage("a journal contradicts what is sealed"));
            }
            self.reached |= tip;
            return Ok(());
        }
        let first = commit.first;
        if first.0 != self.at || commit.prev != self.resident.chain {
            return Err(Stop::damage(format!("the commit of event {first} does not follow")));
        }
        if commit.epoch < self.resident.epoch {
            return Err(Stop::damage(format!("the epoch falls at event {first}")));
        }
        self.events(lines, first, commit.last, &commit.pins)?;
        self.met(frame.needs);
        self.passed(commit.last, Some(*rec), commit.epoch);
        (self.reached, self.last_in_journal) = (true, true);
        Ok(())
    }

    /// Takes in the events that are not known yet.
    fn events(
        &mut self,
        lines: &[u8],
        first: EventIndex,
        last: EventIndex,
        pins: &[Pin],
    ) -> Result<(), Stop> {
        let new = self.resident.index.next();
        let mut at = first;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if at >= new {
                let header = Header::decode(line.trim_ascii_end()).map_err(unreadable(at))?;
                if header.index != at || header.session != self.session {
                    return Err(Stop::damage(format!("event {at} is not the one expected")));
                }
                self.met(header.needs);
                // What a later format adds is carried, whatever it is.
                let unknown = format::is_newer(header.needs).then_some(Kind::Unknown);
                let Some(kind) = Kind::named(&header.kind).or(unknown) else {
                    let kind = header.kind;
                    return Err(Stop::version(format!("event {at} is a {kind:?}")));
                };
                self.resident.index.add(at, &header.dedupe_key, header.scope, kind);
                self.resident.bytes += line.len() as u64;
            }
            at = at.next();
        }
        if at != last.next() {
            return Err(Stop::damage(format!("event {at} is missing")));
        }
        self.resident.pins.extend(pins.iter().filter(|pin| pin.event_index >= new));
        Ok(())
    }

    /// Notes what a part of the data needs.
    fn met(&mut self, needs: u32) {
        self.resident.needs = self.resident.needs.max(needs);
    }

    /// Goes on behind a commit or segment, and looks whether the known history led here too.
    fn passed(&mut self, last: EventIndex, chain: Option<Digest>, epoch: u64) {
        self.at = last.0 + 1;
        self.resident.chain = chain;
        self.resident.epoch = epoch;
        if self.known_tip == Some(last).zip(chain) {
            self.known_tip = None;
        }
    }

    fn check_witness(&self, witness: Witness) -> Result<(), Stop> {
        match witness.head() {
            Some(head) if head.last.0 >= self.at => {
                Err(Stop::damage(format!("event {} was acknowledged and is not there", head.last)))
            }
            Some(head)
                if head.last.0 + 1 == self.at
                    && self.last_in_journal
                    && self.resident.chain != Some(head.rec) =>
            {
                Err(Stop::damage("the last commit is not the one that was acknowledged"))
            }
            _ => Ok(()),
        }
    }

    fn conclude(self, witness: Witness, health: Health, damage: Option<String>) -> Loaded {
        let covered = witness.head().map_or(0, |head| head.last.0 + 1);
        let unreadable = witness == Witness::Unreadable;
        let newer = format::is_newer(self.resident.needs);
        let notices =
            [unreadable.then_some(Notice::HeadIgnored), newer.then_some(Notice::NewerFormat)];
        Loaded {
            torn: self.torn,
            beyond_head: self.last_in_journal && self.at > covered,
            resident: self.resident,
            health,
            damage,
            witness,
            notices: notices.into_iter().flatten().collect(),
        }
    }
}

fn unreadable(at: EventIndex) -> impl FnOnce(DecodeError) -> Stop {
    // The digest vouches for the bytes, so whoever wrote them knew something we do not.
    move |error| Stop::version(format!("event {at}: {error}"))
}

/// A segment's lines, if they are what the manifest attests.
fn read_segment(fs: &dyn Fs, dir: &SessionDir, segment: &Segment) -> Result<Vec<u8>, Stop> {
    let path = &segment.path;
    let lines = read_if_there(fs, &dir.file(path)).map_err(Stop::Failed)?;
    let lines = lines.ok_or_else(|| Stop::damage(format!("segment {path} is missing")))?;
    if lines.len() as u64 != segment.bytes || Digest::of(&lines) != segment.sha256 {
        return Err(Stop::damage(format!("segment {path} is not what was sealed")));
    }
    Ok(lines)
}

/// The pins of a segment whose record names none itself: another writer put them in lines of
/// their own, and a snapshot without such a line means that its append was cut off.
fn attested_pins(
    lines: &[u8],
    first: EventIndex,
    last: EventIndex,
    loose: &[Pin],
) -> Result<Vec<Pin>, Stop> {
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event = Event::decode(line).map_err(unreadable(first))?;
        let snapshots = event.pins().into_iter().filter(|pin| pin.blob_kind == BlobKind::Snapshot);
        if let Some(pin) = snapshots.into_iter().find(|pin| !loose.contains(pin)) {
            let missing = pin.snapshot_ref;
            return Err(Stop::damage(format!("event {} has no pin for {missing}", event.index)));
        }
    }
    Ok(loose.iter().filter(|pin| (first..=last).contains(&pin.event_index)).copied().collect())
}

/// The pin lines that the last sealed segment asks for and that a crash kept from being written.
fn owed_pins(records: &[Record]) -> Vec<Pin> {
    let Some(closed) = records.iter().rposition(|r| matches!(r, Record::SegmentClosed { .. }))
    else {
        return Vec::new();
    };
    let (before, after) = records.split_at(closed + 1);
    let there: Vec<Pin> = after.iter().filter_map(Record::pin).collect();
    match before.last() {
        Some(Record::SegmentClosed { pins: Some(pins), .. }) => {
            pins.iter().filter(|pin| !there.contains(pin)).copied().collect()
        }
        _ => Vec::new(),
    }
}
