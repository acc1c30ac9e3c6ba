//! Bundles: a whole session as one JSON document, checked completely before anything of it
//! is believed.

mod raw;

use std::collections::{BTreeMap, HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use self::raw::{RawBundle, RawContents, Versioned};
use crate::canonical::{self, StrictValue};
use crate::digest::Digest;
use crate::event::{DedupeKey, Event, EventData};
use crate::format::FORMAT;
use crate::id::{BundleId, EventIndex, SessionId};
use crate::journal::Tail;
use crate::lineage;
use crate::manifest::{self, Record};
use crate::pin::{BlobKind, Pin};
use crate::text::{inert, is_workflow_id, truncate};

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
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    bundle_id: BundleId,
    bundle_schema_version: u64,
    exported_at: String,
    integrity: Integrity,
    producer: Producer,
    /// There when the session was damaged and this is what could be saved of it.
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    /// Blobs that are not JSON, in base64.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
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
    let session = &bundle.session;
    let mut events = Events::new(session.session_id);
    let (digest, length) = events.read(session)?;
    let mut found = vec![entry("session/events", digest, length)];
    let manifest = manifest_lines(session, &mut found)?;
    let there = blobs(session, &mut found)?;
    check_integrity(&bundle.integrity, &found)?;
    let events = events.checked()?;
    check_manifest(session.session_id, &manifest, &events)?;
    let blobs = needed(there, &events)?;
    let root = canonical::digest(&bundle.integrity).map_err(invalid)?;
    Ok(Opened {
        bundle: bundle.bundle_id,
        session: session.session_id,
        events,
        blobs,
        root,
        salvage: bundle.salvage,
    })
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::InvalidFormat(error.to_string())
}

fn read(bytes: &[u8]) -> Result<RawBundle<'_>, Error> {
    if bytes.len() > BYTES_MAX {
        let found = bytes.len();
        return Err(invalid(format_args!(
            "it has {found} bytes, and at most {BYTES_MAX} are read"
        )));
    }
    let Versioned { bundle_schema_version } = serde_json::from_slice(bytes).map_err(invalid)?;
    match bundle_schema_version.as_ref().map(|version| version.get()) {
        Some(version) if version.parse() == Ok(VERSION) => {}
        Some(version) => {
            // What is no number of JSON's is no version either.
            serde_json::from_str::<Value>(version).map_err(invalid)?;
            let version: String = version.chars().take(64).collect();
            let what = format!("bundleSchemaVersion is {version}, and {VERSION} is known");
            return Err(Error::UnsupportedVersion(what));
        }
        None => return Err(invalid("it has no bundleSchemaVersion")),
    }
    serde_json::from_slice(bytes).map_err(invalid)
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

/// The bytes of a blob that is text in base64, and the digest and length of the text.
fn blob(text: &str) -> Result<(Vec<u8>, Digest, u64), Error> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if let Some(inner) = inner.filter(|inner| inner.bytes().all(plain)) {
        // It is in canonical form as it stands, and may be long.
        let bytes = STANDARD.decode(inner).map_err(invalid)?;
        return Ok((bytes, Digest::of(text.as_bytes()), text.len() as u64));
    }
    let text: String = canonical::parse_foreign(text.as_bytes()).map_err(invalid)?;
    let line = canonical::to_vec(&text).map_err(invalid)?;
    let bytes = STANDARD.decode(text).map_err(invalid)?;
    Ok((bytes, Digest::of(&line), line.len() as u64))
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

/// The events of a bundle, as far as they were read.
struct Events {
    session: SessionId,
    read: Vec<Event>,
    facts: HashSet<DedupeKey>,
    /// What is wrong with the first that is wrong. Damage is told as such, and so the digests
    /// are looked at first.
    wrong: Option<Error>,
    items: u64,
}

/// How many items are looked at once one of them is no event: far more than a session has.
const ITEMS_MAX: u64 = 200_000;

impl Events {
    fn new(session: SessionId) -> Self {
        Self { session, read: Vec::new(), facts: HashSet::new(), wrong: None, items: 0 }
    }

    /// Reads the events one by one, and gives the digest of all and their length.
    fn read(&mut self, session: &RawContents<'_>) -> Result<(Digest, u64), Error> {
        listed(session.events, |value, _| {
            if self.wrong.is_none() {
                self.wrong = self.take(&value).err();
            }
            self.items += 1;
            match self.wrong.take_if(|_| self.items > ITEMS_MAX) {
                Some(error) => Err(error),
                None => Ok(()),
            }
        })
    }

    fn take(&mut self, value: &StrictValue) -> Result<(), Error> {
        let place = self.read.len();
        let event = Event::from_value(value)
            .map_err(|error| invalid(format_args!("event {place}: {error}")))?;
        if event.newer.is_some() {
            let (needs, kind) = (event.needs(), event.data.kind().name());
            let what =
                format!("event {place} ({kind}) needs format {needs}, and {FORMAT} is known");
            return Err(Error::UnsupportedVersion(what));
        }
        if let Some(id) = named(&event.data).filter(|id| !is_workflow_id(id)) {
            let shown = truncate(&inert(id), ID_SHOWN_MAX);
            let form = "`namespace.name`, in lower-case letters, digits, `_` and `-`";
            return Err(invalid(format_args!(
                "event {place}: `{shown}` is not the id of a workflow, which is {form}"
            )));
        }
        if event.index.0 != place as u64 {
            let found = event.index;
            return Err(Error::EventOrder(format!("event {found} stands at place {place}")));
        }
        if event.session != self.session {
            return Err(Error::EventOrder(format!("event {place} belongs to another session")));
        }
        if !self.facts.insert(event.dedupe_key()) {
            return Err(Error::EventOrder(format!("event {place} repeats an earlier fact")));
        }
        self.read.push(event);
        Ok(())
    }

