//! Bundles: a whole session as one JSON document, checked completely before anything of it
//! is believed.

use std::collections::{BTreeMap, HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{self, StrictValue};
use crate::digest::Digest;
use crate::event::{Event, EventData};
use crate::format::FORMAT;
use crate::id::{BundleId, EventIndex, SessionId};
use crate::journal::Tail;
use crate::lineage;
use crate::manifest::{self, Record};
use crate::pin::{BlobKind, Pin};

/// The version of bundles.
pub const VERSION: u64 = 1;
/// The largest bundle there may be.
pub const BYTES_MAX: usize = 64 << 20;

const INTEGRITY: &str = "sha256_manifest_v1";

/// Why a bundle is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not a bundle.
    #[error("the bundle is not well formed: {0}")]
    InvalidFormat(String),
    /// A later version made it, or something in it.
    #[error("the bundle needs a newer version of this program: {0}")]
    UnsupportedVersion(String),
    /// Something in it is not what its digest says.
    #[error("the bundle is damaged: {0}")]
    IntegrityFailed(String),
    /// A snapshot or another blob that its events need is not in it.
    #[error("the bundle lacks the {kind} {digest}, which event {event} needs", kind = .kind.name())]
    MissingBlob {
        /// What kind of blob.
        kind: BlobKind,
        /// Which.
        digest: Digest,
        /// The event that needs it.
        event: EventIndex,
    },
    /// A plan that its runs are pinned to is not in it.
    #[error("the bundle lacks the pinned workflow {0}")]
    MissingPlan(Digest),
    /// The session does not fit into a bundle.
    #[error("the bundle would have {0} bytes, and at most {BYTES_MAX} can be imported again")]
    TooLarge(usize),
    /// Its events are not the log of one session.
    #[error("the bundle's events are not in order: {0}")]
    EventOrder(String),
    /// Its manifest is not in order, or does not cover the events.
    #[error("the bundle's manifest is not in order: {0}")]
    ManifestOrder(String),
}

impl Error {
    /// The stable name of the error: programs compare it, so it stays as it is for good.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidFormat(_) => "BUNDLE_INVALID_FORMAT",
            Self::UnsupportedVersion(_) => "BUNDLE_UNSUPPORTED_VERSION",
            Self::IntegrityFailed(_) => "BUNDLE_INTEGRITY_FAILED",
            Self::MissingBlob { .. } => "BUNDLE_MISSING_SNAPSHOT",
            Self::MissingPlan(_) => "BUNDLE_MISSING_PINNED_WORKFLOW",
            Self::TooLarge(_) => "BUNDLE_TOO_LARGE",
            Self::EventOrder(_) => "BUNDLE_EVENT_ORDER_INVALID",
            Self::ManifestOrder(_) => "BUNDLE_MANIFEST_ORDER_INVALID",
        }
    }
}

/// A bundle.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    bundle_id: BundleId,
    bundle_schema_version: u64,
    exported_at: String,
    integrity: Integrity,
    producer: Producer,
    /// There when the session was damaged and this is what could be saved of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salvage: Option<Salvage>,
    session: Contents,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Integrity {
    entries: Vec<Entry>,
    kind: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    bytes: u64,
    path: String,
    sha256: Digest,
}

/// What made a bundle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Producer {
    /// The program's version.
    pub app_version: String,
    /// The digest of its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_config_hash: Option<Digest>,
}

/// What is known of a session that could not be saved as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Salvage {
    /// What is damaged.
    pub damage: String,
    /// How the session is.
    pub health: String,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Contents {
    /// Blobs that are not JSON, in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    blobs: BTreeMap<String, String>,
    events: Vec<StrictValue>,
    manifest: Vec<StrictValue>,
    pinned_workflows: BTreeMap<String, StrictValue>,
    session_id: SessionId,
    snapshots: BTreeMap<String, StrictValue>,
}

