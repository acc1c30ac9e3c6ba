//! Sessions as wholes: listing, keeping, deleting, adopting.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::{BundleId, EventIndex, SessionId};
use cairn_core::manifest::{self, Record, Sealed};
use cairn_core::pin::{self, Pin};
use serde::{Deserialize, Serialize};

use super::blobs::FileBlobs;
use super::changes::{Announced, Seen};
use super::durable::{ensure_dir, failed, remove_if_there, sync_dir, write_whole};
use super::epoch;
use super::fs::Open;
use super::head::{self, Witness};
use super::layout::{IMPORT, SessionDir};
use super::leases;
use super::load::{Trust, load};
use super::lock::{self, LockFile};
use super::log::FileLog;
use super::pace::blocking;
use crate::error::{Error, Result, require_known};
use crate::fence::Epoch;
use crate::health::Health;
use crate::port::{Mark, Moved, Origin, Place, Sessions, Trusted};

/// How old the stamp of a directory is at least when nothing else can have got the same one.
const STAMP_MIN: Duration = Duration::from_millis(100);

/// Where a session comes from.
const ORIGIN: &str = "origin.json";

pub(super) struct FileSessions {
    log: Arc<FileLog>,
    blobs: Arc<FileBlobs>,
}

impl FileSessions {
    pub(super) const fn new(log: Arc<FileLog>, blobs: Arc<FileBlobs>) -> Self {
        Self { log, blobs }
    }