    /// The events, which are the log of one session.
    fn checked(self) -> Result<Vec<Event>, Error> {
        if let Some(error) = self.wrong {
            return Err(error);
        }
        match self.read.first().map(|event| &event.data) {
            Some(EventData::SessionCreated(_)) => {
                lineage::check(&self.read)
                    .map_err(|broken| Error::EventOrder(broken.to_string()))?;
                Ok(self.read)
            }
            _ => Err(Error::EventOrder("the first event is not session_created".into())),
        }
    }
}

/// How much of an id that is none is shown.
const ID_SHOWN_MAX: usize = 80;

/// The workflow that an event names.
fn named(data: &EventData) -> Option<&str> {
    match data {
        EventData::RunStarted(run) => Some(&run.workflow_id),
        EventData::RunQueued(run) => Some(&run.workflow_id),
        EventData::TriggerReceived(trigger) => Some(&trigger.workflow_id),
        EventData::SessionListed(listed) => Some(&listed.workflow_id),
        _ => None,
    }
}

/// Hands over every item of a list, read and in canonical form, and gives the digest and the
/// length of the list in canonical form.
fn listed(
    list: &RawValue,
    mut take: impl FnMut(StrictValue, &[u8]) -> Result<(), Error>,
) -> Result<(Digest, u64), Error> {
    let mut digest = Digest::running();
    digest.update(b"[");
    let mut between: &[u8] = b"";
    raw::items(list, &mut |item| {
        let value: StrictValue = canonical::parse_foreign(item.as_bytes()).map_err(invalid)?;
        let line = canonical::to_vec(&value).map_err(invalid)?;
        digest.update(between);
        digest.update(&line);
        between = b",";
        take(value, &line)
    })?;
    digest.update(b"]");
    Ok(digest.finish())
}

fn entry(path: impl Into<String>, sha256: Digest, bytes: u64) -> Entry {
    Entry { bytes, path: path.into(), sha256 }
}

fn manifest_lines(session: &RawContents<'_>, found: &mut Vec<Entry>) -> Result<Vec<u8>, Error> {
    let mut lines = Vec::new();
    let (digest, length) = listed(session.manifest, |_, line| {
        lines.extend_from_slice(line);
        lines.push(b'\n');
        Ok(())
    })?;
    found.push(entry("session/manifest", digest, length));
    Ok(lines)
}

/// Blobs by their digests, as their names have it.
type There = BTreeMap<String, Vec<u8>>;

/// Reads the blobs, and lists what they must be attested as.
fn blobs(session: &RawContents<'_>, found: &mut Vec<Entry>) -> Result<There, Error> {
    let mut there = There::new();
    let json = [("snapshots", session.snapshots), ("pinnedWorkflows", session.pinned_workflows)];
    for (folder, object) in json {
        raw::members(object, &mut |name, text| {
            let value: StrictValue = canonical::parse_foreign(text.as_bytes()).map_err(invalid)?;
            let bytes = canonical::to_vec(&value).map_err(invalid)?;
            let path = format!("session/{folder}/{name}");
            found.push(entry(path, Digest::of(&bytes), bytes.len() as u64));
            there.insert(name.to_owned(), bytes);
            Ok(())
        })?;
    }
    let Some(object) = session.blobs else { return Ok(there) };
    raw::members(object, &mut |name, text| {
        let path = format!("session/blobs/{name}");
        let (bytes, digest, length) = blob(text)?;
        found.push(entry(path, digest, length));
        there.insert(name.to_owned(), bytes);
        Ok(())
    })?;
    Ok(there)
}

/// The manifest has to attest exactly the events that are there, byte for byte.
fn check_manifest(session: SessionId, lines: &[u8], events: &[Event]) -> Result<(), Error> {
    let scan = manifest::scan(lines);
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
        if record.session() != session {
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
fn needed(found: There, events: &[Event]) -> Result<Blobs, Error> {
    let mut there: BTreeMap<Digest, Vec<u8>> = BTreeMap::new();
    for (name, bytes) in found {
        let digest: Digest = name.parse().map_err(invalid)?;
        if Digest::of(&bytes) != digest {
            return Err(Error::IntegrityFailed(format!("the blob {digest} has other bytes")));
        }
        there.insert(digest, bytes);
    }
    let mut blobs = Blobs::new();
    let mut taken: HashMap<Digest, Vec<(BlobKind, usize)>> = HashMap::new();
    for Pin { blob_kind, event_index, snapshot_ref, .. } in events.iter().flat_map(Event::pins) {
        let places = taken.entry(snapshot_ref).or_default();
        if places.iter().any(|(kind, _)| *kind == blob_kind) {
            continue;
        }
        let known = places.first().and_then(|(_, place)| blobs.get(*place));
        let bytes = known.map(|(_, bytes): &(_, Vec<u8>)| bytes.clone());
        match bytes.or_else(|| there.remove(&snapshot_ref)) {
            Some(bytes) => {
                places.push((blob_kind, blobs.len()));
                blobs.push((blob_kind, bytes));
            }
            None if blob_kind == BlobKind::Plan => return Err(Error::MissingPlan(snapshot_ref)),
            None => {
                let (kind, digest, event) = (blob_kind, snapshot_ref, event_index);
                return Err(Error::MissingBlob { kind, digest, event });
            }
        }
    }
    Ok(blobs)
}

#[cfg(test)]
mod tests;
