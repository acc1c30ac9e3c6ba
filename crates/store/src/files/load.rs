//! Loading a session: the decision table.
//!
//! Sealed segments come first, as the manifest attests them, then the journals' commits,
//! each vouched for by its digest and by the one before. What is behind the last whole
//! commit never was, unless the witness says that it was acknowledged.

use std::io;

use cairn_core::digest::Digest;
use cairn_core::event::{DecodeError, Event, Header, Kind};
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::journal::{self, Frame, Tail};
use cairn_core::manifest::{self, Record};
use cairn_core::pin::{BlobKind, Pin};

use super::durable::{failed, read_if_there};
use super::fs::{File, Fs, Open};
use super::head::{self, Witness};
use super::layout::{JOURNAL, SessionDir, rotated_first};
use crate::admit::Index;
use crate::error::{Error, Result};
use crate::health::{Health, Notice};

/// What a process knows of a session. Everything in it was validated once.
#[derive(Default)]
pub(super) struct Resident {
    pub(super) index: Index,
    /// The digest that the next commit has to name.
    pub(super) chain: Option<Digest>,
    pub(super) epoch: u64,
    pub(super) segments: Vec<Segment>,
    pub(super) manifest: ManifestTip,
    pub(super) journals: Vec<Journal>,
    pub(super) pins: Vec<Pin>,
    /// How many bytes the events' lines have.
    pub(super) bytes: u64,
}

/// A sealed segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) first: EventIndex,
    pub(super) last: EventIndex,
    pub(super) path: String,
    pub(super) sha256: Digest,
    pub(super) bytes: u64,
}

/// Where a manifest ends and what its next record has to name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ManifestTip {
    pub(super) end: u64,
    pub(super) next: u64,
    pub(super) rec: Option<Digest>,
    /// Pins of the last segment that have no line of their own yet.
    pub(super) owed_pins: Vec<Pin>,
}

/// A journal, held open.
pub(super) struct Journal {
    pub(super) name: String,
    pub(super) file: Box<dyn File>,
    pub(super) inode: u64,
    /// Whether it was opened to write.
    pub(super) writable: bool,
    /// Whether its name is known to be durable.
    pub(super) named: bool,
    /// Where its whole commits end.
    pub(super) end: u64,
    /// Where the file ends: behind that, room for commits to come.
    pub(super) room: u64,
    /// The first event of each commit, and where the commit starts.
    pub(super) commits: Vec<(EventIndex, u64)>,
}

impl Resident {
    /// The journal that commits go to, if there is one.
    pub(super) fn active(&self) -> Option<&Journal> {
        self.journals.last().filter(|journal| journal.name == JOURNAL)
    }

    pub(super) fn active_mut(&mut self) -> Option<&mut Journal> {
        self.journals.last_mut().filter(|journal| journal.name == JOURNAL)
    }

    /// The last event that is sealed.
    pub(super) fn sealed(&self) -> Option<EventIndex> {
        self.segments.last().map(|segment| segment.last)
    }
}

/// How far whoever loads may trust what it finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trust {
    /// It holds the lock: nobody is in the middle of a commit.
    Everything,
    /// Somebody may be: only what the witness covers is durable for sure.
    UpToHead,
}

/// What loading found.
pub(super) struct Loaded {
    pub(super) resident: Resident,
    pub(super) health: Health,
    pub(super) damage: Option<String>,
    pub(super) witness: Witness,
    pub(super) notices: Vec<Notice>,
    /// Bytes stand behind the last whole commit.
    pub(super) torn: bool,
    /// Whole commits stand behind what the witness covers.
    pub(super) beyond_head: bool,
}

/// Where and how the data stops being trustworthy.
struct Damage {
    unknown_version: bool,
    what: String,
}

impl Damage {
    fn new(what: impl Into<String>) -> Self {
        Self { unknown_version: false, what: what.into() }
    }

    fn version(what: impl Into<String>) -> Self {
        Self { unknown_version: true, what: what.into() }
    }
}

/// Loads a session, going on from what is known of it.
pub(super) fn load(
    fs: &dyn Fs,
    dir: &SessionDir,
    session: SessionId,
    known: Option<Resident>,
    trust: Trust,
) -> Result<Loaded> {
    let went_on = known.is_some();
    let (loaded, same_history) = walk_through(fs, dir, session, known, trust)?;
    if went_on && !same_history {
        // The session was put in another's place, or its tail is gone: start from nothing.
        return Ok(walk_through(fs, dir, session, None, trust)?.0);
    }
    Ok(loaded)
}

