//! Moving sessions between stores.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::bundle::{self, Opened, Parts, Producer, Salvage};
use cairn_core::digest::Digest;
use cairn_core::event::guided::ObservedValue;
use cairn_core::event::{Event, EventData};
use cairn_core::id::{BundleId, EventIndex, RunId, SessionId};
use cairn_core::lineage;
use cairn_core::manifest::{Record, Sealed};
use cairn_core::pin::{self, BlobKind, Pin};
use cairn_core::translate::{self, Names};

use crate::error::{Error, Result};
use crate::health::Health;
use crate::open::Store;
use crate::plan::Blob;
use crate::port::{Origin, Prefix};

/// What a bundle says of how it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ExportInfo {
    pub bundle_id: BundleId,
    pub exported_at: String,
    pub app_version: String,
}

/// What came of an import.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The session as it is known here.
    pub session: SessionId,
    /// The session as it was known where it comes from.
    pub original: SessionId,
    /// How many events it has.
    pub events: u64,
    /// Whether it, or a run of it, got a new id because there is one of its own.
    pub as_new: bool,
    /// Whether the same bundle was here before, and nothing was added.
    pub again: bool,
    /// The digest of all that the bundle vouches for.
    pub root: Digest,
}

/// Packs a whole session. Fails on one that is damaged or lacks a blob: [`salvage`] packs what
/// is left of such a one.
pub async fn export(store: &Store, session: SessionId, info: ExportInfo) -> Result<Vec<u8>> {
    let (events, pins, blobs) = with_pins(store, session).await?;
    pack(session, (events, pins), blobs, None, info)
}

/// The blobs that events need. Those of a later format may need some that only its log names.
async fn pinned(store: &Store, session: SessionId, events: &[Event]) -> Result<Vec<Pin>> {
    let mut pins: Vec<Pin> = events.iter().flat_map(Event::pins).collect();
    if events.iter().any(|event| event.newer.is_some()) {
        let end = EventIndex(events.len() as u64);
        let attested = store.log.status(session).await?.pins;
        pins.extend(attested.into_iter().filter(|pin| pin.event_index < end));
        pins.sort_by_key(|pin| pin.event_index);
        pins.dedup();
    }
    Ok(pin::once(pins))
}

/// What could be packed of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Salvaged {
    /// The bundle.
    pub bytes: Vec<u8>,
    /// How many events are in it.
    pub events: u64,
    /// How many events can be read and are not in it.
    pub left_out: u64,
    /// What is wrong with the session; none when it is whole.
    pub salvage: Option<Salvage>,
}

/// Packs the sound beginning of a session: everything before the first damage, and before the
/// first event that needs a blob that is not there.
///
/// Events keep their places, so what comes after the first loss is left out even where it does
/// not depend on it. The beginning ends where its events fit together, so it can be imported.
pub async fn salvage(store: &Store, session: SessionId, info: ExportInfo) -> Result<Salvaged> {
    let Prefix { mut events, health, damage } = store.log.read_prefix(session).await?;
    let readable = events.len();
    let mut wrong: Vec<String> = damage.into_iter().collect();
    let (sound, mut blobs, lost) = sound_part(store, &events).await?;
    wrong.extend(lost);
    events.truncate(sound);
    while let Err(broken) = lineage::check(&events) {
        // Each round drops an event at least: the broken one.
        events.retain(|event| event.index < broken.index);
    }
    let health = match health {
        // Its history can be read, and it cannot go on everywhere.
        Health::Healthy if !wrong.is_empty() => Health::CorruptTail,
        health => health,
    };
    if events.is_empty() {
        return Err(Error::Corrupt { session, health, what: wrong.join("; ") });
    }
    let (kept, left_out) = (events.len() as u64, (readable - events.len()) as u64);
    let salvage = (health != Health::Healthy)
        .then(|| Salvage { damage: wrong.join("; "), health: health.name().to_owned() });
    let pins = pinned(store, session, &events).await?;
    let needed = named(&pins);
    blobs.retain(|blob, _| needed.contains(blob));
    let blobs = blobs.into_iter().map(|((kind, _), bytes)| (kind, bytes)).collect();
    let bytes = pack(session, (events, pins), blobs, salvage.clone(), info)?;
    Ok(Salvaged { bytes, events: kept, left_out, salvage })
}

type Found = BTreeMap<(BlobKind, Digest), Vec<u8>>;

