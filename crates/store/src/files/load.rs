//! Loading a session: the decision table.
//!
//! Sealed segments come first, as the manifest attests them, then the journals' commits,
//! each vouched for by its digest and by the one before. What is behind the last whole
//! commit never was, unless the witness says that it was acknowledged.

use std::io;

use cairn_core::digest::Digest;
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::pin::Pin;

use super::durable::{failed, read_if_there};
use super::fs::{File, Fs, Open, Stat};
use super::head::{self, Witness};
use super::layout::{JOURNAL, SessionDir, rotated_first};
use super::walk::Walk;
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
    /// The format that a program must know to write to it.
    pub(super) needs: u32,
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
    // The witness first: whatever it covers by now, the journals hold when they are read. They
    // are opened before the manifest is read: one that is sealed and removed in between can
    // still be read through its open file.
    let witness = head::read(fs, dir)?;
    let journals = open_journals(fs, dir, session, known.as_ref())?;
    let manifest = read_if_there(fs, &dir.manifest())?.unwrap_or_default();
    let limit = match trust {
        Trust::Everything => None,
        Trust::UpToHead => Some(witness.head().map_or(0, |head| head.last.0 + 1)),
    };
    Walk::new(session, known, limit).through(fs, dir, Found { journals, manifest, witness })
}

/// Opens the journals there are, the oldest first. Of those that are known, only what came
/// since is read.
fn open_journals(
    fs: &dyn Fs,
    dir: &SessionDir,
    session: SessionId,
    known: Option<&Resident>,
) -> Result<Vec<Opened>> {
    for _ in 0..OPEN_TRIES {
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
        let files: Result<Vec<Named>> =
            rotated.chain(active).map(|name| open_file(fs, dir, name)).collect();
        match files.and_then(|files| read_journals(dir, files, known)) {
            // It was sealed, or ended, after its name was read.
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
    }
    Err(failed("opening the journals in", &dir.path)(io::ErrorKind::NotFound.into()))
}

/// How often journals may vanish between listing and opening them: each does so once.
const OPEN_TRIES: usize = 16;

struct Named {
    name: String,
    file: Box<dyn File>,
    stat: Stat,
}

fn open_file(fs: &dyn Fs, dir: &SessionDir, name: String) -> Result<Named> {
    let path = dir.file(&name);
    let file = fs.open(&path, Open::Read).map_err(failed("opening", &path))?;
    let stat = file.stat().map_err(failed("reading", &path))?;
    Ok(Named { name, file, stat })
}

fn read_journals(
    dir: &SessionDir,
    files: Vec<Named>,
    known: Option<&Resident>,
) -> Result<Vec<Opened>> {
    let known = known.map_or(&[][..], |known| &known.journals);
    let same = |file: &Named| {
        known.iter().find(|old| old.inode == file.stat.inode && old.end <= file.stat.len)
    };
    // What is known ends with its last journal, and is of use only if all before it is known.
    let last = known.last().and_then(|last| {
        files.iter().position(|file| same(file).is_some_and(|old| old.inode == last.inode))
    });
    let upto = last.filter(|last| files.iter().take(last + 1).all(|file| same(file).is_some()));
    let read = files.into_iter().enumerate().map(|(place, file)| {
        let old = same(&file).filter(|_| upto.is_some_and(|upto| place <= upto));
        let (from, commits) = old.map_or((0, Vec::new()), |old| (old.end, old.commits.clone()));
        let Named { name, file, stat } = file;
        let path = dir.file(&name);
        let bytes = file.read_to_end_at(from).map_err(failed("reading", &path))?;
        Ok(Opened { name, file, inode: stat.inode, from, commits, bytes })
    });
    read.collect()
}

/// What is there of a session.
pub(super) struct Found {
    pub(super) journals: Vec<Opened>,
    pub(super) manifest: Vec<u8>,
    pub(super) witness: Witness,
}

/// A journal with its bytes, or those behind the part that is known.
pub(super) struct Opened {
    pub(super) name: String,
    pub(super) file: Box<dyn File>,
    pub(super) inode: u64,
    /// Where the bytes start in the file.
    pub(super) from: u64,
    /// The commits before that.
    pub(super) commits: Vec<(EventIndex, u64)>,
    pub(super) bytes: Vec<u8>,
}