fn walk_through(
    fs: &dyn Fs,
    dir: &SessionDir,
    session: SessionId,
    known: Option<Resident>,
    trust: Trust,
) -> Result<(Loaded, bool)> {
    // Journals are opened before the manifest is read: one that is sealed and removed in
    // between can still be read through its open file.
    let opened = open_journals(fs, dir, session)?;
    let witness = head::read(fs, dir)?;
    let manifest = read_if_there(fs, &dir.manifest())?.unwrap_or_default();
    let limit = match trust {
        Trust::Everything => None,
        Trust::UpToHead => Some(witness.head().map_or(0, |head| head.last.0 + 1)),
    };
    let mut walk = Walk::new(session, known, limit);
    let found = walk.manifest(fs, dir, &manifest).and_then(|()| walk.journals(opened));
    let found = found.and_then(|()| walk.check_manifest());
    let found = found.and_then(|()| walk.check_witness(witness));
    let same_history = walk.known_tip.is_none();
    Ok((walk.conclude(witness, found.err()), same_history))
}

/// Opens the journals there are, the oldest first.
fn open_journals(fs: &dyn Fs, dir: &SessionDir, session: SessionId) -> Result<Vec<Opened>> {
    for tries_left in (0..OPEN_TRIES).rev() {
        let names = match fs.read_dir(&dir.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NotFound(session));
            }
            names => names.map_err(failed("reading", &dir.path))?,
        };
        let mut rotated: Vec<u64> = names.iter().filter_map(|name| rotated_first(name)).collect();
        rotated.sort_unstable();
        let rotated = rotated.into_iter().map(super::layout::rotated_journal);
        let active = names.iter().filter(|name| *name == JOURNAL).cloned();
        let opened = rotated.chain(active).map(|name| open_journal(fs, dir, name)).collect();
        match opened {
            // It was sealed, or ended, after its name was read.
            Err(Error::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound && tries_left > 0 => {}
            opened => return opened,
        }
    }
    Ok(Vec::new())
}

/// How often journals may vanish between listing and opening them: each does so once.
const OPEN_TRIES: usize = 16;

fn open_journal(fs: &dyn Fs, dir: &SessionDir, name: String) -> Result<Opened> {
    let path = dir.file(&name);
    let file = fs.open(&path, Open::Read).map_err(failed("opening", &path))?;
    let bytes = file.read_to_end_at(0).map_err(failed("reading", &path))?;
    let inode = file.stat().map_err(failed("reading", &path))?.inode;
    Ok(Opened { name, file, inode, bytes })
}

struct Opened {
    name: String,
    file: Box<dyn File>,
    inode: u64,
    bytes: Vec<u8>,
}

/// A walk through a session's data, from its first event on.
struct Walk {
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
    manifest_tail: Tail,
    /// A journal's commit ends where the walk is.
    reached: bool,
    torn: bool,
    last_in_journal: bool,
}

impl Walk {
    fn new(session: SessionId, known: Option<Resident>, limit: Option<u64>) -> Self {
        let Resident { index, chain, segments, pins, bytes, .. } = known.unwrap_or_default();
        let known_tip = index.last().zip(chain);
        let resident = Resident { index, pins, bytes, ..Resident::default() };
        Self {
            session,
            limit,
            at: 0,
            resident,
            known: segments,
            known_tip,
            manifest_tail: Tail::Clean,
            reached: false,
            torn: false,
            last_in_journal: false,
        }
    }

