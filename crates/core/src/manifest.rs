//! The manifest's records: which segments are sealed, and which blobs they need.
//!
//! Each record names the one before by digest. The fields beyond the first version's
//! required ones are optional in it, so that a plain manifest of another writer reads too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{self, StrictValue};
use crate::digest::Digest;
use crate::format::{self, NEEDS};
use crate::id::{EventId, EventIndex, SessionId};
use crate::journal::Tail;
use crate::pin::{BlobKind, Pin};

/// The version of manifest records.
pub const VERSION: u32 = 1;

/// A record of the manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Record {
    /// A segment is sealed.
    SegmentClosed {
        /// How long the segment is.
        bytes: u64,
        /// The epoch of the last commit in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
        /// Its first event.
        first_event_index: EventIndex,
        /// The digest of the last commit that was sealed into it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_commit: Option<Digest>,
        /// Its last event.
        last_event_index: EventIndex,
        /// The record's place, dense from 0.
        manifest_index: u64,
        /// The blobs that its events need.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pins: Option<Vec<Pin>>,
        /// The digest of the record before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prev: Option<Digest>,
        /// The digest of this record without this field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rec: Option<Digest>,
        /// Where the segment is, below the session.
        segment_rel_path: String,
        /// The session.
        session_id: SessionId,
        /// The digest of the segment's bytes.
        sha256: Digest,
        /// The version.
        v: u32,
    },
    /// A blob is needed by a sealed event.
    SnapshotPinned {
        /// What kind of blob; a snapshot when nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob_kind: Option<BlobKind>,
        /// The event that brought it in.
        created_by_event_id: EventId,
        /// That event's place.
        event_index: EventIndex,
        /// The record's place, dense from 0.
        manifest_index: u64,
        /// The digest of the record before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prev: Option<Digest>,
        /// The digest of this record without this field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rec: Option<Digest>,
        /// The session.
        session_id: SessionId,
        /// The blob.
        snapshot_ref: Digest,
        /// The version.
        v: u32,
    },
    /// A record of a later format, of a kind that this program does not know.
    #[serde(skip)]
    Unknown {
        /// The record's place, dense from 0.
        manifest_index: u64,
        /// The digest of the record before.
        prev: Option<Digest>,
        /// The digest of this record without this field.
        rec: Option<Digest>,
        /// The session.
        session_id: SessionId,
    },
}

/// Why a line is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A later version wrote it.
    #[error("the manifest record is of version {0}; this program reads version {VERSION}")]
    UnknownVersion(u64),
    /// It holds what this program does not know, without saying which format that is.
    #[error("the manifest record holds something unknown and does not say which format it needs")]
    Unmarked,
    /// It is not a record, or not the bytes that were written.
    #[error("not a manifest record: {0}")]
    Malformed(String),
}

/// A segment that is to be attested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sealed<'a> {
    /// Its first event.
    pub first: EventIndex,
    /// Its last event.
    pub last: EventIndex,
    /// Its lines.
    pub lines: &'a [u8],
    /// The blobs that its events need.
    pub pins: &'a [Pin],
    /// The last commit in it, and that one's epoch; none where there were no commits.
    pub commit: Option<(Digest, u64)>,
}

impl Record {
    /// The record of a segment, and one for each of its pins, without places yet.
    pub fn of(segment: &Sealed<'_>, session_id: SessionId) -> impl Iterator<Item = Self> {
        let closed = Self::SegmentClosed {
            bytes: segment.lines.len() as u64,
            epoch: segment.commit.map(|(_, epoch)| epoch),
            first_event_index: segment.first,
            last_commit: segment.commit.map(|(digest, _)| digest),
            last_event_index: segment.last,
            manifest_index: 0,
            pins: Some(segment.pins.to_vec()),
            prev: None,
            rec: None,
            segment_rel_path: segment_path(segment.first, segment.last),
            session_id,
            sha256: Digest::of(segment.lines),
            v: VERSION,
        };
        let pinned = segment.pins.iter().map(move |pin| Self::pinned(pin, session_id));
        std::iter::once(closed).chain(pinned)
    }

    /// The pin as a record of its own, without a place yet.
    #[must_use]
    pub fn pinned(pin: &Pin, session_id: SessionId) -> Self {
        let blob_kind = (pin.blob_kind != BlobKind::Snapshot).then_some(pin.blob_kind);
        Self::SnapshotPinned {
            blob_kind,
            created_by_event_id: pin.created_by_event_id,
            event_index: pin.event_index,
            manifest_index: 0,
            prev: None,
            rec: None,
            session_id,
            snapshot_ref: pin.snapshot_ref,
            v: VERSION,
        }
    }