/// How many events come before the first that needs a lost blob, the blobs of those, and
/// which one is lost.
async fn sound_part(store: &Store, events: &[Event]) -> Result<(usize, Found, Option<String>)> {
    let mut found = Found::new();
    for (place, event) in events.iter().enumerate() {
        for pin in event.pins() {
            let blob = (pin.blob_kind, pin.snapshot_ref);
            if found.contains_key(&blob) {
                continue;
            }
            match store.blobs.get(blob.0, blob.1).await {
                Ok(bytes) => {
                    found.insert(blob, bytes);
                }
                Err(lost @ (Error::BlobMissing { .. } | Error::BlobCorrupt { .. })) => {
                    let lost = format!("{lost}, and event {} needs it", event.index);
                    return Ok((place, found, Some(lost)));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok((events.len(), found, None))
}

fn named(pins: &[Pin]) -> BTreeSet<(BlobKind, Digest)> {
    pins.iter().map(|pin| (pin.blob_kind, pin.snapshot_ref)).collect()
}

fn pack(
    session: SessionId,
    (mut events, mut pins): (Vec<Event>, Vec<Pin>),
    mut blobs: translate::Blobs,
    salvage: Option<Salvage>,
    info: ExportInfo,
) -> Result<Vec<u8>> {
    // What a later format says is carried as it stands.
    if events.iter().all(|event| event.newer.is_none()) {
        let names = places(&events, |place| place.starts_with('/'));
        (events, blobs) = translate::translate(events, blobs, names)?;
        pins = pin::once(events.iter().flat_map(Event::pins));
    }
    seal(session, (events, pins), blobs, salvage, info)
}

/// Packs events and blobs as they stand, whatever they name and say. An export names no place of
/// this machine; whoever makes a bundle by hand is not held to that.
pub fn as_told(
    session: SessionId,
    (events, blobs): (Vec<Event>, translate::Blobs),
    info: ExportInfo,
) -> Result<Vec<u8>> {
    let pins = pin::once(events.iter().flat_map(Event::pins));
    seal(session, (events, pins), blobs, None, info)
}

/// A bundle of these events, with a manifest that fits them.
fn seal(
    session: SessionId,
    (events, pins): (Vec<Event>, Vec<Pin>),
    blobs: translate::Blobs,
    salvage: Option<Salvage>,
    info: ExportInfo,
) -> Result<Vec<u8>> {
    let manifest = attest(session, &events, &pins)?;
    let ExportInfo { bundle_id, exported_at, app_version } = info;
    let producer = Producer { app_version, applied_config_hash: None };
    let bundle = bundle_id;
    let parts = Parts { bundle, exported_at, producer, salvage, session, events, manifest, blobs };
    Ok(bundle::pack(parts)?)
}

/// A manifest for exactly these events, as one segment. Where the segments of a store begin
/// and end is its own business, so equal sessions give equal bundles.
fn attest(session: SessionId, events: &[Event], pins: &[Pin]) -> Result<Vec<Record>> {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for event in events {
        lines.extend(event.encode()?);
        lines.push(b'\n');
    }
    let (first, last) = (first.index, last.index);
    let segment = Sealed { first, last, lines: &lines, pins, commit: None };
    let mut before = None;
    let chained = Record::of(&segment, session).zip(0..).map(|(record, index)| {
        let (record, rec) = record.placed(index).chained(before)?;
        before = Some(rec);
        Ok(record)
    });
    chained.collect()
}

/// Takes a bundle's session in, as paper. Everything is checked first; on any error nothing is
/// stored. The same bundle again changes nothing.
///
/// Ids that are here already stay with what has them, and the bundle's get others, which follow
/// from the bundle. Runs of other sessions that it names are nobody's.
pub async fn import(store: &Store, bytes: &[u8]) -> Result<Imported> {
    let Opened { bundle, session: original, events, blobs, root, .. } = bundle::unpack(bytes)?;
    let papers = store.papers.open()?;
    let count = events.len() as u64;
    let mut imported =
        Imported { session: original, original, events: count, as_new: false, again: false, root };
    if let Some(session) = known(store, &papers, root).await? {
        let as_new = session != original;
        return Ok(Imported { session, again: true, as_new, ..imported });
    }
    let mut names = elsewhere(&events, root);
    names.add(places(&events, |place| !is_elsewhere(place)));
    // What a desk remembers would begin runs: under another id it is nobody's.
    let taken = is_taken(store, &papers, original).await? || events.iter().any(is_of_desk);
    if taken {
        imported.session = SessionId::derive(&["imported", &root.hex(), &original.to_string()]);
        names.set(original, imported.session);
    }
    for (run, own) in translate::by_run(&events) {
        let known = store.runs.find(run).await?.is_some() || papers.runs.find(run).await?.is_some();
        if taken || known {
            let fresh = RunId::derive(&["imported", &root.hex(), &run.to_string()]);
            names.set_run(&own, run, fresh);
            imported.as_new = true;
        }
    }
    imported.as_new |= taken;
    let (events, blobs) = translate::translate(events, blobs, names)?;
    for (kind, bytes) in blobs {
        papers.blobs.put(Blob { kind, bytes }).await?;
    }
    let origin = Origin { session: original, bundle, root, trusted: None };
    match papers.sessions.adopt(imported.session, events, Some(origin)).await {
        // Somebody else takes the same bundle in, at this moment.
        Err(Error::Exists(_)) if known(store, &papers, root).await? == Some(imported.session) => {
            Ok(Imported { again: true, ..imported })
        }
        adopted => adopted.map(|()| imported),
    }
}

/// The session that a bundle became when it was here before.
async fn known(store: &Store, papers: &Store, root: Digest) -> Result<Option<SessionId>> {
    for store in [papers, store] {
        for session in store.sessions.list().await? {
            // One that cannot be read says nothing.
            let origin = store.sessions.origin(session).await.ok().flatten();
            if origin.is_some_and(|origin| origin.root == root) {
                return Ok(Some(session));
            }
        }
    }
    Ok(None)
}

async fn is_taken(store: &Store, papers: &Store, session: SessionId) -> Result<bool> {
    let here = store.sessions.list().await?.contains(&session);
    Ok(here || papers.sessions.list().await?.contains(&session))
}

/// Whether an event stands in the session where the triggers of a workflow are kept, whose id
/// follows from the workflow.
const fn is_of_desk(event: &Event) -> bool {
    matches!(event.data, EventData::TriggerReceived(_) | EventData::SessionListed(_))
}

/// Runs and sessions that a bundle names and does not hold are nobody's here.
fn elsewhere(events: &[Event], root: Digest) -> Names {
    let mut names = Names::default();
    let own = events.first().map(|event| event.session);
    for (run, session) in translate::named_elsewhere(events) {
        names.set(run, RunId::derive(&["elsewhere", &root.hex(), &run.to_string()]));
        if let Some(session) = session.filter(|session| Some(*session) != own) {
            let dead = SessionId::derive(&["elsewhere", &root.hex(), &session.to_string()]);
            names.set(session, dead);
        }
    }
    names
}

/// Adds a whole session with its blobs to a store.
pub async fn adopt(
    store: &Store,
    session: SessionId,
    (events, blobs): (Vec<Event>, translate::Blobs),
    origin: Option<Origin>,
) -> Result<()> {
    for (kind, bytes) in blobs {
        store.blobs.put(Blob { kind, bytes }).await?;
    }
    store.sessions.adopt(session, events, origin).await
}

/// A whole session and the blobs that it needs.
pub async fn whole(store: &Store, session: SessionId) -> Result<(Vec<Event>, translate::Blobs)> {
    let (events, _, blobs) = with_pins(store, session).await?;
    Ok((events, blobs))
}

async fn with_pins(
    store: &Store,
    session: SessionId,
) -> Result<(Vec<Event>, Vec<Pin>, translate::Blobs)> {
    let events = store.log.read(session, EventIndex(0)).await?;
    let pins = pinned(store, session, &events).await?;
    let mut blobs = Vec::new();
    for (kind, digest) in named(&pins) {
        blobs.push((kind, store.blobs.get(kind, digest).await?));
    }
    Ok((events, pins, blobs))
}

/// What a place of this machine is called in a bundle: which it is stays ours, whether two are
/// the same can be told.
#[must_use]
pub fn place_elsewhere(path: &str) -> String {
    let name = path.rsplit('/').next().filter(|name| is_name(name)).unwrap_or("place");
    let digest = Digest::of_parts("place", &[path]).hex();
    format!("{ELSEWHERE}{}/{name}", digest.get(..16).unwrap_or_default())
}

/// How the name of a place begins that another machine has.
const ELSEWHERE: &str = "elsewhere:";

/// Whether a place is one of another machine, under the name that a bundle has for it.
#[must_use]
pub fn is_elsewhere(place: &str) -> bool {
    let named = place.strip_prefix(ELSEWHERE).and_then(|place| place.split_once('/'));
    named.is_some_and(|(digest, name)| {
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        digest.len() == 16 && digest.bytes().all(is_hex) && is_name(name)
    })
}

/// Whether something can be the name of a file, and leads nowhere else.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// The places that events name and that are of one machine, under names that say nothing of it.
fn places(events: &[Event], is_ours: impl Fn(&str) -> bool) -> Names {
    let mut names = Names::default();
    for path in events.iter().flat_map(named_places).filter(|path| is_ours(path)) {
        names.set(path, place_elsewhere(path));
    }
    names
}

/// The files and folders that an event names.
fn named_places(event: &Event) -> Vec<&str> {
    match &event.data {
        EventData::RunStarted(started) => {
            let workspace = started.workspace.as_deref();
            [Some(started.workflow_source_ref.as_str()), workspace].into_iter().flatten().collect()
        }
        EventData::RunQueued(queued) => {
            let named = [queued.workflow_source_ref.as_deref(), queued.workspace.as_deref()];
            named.into_iter().flatten().collect()
        }
        EventData::TriggerReceived(received) => {
            received.workflow_source_ref.as_deref().into_iter().collect()
        }
        EventData::SessionListed(listed) => {
            listed.workflow_source_ref.as_deref().into_iter().collect()
        }
        EventData::ObservationRecorded(seen) => match &seen.value {
            ObservedValue::Path(path) => vec![path.as_str()],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
