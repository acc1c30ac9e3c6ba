//! Moving sessions between stores.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::bundle::{self, Opened, Parts, Producer, Salvage};
use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::{BundleId, EventIndex, SessionId};
use cairn_core::lineage;
use cairn_core::manifest::{Record, Sealed};
use cairn_core::pin::{self, BlobKind, Pin};

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

/// What an import has added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The session as it is known here.
    pub session: SessionId,
    /// The session as it was known where it comes from.
    pub original: SessionId,
    /// How many events it has.
    pub events: u64,
    /// Whether it got a new id because there was a session of its own.
    pub as_new: bool,
}

/// Packs a whole session. Fails on one that is damaged or lacks a blob: [`salvage`] packs what
/// is left of such a one.
pub async fn export(store: &Store, session: SessionId, info: ExportInfo) -> Result<Vec<u8>> {
    let events = store.log.read(session, EventIndex(0)).await?;
    let pins = pinned(store, session, &events).await?;
    let mut blobs = Vec::new();
    for (kind, digest) in named(&pins) {
        blobs.push((kind, store.blobs.get(kind, digest).await?));
    }
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
    (events, pins): (Vec<Event>, Vec<Pin>),
    blobs: Vec<(BlobKind, Vec<u8>)>,
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

/// Adds a bundle's session. Everything is checked first; on any error nothing is stored.
///
/// A session that is here already stays as it is: the bundle's gets the id `fresh`.
pub async fn import(store: &Store, bytes: &[u8], fresh: SessionId) -> Result<Imported> {
    let Opened { bundle, session: original, mut events, blobs, root, .. } = bundle::unpack(bytes)?;
    for (kind, bytes) in blobs {
        store.blobs.put(Blob { kind, bytes }).await?;
    }
    let count = events.len() as u64;
    let origin = Origin { session: original, bundle, root };
    match store.sessions.adopt(original, events.clone(), Some(origin.clone())).await {
        Err(Error::Exists(_)) => {}
        adopted => {
            adopted?;
            return Ok(Imported { session: original, original, events: count, as_new: false });
        }
    }
    for event in &mut events {
        event.session = fresh;
    }
    store.sessions.adopt(fresh, events, Some(origin)).await?;
    Ok(Imported { session: fresh, original, events: count, as_new: true })
}