    /// Whether a session has, or should have, an event. One that cannot be read is there.
    fn exists(&self, session: SessionId) -> Result<bool> {
        let (fs, dir) = (&*self.log.fs, self.log.dir(session));
        if fs.stat(&dir.manifest()).is_ok_and(|stat| stat.len > 0) {
            return Ok(true);
        }
        match head::read(fs, &dir)? {
            Witness::Says(..) => Ok(true),
            // A first append that was cut off leaves a directory, a lock, perhaps a torn journal.
            Witness::Absent | Witness::Unreadable => {
                match load(fs, &dir, session, None, Trust::Everything) {
                    Ok(found) => {
                        Ok(found.health != Health::Healthy || found.resident.index.last().is_some())
                    }
                    Err(Error::NotFound(_)) => Ok(false),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// How far a session is, as its witness and the stamps of its files say.
    fn mark_of(&self, session: SessionId) -> Option<Mark> {
        let (fs, dir) = (&*self.log.fs, self.log.dir(session));
        let stamp = |path: PathBuf| fs.stat(&path).map_or((0, 0), |s| (s.len, s.modified_ms));
        let (journal, manifest) = (stamp(dir.journal()), stamp(dir.manifest()));
        let head = match head::read(fs, &dir) {
            Ok(Witness::Says(head, _)) => format!("{}:{}", head.last, head.rec),
            _ if self.exists(session).unwrap_or(true) => String::new(),
            _ => return None,
        };
        Some(Mark(format!("{head}:{journal:?}:{manifest:?}")))
    }

    /// How far the sessions are that were announced, and whether any came or went.
    fn moved_since(&self, since: Option<&Since>) -> Result<Moved> {
        let path = self.log.layout.sessions();
        // What comes or goes from here on changes the stamp, and what is appended is announced.
        let stamp = self.log.fs.stat(&path).map_err(failed("reading", &path))?.changed_ns;
        let announced = match &self.log.changes {
            Some(changes) => {
                let announced = changes.since(since.map(|since| &since.seen));
                Some(announced.map_err(failed("reading", &self.log.layout.changes()))?)
            }
            None => None,
        };
        let announced = announced.as_ref();
        let is_all = announced.is_some_and(|announced| announced.is_all);
        let is_same = is_all && since.is_some_and(|since| since.stamp == Some(stamp));
        let names = if is_same { None } else { Some(self.names()?) };
        let wanted = match (&names, announced) {
            (Some(names), _) if !is_all => names.clone(),
            (_, Some(announced)) => announced.lines.keys().copied().collect(),
            (_, None) => BTreeSet::new(),
        };
        let marks: BTreeMap<_, _> =
            wanted.into_iter().map(|session| (session, self.mark_of(session))).collect();
        let since = announced.map(|announced| Since {
            stamp: is_old(stamp).then_some(stamp),
            seen: self.settled(announced, &marks),
        });
        let place = Place(since.map(|since| since.encode()).unwrap_or_default());
        Ok(Moved { marks, names, place })
    }

    /// What was announced and has not come to pass yet. Of a session that is gone nothing will.
    fn settled(&self, announced: &Announced, marks: &BTreeMap<SessionId, Option<Mark>>) -> Seen {
        let is_gone = |session| self.log.fs.stat(&self.log.dir(session).path).is_err();
        announced.seen.clone().settle(|session| {
            match marks.get(&session).and_then(Option::as_ref) {
                Some(mark) => mark.last(),
                None => is_gone(session).then_some(EventIndex::LAST),
            }
        })
    }

    /// The names of all sessions; some may be without events.
    fn names(&self) -> Result<BTreeSet<SessionId>> {
        let path = self.log.layout.sessions();
        let names = self.log.fs.read_dir(&path).map_err(failed("reading", &path))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn require(&self, session: SessionId) -> Result<SessionDir> {
        // Whatever keeps it from being read, it is there.
        match self.exists(session) {
            Ok(false) => Err(Error::NotFound(session)),
            Ok(true) | Err(_) => Ok(self.log.dir(session)),
        }
    }

    /// Removes a session if `wanted` still says so when nobody else can change it.
    fn remove(
        &self,
        session: SessionId,
        fence: Option<Epoch>,
        wanted: impl FnOnce(&SessionDir) -> Result<bool>,
    ) -> Result<bool> {
        let (fs, dir) = (&*self.log.fs, self.require(session)?);
        let mut owner;
        // An owner has that lock itself.
        let _owned = if fence.is_none() {
            owner = LockFile::open(fs, dir.owner())?;
            let Some(owned) = owner.acquire(fs)? else {
                let owner = leases::owner_at(fs, &dir.owner()).map(Box::new);
                return Err(Error::Owned { session, owner });
            };
            // A full disk is the best reason to delete something, and has no room for a note.
            let _ = owned.note(&leases::encode(&leases::this_process("delete it")));
            Some(owned)
        } else {
            None
        };
        let locked = |path: PathBuf| Error::Locked { session, holder: lock::holder(fs, &path) };
        let mut sealing = LockFile::open(fs, dir.seal_lock())?;
        let _sealing = sealing.acquire(fs)?.ok_or_else(|| locked(dir.seal_lock()))?;
        let mut lock = LockFile::open(fs, dir.lock())?;
        let _held = lock.acquire(fs)?.ok_or_else(|| locked(dir.lock()))?;
        if let Some(held) = fence {
            let found = load(fs, &dir, session, None, Trust::Everything)?;
            let ownership = epoch::ownership(fs, &dir, session, found.resident.epoch)?;
            ownership.check(session, held).inspect_err(|refusal| self.log.book.tell(refusal))?;
        }
        if !wanted(&dir)? {
            return Ok(false);
        }
        self.note_deleted(session)?;
        let grave = self.bury(session, &dir)?;
        self.log.forget(session);
        fs.remove_dir_all(&grave).map_err(failed("removing", &grave))?;
        Ok(true)
    }

    /// Notes that a session goes because somebody said so.
    fn note_deleted(&self, session: SessionId) -> Result<()> {
        let (fs, note) = (&*self.log.fs, self.log.layout.deleted(session));
        if let Some(folder) = note.parent() {
            ensure_dir(fs, folder)?;
        }
        match fs.open(&note, Open::Create) {
            // A full disk is the best reason to delete something, and has no room for a note.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
            noted => noted.map(drop).map_err(failed("making", &note)),
        }
    }

    /// Moves a session's directory away, at once and for good.
    fn bury(&self, session: SessionId, dir: &SessionDir) -> Result<PathBuf> {
        let fs = &*self.log.fs;
        let trash = self.log.layout.trash();
        ensure_dir(fs, &trash)?;
        let grave = trash.join(format!("{session}-{:016x}", crate::random()?));
        fs.rename_new(&dir.path, &grave).map_err(failed("moving away", &dir.path))?;
        sync_dir(fs, &self.log.layout.sessions())?;
        sync_dir(fs, &trash)?;
        Ok(grave)
    }

    /// Puts a finished directory in a session's place, if there is no session.
    fn place(&self, session: SessionId, built: &SessionDir) -> Result<()> {
        let (fs, place) = (&*self.log.fs, self.log.dir(session));
        if fs.stat(&place.path).is_ok() {
            // An append that died before its first commit left a directory without events. One
            // that is under way holds the lock, or finds its directory gone and fails.
            let mut lock = LockFile::open(fs, place.lock())?;
            let held = lock.acquire(fs)?;
            if held.is_none() || self.exists(session)? {
                return Err(Error::Exists(session));
            }
            self.bury(session, &place)?;
        }
        match fs.rename_new(&built.path, &place.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::Exists(session))
            }
            placed => placed.map_err(failed("renaming to", &place.path)),
        }
    }
}

#[async_trait]
impl Sessions for FileSessions {
    async fn list(&self) -> Result<Vec<SessionId>> {
        let names = self.names()?.into_iter();
        Ok(names.filter(|session| self.exists(*session).unwrap_or(true)).collect())
    }

    async fn mark(&self, session: SessionId) -> Result<Option<Mark>> {
        Ok(self.mark_of(session))
    }

    async fn moved(&self, since: Option<&Place>) -> Result<Moved> {
        let since = since.and_then(|since| Since::decode(&since.0));
        blocking(|| self.moved_since(since.as_ref()))
    }

    async fn keep(&self, session: SessionId, kept: bool) -> Result<()> {
        let (fs, dir) = (&*self.log.fs, self.require(session)?);
        match (kept, fs.stat(&dir.keep()).is_ok()) {
            (true, false) => write_whole(fs, &dir.keep(), b"")?,
            (false, true) => remove_if_there(fs, &dir.keep())?,
            (true, true) | (false, false) => {}
        }
        sync_dir(fs, &dir.path)
    }

    async fn delete(&self, session: SessionId, fence: Option<Epoch>) -> Result<()> {
        self.remove(session, fence, |_| Ok(true)).map(|_| ())
    }

    async fn retire(
        &self,
        session: SessionId,
        last: EventIndex,
        fence: Option<Epoch>,
    ) -> Result<bool> {
        let fs = &*self.log.fs;
        self.remove(session, fence, |dir| {
            let found = load(fs, dir, session, None, Trust::Everything)?;
            require_known(session, found.resident.needs)?;
            let kept = fs.stat(&dir.keep()).is_ok();
            Ok(!kept && found.resident.index.last() == Some(last))
        })
    }

    async fn adopt(
        &self,
        session: SessionId,
        events: Vec<Event>,
        origin: Option<Origin>,
    ) -> Result<()> {
        let fs = &*self.log.fs;
        require_known(session, events.iter().map(Event::needs).max().unwrap_or(1))?;
        if self.exists(session)? {
            return Err(Error::Exists(session));
        }
        let _pinning = self.blobs.pinning()?;
        let pins: Vec<Pin> = events.iter().flat_map(Event::pins).collect();
        pins.iter().try_for_each(|pin| self.blobs.require(pin.blob_kind, pin.snapshot_ref))?;
        let name = format!("{session}-{:016x}{IMPORT}", crate::random()?);
        let built = SessionDir { path: self.log.layout.sessions().join(name) };
        fs.create_dir(&built.path).map_err(failed("making", &built.path))?;
        let placed = write_sealed(fs, &built, session, &events, self.log.config.segment_max)
            .and_then(|()| match &origin {
                Some(origin) => {
                    let json = canonical::to_vec(&OriginFile::from(origin))?;
                    write_whole(fs, &built.file(ORIGIN), &json)
                }
                None => Ok(()),
            })
            .and_then(|()| sync_dir(fs, &built.path))
            .and_then(|()| self.place(session, &built));
        if placed.is_err() {
            // What is left of it is in nobody's way; a collection removes it at the latest.
            let _ = fs.remove_dir_all(&built.path);
        }
        placed?;
        self.log.forget(session);
        sync_dir(fs, &self.log.layout.sessions())
    }

    async fn is_deleted(&self, session: SessionId) -> Result<bool> {
        let note = self.log.layout.deleted(session);
        match self.log.fs.stat(&note) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => found.map(|_| true).map_err(failed("reading", &note)),
        }
    }

    async fn origin(&self, session: SessionId) -> Result<Option<Origin>> {
        let (fs, path) = (&*self.log.fs, self.require(session)?.file(ORIGIN));
        let bytes = match fs.read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(failed("reading", &path))?,
        };
        let file: OriginFile = canonical::parse(&bytes)?;
        Ok(Some(file.into()))
    }
}

/// How far somebody has looked: at the names of the sessions, and at what was announced.
struct Since {
    /// The stamp of the directory, when it is sure to change with the next name.
    stamp: Option<u128>,
    seen: Seen,
}

impl Since {
    fn encode(&self) -> String {
        format!("{} {}", self.stamp.unwrap_or_default(), self.seen.encode())
    }