    /// The pin that a record holds, if it is one.
    #[must_use]
    pub fn pin(&self) -> Option<Pin> {
        match self {
            Self::SegmentClosed { .. } | Self::Unknown { .. } => None,
            Self::SnapshotPinned {
                blob_kind,
                created_by_event_id,
                event_index,
                snapshot_ref,
                ..
            } => Some(Pin {
                blob_kind: blob_kind.unwrap_or_default(),
                created_by_event_id: *created_by_event_id,
                event_index: *event_index,
                snapshot_ref: *snapshot_ref,
            }),
        }
    }

    /// The record's place.
    #[must_use]
    pub const fn index(&self) -> u64 {
        match self {
            Self::SegmentClosed { manifest_index, .. }
            | Self::SnapshotPinned { manifest_index, .. }
            | Self::Unknown { manifest_index, .. } => *manifest_index,
        }
    }

    /// The session that the record says it belongs to.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        match self {
            Self::SegmentClosed { session_id, .. }
            | Self::SnapshotPinned { session_id, .. }
            | Self::Unknown { session_id, .. } => *session_id,
        }
    }

    /// The record's digest, if it carries one.
    #[must_use]
    pub const fn rec(&self) -> Option<Digest> {
        match self {
            Self::SegmentClosed { rec, .. }
            | Self::SnapshotPinned { rec, .. }
            | Self::Unknown { rec, .. } => *rec,
        }
    }

    /// The digest of the record before, if it carries one.
    #[must_use]
    pub const fn prev(&self) -> Option<Digest> {
        match self {
            Self::SegmentClosed { prev, .. }
            | Self::SnapshotPinned { prev, .. }
            | Self::Unknown { prev, .. } => *prev,
        }
    }

    /// The record at its place.
    #[must_use]
    pub fn placed(mut self, index: u64) -> Self {
        let (Self::SegmentClosed { manifest_index, .. }
        | Self::SnapshotPinned { manifest_index, .. }
        | Self::Unknown { manifest_index, .. }) = &mut self;
        *manifest_index = index;
        self
    }

    /// The record with its place in the chain; gives the digest to go on from.
    pub fn chained(mut self, before: Option<Digest>) -> Result<(Self, Digest), canonical::Error> {
        let (Self::SegmentClosed { prev, rec, .. }
        | Self::SnapshotPinned { prev, rec, .. }
        | Self::Unknown { prev, rec, .. }) = &mut self;
        (*prev, *rec) = (before, None);
        let digest = canonical::digest(&self)?;
        let (Self::SegmentClosed { rec, .. }
        | Self::SnapshotPinned { rec, .. }
        | Self::Unknown { rec, .. }) = &mut self;
        *rec = Some(digest);
        Ok((self, digest))
    }

    /// The record's line, newline included.
    pub fn encode(&self) -> Result<Vec<u8>, canonical::Error> {
        let mut line = canonical::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Reads a line without its newline, and checks that it is what was written.
    pub fn decode(line: &[u8]) -> Result<Self, Error> {
        Self::decode_newer(line).map(|(record, _)| record)
    }

    /// The same, with the format that the line needs.
    fn decode_newer(line: &[u8]) -> Result<(Self, u32), Error> {
        let malformed = |error: &dyn std::fmt::Display| Error::Malformed(error.to_string());
        let StrictValue(value) = serde_json::from_slice(line).map_err(|e| malformed(&e))?;
        match value.get("v").and_then(Value::as_u64) {
            Some(v) if v != u64::from(VERSION) => return Err(Error::UnknownVersion(v)),
            _ => {}
        }
        if value.get(NEEDS).is_some() {
            return newer(value, line);
        }
        let record: Self = match serde_json::from_value(value.clone()) {
            Ok(record) => record,
            // Its digest says that somebody wrote it so.
            Err(_) if is_attested(&value, line) => return Err(Error::Unmarked),
            Err(error) => return Err(malformed(&error)),
        };
        let (Some(rec), prev) = (record.rec(), record.prev()) else {
            return Ok((record, 1));
        };
        let (written, digest) = record.chained(prev).map_err(|e| malformed(&e))?;
        let bytes = canonical::to_vec(&written).map_err(|e| malformed(&e))?;
        if digest == rec && bytes == line {
            Ok((written, 1))
        } else {
            Err(Error::Malformed("its digest does not match its content".into()))
        }
    }
}