/// What goes into a bundle.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Parts {
    pub bundle: BundleId,
    pub exported_at: String,
    pub producer: Producer,
    pub salvage: Option<Salvage>,
    pub session: SessionId,
    pub events: Vec<Event>,
    pub manifest: Vec<Record>,
    pub blobs: Vec<(BlobKind, Vec<u8>)>,
}

/// What came out of a bundle that was checked.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Opened {
    pub bundle: BundleId,
    pub session: SessionId,
    pub events: Vec<Event>,
    pub blobs: Vec<(BlobKind, Vec<u8>)>,
    /// The digest of all that the bundle vouches for.
    pub root: Digest,
    pub salvage: Option<Salvage>,
}

/// Packs a session. The bytes are canonical JSON.
pub fn pack(parts: Parts) -> Result<Vec<u8>, Error> {
    let bytes = encode(parts).map_err(invalid)?;
    if bytes.len() > BYTES_MAX { Err(Error::TooLarge(bytes.len())) } else { Ok(bytes) }
}

fn encode(parts: Parts) -> Result<Vec<u8>, canonical::Error> {
    let json = |line: Vec<u8>| canonical::parse::<StrictValue>(line.trim_ascii_end());
    let events = parts.events.iter().map(|event| event.encode().and_then(json));
    let manifest = parts.manifest.iter().map(|record| record.encode().and_then(json));
    let mut session = Contents {
        blobs: BTreeMap::new(),
        events: events.collect::<Result<_, _>>()?,
        manifest: manifest.collect::<Result<_, _>>()?,
        pinned_workflows: BTreeMap::new(),
        session_id: parts.session,
        snapshots: BTreeMap::new(),
    };
    for (kind, bytes) in parts.blobs {
        session.add_blob(kind, &bytes);
    }
    let integrity = Integrity { entries: entries(&session)?, kind: INTEGRITY.to_owned() };
    canonical::to_vec(&Bundle {
        bundle_id: parts.bundle,
        bundle_schema_version: VERSION,
        exported_at: parts.exported_at,
        integrity,
        producer: parts.producer,
        salvage: parts.salvage,
        session,
    })
}

/// Unpacks a bundle, after checking everything that can be checked of it.
pub fn unpack(bytes: &[u8]) -> Result<Opened, Error> {
    let bundle = read(bytes)?;
    let found = entries(&bundle.session).map_err(invalid)?;
    check_integrity(&bundle.integrity, &found)?;
    let events = check_events(&bundle.session)?;
    check_manifest(&bundle.session, &events)?;
    let blobs = check_blobs(&bundle.session, &events)?;
    let root = canonical::digest(&bundle.integrity).map_err(invalid)?;
    Ok(Opened {
        bundle: bundle.bundle_id,
        session: bundle.session.session_id,
        events,
        blobs,
        root,
        salvage: bundle.salvage,
    })
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::InvalidFormat(error.to_string())
}

fn read(bytes: &[u8]) -> Result<Bundle, Error> {
    if bytes.len() > BYTES_MAX {
        let found = bytes.len();
        return Err(invalid(format_args!(
            "it has {found} bytes, and at most {BYTES_MAX} are read"
        )));
    }
    let value: Value = canonical::parse(bytes).map_err(invalid)?;
    match value.get("bundleSchemaVersion") {
        Some(version) if version.as_u64() == Some(VERSION) => {}
        Some(version) => {
            let what = format!("bundleSchemaVersion is {version}, and {VERSION} is known");
            return Err(Error::UnsupportedVersion(what));
        }
        None => return Err(invalid("it has no bundleSchemaVersion")),
    }
    serde_json::from_value(value).map_err(invalid)
}