    fn decode(text: &str) -> Option<Self> {
        let (stamp, seen) = text.split_once(' ')?;
        let stamp = stamp.parse().ok().filter(|stamp| *stamp != 0);
        Some(Self { stamp, seen: Seen::decode(seen)? })
    }
}

/// Whether a stamp is so old that nothing that happens now gets the same one: clocks of file
/// systems are coarse.
fn is_old(stamp_ns: u128) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() > stamp_ns.saturating_add(STAMP_MIN.as_nanos())
}

/// Where a session comes from, as its file says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OriginFile {
    bundle_id: BundleId,
    root_hash: Digest,
    session_id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trusted_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trusted_by: Option<String>,
    v: u64,
}

impl From<&Origin> for OriginFile {
    fn from(origin: &Origin) -> Self {
        let trusted = origin.trusted.as_ref();
        Self {
            bundle_id: origin.bundle,
            root_hash: origin.root,
            session_id: origin.session,
            trusted_at_ms: trusted.map(|trusted| trusted.at_ms),
            trusted_by: trusted.map(|trusted| trusted.by.clone()),
            v: 1,
        }
    }
}

impl From<OriginFile> for Origin {
    fn from(file: OriginFile) -> Self {
        let trusted = file.trusted_by.zip(file.trusted_at_ms);
        let trusted = trusted.map(|(by, at_ms)| Trusted { by, at_ms });
        Self { session: file.session_id, bundle: file.bundle_id, root: file.root_hash, trusted }
    }
}