/// Whether a line carries the digest of what it says, known or not.
fn is_attested(value: &Value, line: &[u8]) -> bool {
    let mut unsigned = value.clone();
    let rec = unsigned.as_object_mut().and_then(|members| members.remove("rec"));
    let rec = rec.and_then(|rec| serde_json::from_value::<Digest>(rec).ok());
    rec.is_some_and(|rec| canonical::digest(&unsigned).is_ok_and(|digest| digest == rec))
        && canonical::to_vec(value).is_ok_and(|bytes| bytes == line)
}

/// Reads what is known of a record that says which format it needs.
fn newer(value: Value, line: &[u8]) -> Result<(Record, u32), Error> {
    if !is_attested(&value, line) {
        return Err(Error::Malformed("its digest does not match its content".into()));
    }
    let needs = format::needs(&value).filter(|needs| format::is_newer(*needs));
    let needs = needs.ok_or(Error::Unmarked)?;
    let known = match value.get("kind").and_then(Value::as_str) {
        Some("segment_closed") => SEGMENT_CLOSED,
        Some("snapshot_pinned") => SNAPSHOT_PINNED,
        _ => return chained_only(value).map(|record| (record, needs)).ok_or(Error::Unmarked),
    };
    let Value::Object(mut members) = value else { return Err(Error::Unmarked) };
    members.retain(|name, _| known.contains(&name.as_str()));
    let record = serde_json::from_value(Value::Object(members)).map_err(|_| Error::Unmarked)?;
    Ok((record, needs))
}

const SEGMENT_CLOSED: &[&str] = &[
    "bytes",
    "epoch",
    "firstEventIndex",
    "kind",
    "lastCommit",
    "lastEventIndex",
    "manifestIndex",
    "pins",
    "prev",
    "rec",
    "segmentRelPath",
    "sessionId",
    "sha256",
    "v",
];
const SNAPSHOT_PINNED: &[&str] = &[
    "blobKind",
    "createdByEventId",
    "eventIndex",
    "kind",
    "manifestIndex",
    "prev",
    "rec",
    "sessionId",
    "snapshotRef",
    "v",
];

/// A record of which only its place in the chain is known.
fn chained_only(value: Value) -> Option<Record> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Chained {
        manifest_index: u64,
        #[serde(default)]
        prev: Option<Digest>,
        rec: Option<Digest>,
        session_id: SessionId,
    }
    let Chained { manifest_index, prev, rec, session_id } = format::known(value).ok()?;
    Some(Record::Unknown { manifest_index, prev, rec, session_id })
}

/// Where a segment with these bounds is, below its session.
#[must_use]
pub fn segment_path(first: EventIndex, last: EventIndex) -> String {
    format!("events/{first:08}-{last:08}.jsonl", first = first.0, last = last.0)
}

/// A manifest's bytes, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scan {
    /// The valid records, from the start.
    pub records: Vec<Record>,
    /// Where they end.
    pub end: usize,
    /// What stands behind them.
    pub tail: Tail,
    /// The format that a program must know to write the like of all of them.
    pub needs: u32,
}

/// Reads a manifest's valid records, and says what stands behind them.
#[must_use]
pub fn scan(bytes: &[u8]) -> Scan {
    let mut scan = Scan { records: Vec::new(), end: 0, tail: Tail::Clean, needs: 1 };
    while let Some(rest) = bytes.get(scan.end..).filter(|rest| rest.iter().any(|byte| *byte != 0)) {
        let line = rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let (record, needs) = match line.strip_suffix(b"\n").map(Record::decode_newer) {
            Some(Ok(read)) if follows(scan.records.last(), &read.0) => read,
            Some(Ok(_)) => {
                scan.tail = Tail::Damaged;
                return scan;
            }
            Some(Err(Error::UnknownVersion(_) | Error::Unmarked)) => {
                scan.tail = Tail::UnknownVersion;
                return scan;
            }
            Some(Err(Error::Malformed(_))) | None => {
                let behind = rest.split(|byte| *byte == b'\n').skip(1);
                let damaged = behind.into_iter().any(|line| Record::decode(line).is_ok());
                scan.tail = if damaged { Tail::Damaged } else { Tail::Torn };
                return scan;
            }
        };
        scan.end += line.len();
        scan.needs = scan.needs.max(needs);
        scan.records.push(record);
    }
    scan
}

/// Records are dense from 0 and name the one before, if they name any.
fn follows(last: Option<&Record>, next: &Record) -> bool {
    let place = last.map_or(0, |last| last.index() + 1);
    next.index() == place && (next.rec().is_none() || next.prev() == last.and_then(Record::rec))
}

#[cfg(test)]
mod tests;