impl Contents {
    fn add_blob(&mut self, kind: BlobKind, bytes: &[u8]) {
        let name = Digest::of(bytes).to_string();
        let json = canonical::parse::<Value>(bytes).ok();
        let json = json.filter(|json| canonical::to_vec(json).is_ok_and(|again| again == bytes));
        match (kind, json) {
            (BlobKind::Snapshot, Some(json)) => {
                self.snapshots.insert(name, StrictValue::new(json));
            }
            (BlobKind::Plan, Some(json)) => {
                self.pinned_workflows.insert(name, StrictValue::new(json));
            }
            _ => {
                self.blobs.insert(name, STANDARD.encode(bytes));
            }
        }
    }
}

/// What a bundle's contents must be attested as.
fn entries(session: &Contents) -> Result<Vec<Entry>, canonical::Error> {
    let entry = |path: String, bytes: Vec<u8>| Entry {
        bytes: bytes.len() as u64,
        path,
        sha256: Digest::of(&bytes),
    };
    let mut entries = vec![
        entry("session/events".into(), canonical::to_vec(&session.events)?),
        entry("session/manifest".into(), canonical::to_vec(&session.manifest)?),
    ];
    for (name, snapshot) in &session.snapshots {
        entries.push(entry(format!("session/snapshots/{name}"), canonical::to_vec(snapshot)?));
    }
    for (name, plan) in &session.pinned_workflows {
        entries.push(entry(format!("session/pinnedWorkflows/{name}"), canonical::to_vec(plan)?));
    }
    for (name, blob) in &session.blobs {
        entries.push(entry(format!("session/blobs/{name}"), canonical::to_vec(blob)?));
    }
    Ok(entries)
}

fn check_integrity(said: &Integrity, found: &[Entry]) -> Result<(), Error> {
    if said.kind != INTEGRITY {
        return Err(Error::UnsupportedVersion(format!("integrity kind {:?}", said.kind)));
    }
    let mut attested: HashMap<&str, &Entry> = HashMap::new();
    for entry in &said.entries {
        if attested.insert(&entry.path, entry).is_some() {
            return Err(Error::IntegrityFailed(format!("{} is attested twice", entry.path)));
        }
    }
    for entry in found {
        match attested.remove(entry.path.as_str()) {
            Some(said) if said == entry => {}
            Some(_) => return Err(Error::IntegrityFailed(format!("{} was changed", entry.path))),
            None => return Err(Error::IntegrityFailed(format!("{} is not attested", entry.path))),
        }
    }
    match attested.into_keys().min() {
        Some(lost) => Err(Error::IntegrityFailed(format!("{lost} is attested and not there"))),
        None => Ok(()),
    }
}

fn check_events(session: &Contents) -> Result<Vec<Event>, Error> {
    let mut facts = HashSet::new();
    let mut events: Vec<Event> = Vec::with_capacity(session.events.len());
    for (place, value) in session.events.iter().enumerate() {
        let event = Event::from_value(value)
            .map_err(|error| invalid(format_args!("event {place}: {error}")))?;
        if event.newer.is_some() {
            let (needs, kind) = (event.needs(), event.data.kind().name());
            let what =
                format!("event {place} ({kind}) needs format {needs}, and {FORMAT} is known");
            return Err(Error::UnsupportedVersion(what));
        }
        if event.index.0 != place as u64 {
            let found = event.index;
            return Err(Error::EventOrder(format!("event {found} stands at place {place}")));
        }
        if event.session != session.session_id {
            return Err(Error::EventOrder(format!("event {place} belongs to another session")));
        }
        if !facts.insert(event.dedupe_key()) {
            return Err(Error::EventOrder(format!("event {place} repeats an earlier fact")));
        }
        events.push(event);
    }
    match events.first().map(|event| &event.data) {
        Some(EventData::SessionCreated(_)) => {
            lineage::check(&events).map_err(|broken| Error::EventOrder(broken.to_string()))?;
            Ok(events)
        }
        _ => Err(Error::EventOrder("the first event is not session_created".into())),
    }
}