/// Writes a session that consists of sealed segments alone.
fn write_sealed(
    fs: &dyn super::fs::Fs,
    dir: &SessionDir,
    session: SessionId,
    events: &[Event],
    segment_max: u64,
) -> Result<()> {
    ensure_dir(fs, &dir.events())?;
    let (mut manifest, mut next, mut before) = (Vec::new(), 0, None);
    for segment in segments(events, segment_max)? {
        let Piece { first, last, lines, pins } = &segment;
        let pins = &pin::once(pins.iter().copied());
        let path = manifest::segment_path(first.index, last.index);
        write_whole(fs, &dir.file(&path), lines)?;
        let (first, last) = (first.index, last.index);
        let segment = Sealed { first, last, lines, pins, commit: None };
        for record in Record::of(&segment, session) {
            let (record, rec) = record.placed(next).chained(before)?;
            manifest.extend_from_slice(&record.encode()?);
            (next, before) = (next + 1, Some(rec));
        }
    }
    sync_dir(fs, &dir.events())?;
    write_whole(fs, &dir.manifest(), &manifest)
}

struct Piece<'a> {
    first: &'a Event,
    last: &'a Event,
    lines: Vec<u8>,
    pins: Vec<Pin>,
}

fn segments(events: &[Event], max: u64) -> Result<Vec<Piece<'_>>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for event in events {
        let mut line = event.encode()?;
        line.push(b'\n');
        match pieces.last_mut().filter(|piece| (piece.lines.len() + line.len()) as u64 <= max) {
            Some(piece) => {
                piece.last = event;
                piece.lines.extend_from_slice(&line);
                piece.pins.extend(event.pins());
            }
            None => {
                pieces.push(Piece { first: event, last: event, lines: line, pins: event.pins() });
            }
        }
    }
    Ok(pieces)
}
