//! The manifest's records: which segments are sealed, and which blobs they need.
//!
//! Each record names the one before by digest. The fields beyond the first version's
//! required ones are optional in it, so that a plain manifest of another writer reads too.

use serde::{Deserialize, Serialize};

use crate::canonical::{self, StrictValue};
use crate::digest::Digest;
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
}

/// Why a line is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A later version wrote it.
    #[error("the manifest record is of version {0}; this program reads version {VERSION}")]
    UnknownVersion(u64),
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
            Self::SegmentClosed { .. } => None,
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
            | Self::SnapshotPinned { manifest_index, .. } => *manifest_index,
        }
    }

    /// The session that the record says it belongs to.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        match self {
            Self::SegmentClosed { session_id, .. } | Self::SnapshotPinned { session_id, .. } => {
                *session_id
            }
        }
    }

    /// The record's digest, if it carries one.
    #[must_use]
    pub const fn rec(&self) -> Option<Digest> {
        match self {
            Self::SegmentClosed { rec, .. } | Self::SnapshotPinned { rec, .. } => *rec,
        }
    }

    /// The digest of the record before, if it carries one.
    #[must_use]
    pub const fn prev(&self) -> Option<Digest> {
        match self {
            Self::SegmentClosed { prev, .. } | Self::SnapshotPinned { prev, .. } => *prev,
        }
    }

    /// The record at its place.
    #[must_use]
    pub fn placed(mut self, index: u64) -> Self {
        let (Self::SegmentClosed { manifest_index, .. }
        | Self::SnapshotPinned { manifest_index, .. }) = &mut self;
        *manifest_index = index;
        self
    }

    /// The record with its place in the chain; gives the digest to go on from.
    pub fn chained(mut self, before: Option<Digest>) -> Result<(Self, Digest), canonical::Error> {
        let (Self::SegmentClosed { prev, rec, .. } | Self::SnapshotPinned { prev, rec, .. }) =
            &mut self;
        (*prev, *rec) = (before, None);
        let digest = canonical::digest(&self)?;
        let (Self::SegmentClosed { rec, .. } | Self::SnapshotPinned { rec, .. }) = &mut self;
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
        let malformed = |error: &dyn std::fmt::Display| Error::Malformed(error.to_string());
        let StrictValue(value) = serde_json::from_slice(line).map_err(|e| malformed(&e))?;
        match value.get("v").and_then(serde_json::Value::as_u64) {
            Some(v) if v != u64::from(VERSION) => return Err(Error::UnknownVersion(v)),
            _ => {}
        }
        let record: Self = serde_json::from_value(value).map_err(|e| malformed(&e))?;
        let (Some(rec), prev) = (record.rec(), record.prev()) else {
            return Ok(record);
        };
        let (written, digest) = record.chained(prev).map_err(|e| malformed(&e))?;
        let bytes = canonical::to_vec(&written).map_err(|e| malformed(&e))?;
        if digest == rec && bytes == line {
            Ok(written)
        } else {
            Err(Error::Malformed("its digest does not match its content".into()))
        }
    }
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
}

/// Reads a manifest's valid records, and says what stands behind them.
#[must_use]
pub fn scan(bytes: &[u8]) -> Scan {
    let mut scan = Scan { records: Vec::new(), end: 0, tail: Tail::Clean };
    while let Some(rest) = bytes.get(scan.end..).filter(|rest| rest.iter().any(|byte| *byte != 0)) {
        let line = rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let record = match line.strip_suffix(b"\n").map(Record::decode) {
            Some(Ok(record)) if follows(scan.records.last(), &record) => record,
            Some(Ok(_)) => {
                scan.tail = Tail::Damaged;
                return scan;
            }
            Some(Err(Error::UnknownVersion(_))) => {
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
        scan.records.push(record);
    }
    scan
}

/// Records are dense from 0 and name the one before, if they name any.
fn follows(last: Option<&Record>, next: &Record) -> bool {
    let place = last.map_or(0, |last| last.index() + 1);
    next.index() == place && (next.rec().is_none() || next.prev() == last.and_then(Record::rec))
}