/// The manifest has to attest exactly the events that are there, byte for byte.
fn check_manifest(session: &Contents, events: &[Event]) -> Result<(), Error> {
    let mut lines = Vec::new();
    for value in &session.manifest {
        lines.extend(canonical::to_vec(value).map_err(invalid)?);
        lines.push(b'\n');
    }
    let scan = manifest::scan(&lines);
    let place = scan.records.len();
    match scan.tail {
        Tail::Clean => {}
        Tail::UnknownVersion => return Err(Error::UnsupportedVersion("manifest record".into())),
        Tail::Torn | Tail::Damaged => {
            return Err(Error::ManifestOrder(format!("record {place} does not follow")));
        }
    }
    let mut next = EventIndex(0);
    for record in &scan.records {
        if record.session() != session.session_id {
            return Err(Error::ManifestOrder("a record belongs to another session".into()));
        }
        let Record::SegmentClosed {
            first_event_index: first,
            last_event_index: last,
            segment_rel_path,
            sha256,
            ..
        } = record
        else {
            continue;
        };
        if *segment_rel_path != manifest::segment_path(*first, *last) {
            return Err(invalid(format_args!("segment path {segment_rel_path:?} is not allowed")));
        }
        if *first != next || last < first {
            return Err(Error::ManifestOrder(format!(
                "segment {segment_rel_path} does not follow"
            )));
        }
        // The events are dense from 0, so an index is a place.
        let (start, end) = (usize::try_from(first.0), usize::try_from(last.0));
        let segment = start.ok().zip(end.ok()).and_then(|(start, end)| events.get(start..=end));
        let Some(segment) = segment else {
            let what = format!("segment {segment_rel_path} has events that are not there");
            return Err(Error::ManifestOrder(what));
        };
        let mut bytes = Vec::new();
        for event in segment {
            bytes.extend(event.encode().map_err(invalid)?);
            bytes.push(b'\n');
        }
        if Digest::of(&bytes) != *sha256 {
            let what = format!("segment {segment_rel_path} has another digest");
            return Err(Error::IntegrityFailed(what));
        }
        next = last.next();
    }
    if next.0 == events.len() as u64 {
        Ok(())
    } else {
        Err(Error::ManifestOrder(format!("it ends at event {next}, not at {}", events.len())))
    }
}

type Blobs = Vec<(BlobKind, Vec<u8>)>;

/// Every blob is what its name says, and every pinned one is there.
fn check_blobs(session: &Contents, events: &[Event]) -> Result<Blobs, Error> {
    let mut there: BTreeMap<Digest, Vec<u8>> = BTreeMap::new();
    let mut take = |name: &str, bytes: Vec<u8>| {
        let digest: Digest = name.parse().map_err(invalid)?;
        if Digest::of(&bytes) != digest {
            return Err(Error::IntegrityFailed(format!("the blob {digest} has other bytes")));
        }
        there.insert(digest, bytes);
        Ok(())
    };
    for (name, value) in session.snapshots.iter().chain(&session.pinned_workflows) {
        take(name, canonical::to_vec(value).map_err(invalid)?)?;
    }
    for (name, text) in &session.blobs {
        take(name, STANDARD.decode(text).map_err(invalid)?)?;
    }
    let mut blobs = Blobs::new();
    let mut taken = HashSet::new();
    for Pin { blob_kind, event_index, snapshot_ref, .. } in events.iter().flat_map(Event::pins) {
        match there.get(&snapshot_ref) {
            Some(bytes) if taken.insert((blob_kind, snapshot_ref)) => {
                blobs.push((blob_kind, bytes.clone()));
            }
            Some(_) => {}
            None if blob_kind == BlobKind::Plan => return Err(Error::MissingPlan(snapshot_ref)),
            None => {
                let (kind, digest, event) = (blob_kind, snapshot_ref, event_index);
                return Err(Error::MissingBlob { kind, digest, event });
            }
        }
    }
    Ok(blobs)
}