    fn manifest(&mut self, fs: &dyn Fs, dir: &SessionDir, bytes: &[u8]) -> Result<(), Damage> {
        let scan = manifest::scan(bytes);
        if scan.records.iter().any(|record| record.session() != self.session) {
            return Err(Damage::new("a manifest record belongs to another session"));
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
        match scan.tail {
            Tail::UnknownVersion => Err(Damage::version("manifest.jsonl has a later version")),
            Tail::Clean | Tail::Torn | Tail::Damaged => Ok(()),
        }
    }

    /// A broken manifest is a seal that was cut off if a journal still holds what it was
    /// about; journals go only when the manifest is durable. Pin lines are redundant.
    fn check_manifest(&self) -> Result<(), Damage> {
        let whole = match self.manifest_tail {
            Tail::Clean => true,
            Tail::Torn => self.reached || !self.resident.manifest.owed_pins.is_empty(),
            Tail::Damaged | Tail::UnknownVersion => self.reached,
        };
        if whole { Ok(()) } else { Err(Damage::new("manifest.jsonl is damaged")) }
    }

    fn segment(
        &mut self,
        fs: &dyn Fs,
        dir: &SessionDir,
        record: &Record,
        loose_pins: &[Pin],
    ) -> Result<(), Damage> {
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
            return Err(Damage::new(format!("segment {path} does not follow the one before")));
        }
        if *path != manifest::segment_path(first, last) {
            return Err(Damage::new(format!("segment path {path:?} is not allowed")));
        }
        if epoch.is_some_and(|epoch| epoch < self.resident.epoch) {
            return Err(Damage::new(format!("the epoch falls at segment {path}")));
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

    fn journals(&mut self, opened: Vec<Opened>) -> Result<(), Damage> {
        let count = opened.len();
        for (place, journal) in opened.into_iter().enumerate() {
            self.journal(journal, place + 1 == count)?;
        }
        Ok(())
    }

    fn journal(&mut self, opened: Opened, is_last: bool) -> Result<(), Damage> {
        let Opened { name, file, inode, bytes } = opened;
        let scan = journal::scan(&bytes);
        let (mut end, mut commits, mut found) = (0, Vec::new(), Ok(()));
        for frame in &scan.frames {
            if self.limit.is_some_and(|limit| frame.commit.last.0 >= limit) {
                break;
            }
            found = self.frame(frame);
            if found.is_err() {
                break;
            }
            commits.push((frame.commit.first, frame.start as u64));
            end = frame.end as u64;
        }
        let (start, room) = (usize::try_from(end).unwrap_or_default(), bytes.len() as u64);
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
            Tail::UnknownVersion => Err(Damage::version(format!("{name} has a later version"))),
            Tail::Torn | Tail::Damaged => {
                Err(Damage::new(format!("{name} is damaged at byte {}", scan.end())))
            }
        }
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), Damage> {
        let Frame { commit, rec, lines, .. } = frame;
        if commit.last.0 < self.at {
            // Sealed since, or walked through already: a crash came before the journal went.
            let tip = commit.last.0 + 1 == self.at;
            if tip && self.resident.chain.is_some_and(|chain| chain != *rec) {
                return Err(Damage::new("a journal contradicts what is sealed"));
            }
            self.reached |= tip;
            return Ok(());
        }
        let first = commit.first;
        if first.0 != self.at || commit.prev != self.resident.chain {
            return Err(Damage::new(format!("the commit of event {first} does not follow")));
        }
        if commit.epoch < self.resident.epoch {
            return Err(Damage::new(format!("the epoch falls at event {first}")));
        }
        self.events(lines, first, commit.last, &commit.pins)?;
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
    ) -> Result<(), Damage> {
        let new = self.resident.index.next();
        let mut at = first;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if at >= new {
                let header = Header::decode(line.trim_ascii_end()).map_err(unreadable(at))?;
                if header.index != at || header.session != self.session {
                    return Err(Damage::new(format!("event {at} is not the one expected")));
                }
                if Kind::named(&header.kind).is_none() {
                    let kind = header.kind;
                    return Err(Damage::version(format!("event {at} is a {kind:?}")));
                }
                self.resident.index.add(at, &header.dedupe_key, header.scope);
                self.resident.bytes += line.len() as u64;
            }
            at = at.next();
        }
        if at != last.next() {
            return Err(Damage::new(format!("event {at} is missing")));
        }
        self.resident.pins.extend(pins.iter().filter(|pin| pin.event_index >= new));
        Ok(())
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

    fn check_witness(&self, witness: Witness) -> Result<(), Damage> {
        match witness.head() {
            Some(head) if head.last.0 >= self.at => {
                Err(Damage::new(format!("event {} was acknowledged and is not there", head.last)))
            }
            Some(head)
                if head.last.0 + 1 == self.at
                    && self.last_in_journal
                    && self.resident.chain != Some(head.rec) =>
            {
                Err(Damage::new("the last commit is not the one that was acknowledged"))
            }
            _ => Ok(()),
        }
    }

    fn conclude(self, witness: Witness, damage: Option<Damage>) -> Loaded {
        let covered = witness.head().map_or(0, |head| head.last.0 + 1);
        let health = match &damage {
            None => Health::Healthy,
            Some(damage) if damage.unknown_version => Health::UnknownVersion,
            Some(_) if self.at == 0 => Health::CorruptHead,
            Some(_) => Health::CorruptTail,
        };
        let unreadable = witness == Witness::Unreadable;
        Loaded {
            torn: self.torn,
            beyond_head: self.last_in_journal && self.at > covered,
            resident: self.resident,
            health,
            damage: damage.map(|damage| damage.what),
            witness,
            notices: unreadable.then_some(Notice::HeadIgnored).into_iter().collect(),
        }
    }
}

fn unreadable(at: EventIndex) -> impl FnOnce(DecodeError) -> Damage {
    // The digest vouches for the bytes, so whoever wrote them knew something we do not.
    move |error| Damage::version(format!("event {at}: {error}"))
}

/// A segment's lines, if they are what the manifest attests.
fn read_segment(fs: &dyn Fs, dir: &SessionDir, segment: &Segment) -> Result<Vec<u8>, Damage> {
    let path = &segment.path;
    let lines = fs
        .read(&dir.file(path))
        .map_err(|error| Damage::new(format!("segment {path} cannot be read: {error}")))?;
    if lines.len() as u64 != segment.bytes || Digest::of(&lines) != segment.sha256 {
        return Err(Damage::new(format!("segment {path} is not what was sealed")));
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
) -> Result<Vec<Pin>, Damage> {
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event = Event::decode(line).map_err(unreadable(first))?;
        let snapshots = event.pins().into_iter().filter(|pin| pin.blob_kind == BlobKind::Snapshot);
        if let Some(pin) = snapshots.into_iter().find(|pin| !loose.contains(pin)) {
            let missing = pin.snapshot_ref;
            return Err(Damage::new(format!("event {} has no pin for {missing}", event.index)));
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
