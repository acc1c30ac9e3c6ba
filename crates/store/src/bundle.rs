//! Moving sessions between stores.

use std::collections::BTreeSet;

use cairn_core::bundle::{self, Opened, Parts, Producer, Salvage};
use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::{BundleId, SessionId};
use cairn_core::manifest::{Record, Sealed};
use cairn_core::pin::{BlobKind, Pin};

use crate::error::{Error, Result};
use crate::health::Health;
use crate::open::Store;
use crate::plan::Blob;
use crate::port::Origin;

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

/// Packs a session; of a damaged one, what can still be trusted, and says so.
pub async fn export(store: &Store, session: SessionId, info: ExportInfo) -> Result<Vec<u8>> {
    let prefix = store.log.read_prefix(session).await?;
    let salvage = (prefix.health != Health::Healthy).then(|| Salvage {
        damage: prefix.damage.unwrap_or_default(),
        health: prefix.health.name().to_owned(),
    });
    if prefix.events.is_empty() {
        let what = salvage.map(|salvage| salvage.damage).unwrap_or_default();
        return Err(Error::Corrupt { session, health: prefix.health, what });
    }
    let mut blobs = Vec::new();
    let pins: Vec<Pin> = prefix.events.iter().flat_map(Event::pins).collect();
    let needed: BTreeSet<(BlobKind, Digest)> =
        pins.iter().map(|pin| (pin.blob_kind, pin.snapshot_ref)).collect();
    for (kind, digest) in needed {
        blobs.push((kind, store.blobs.get(kind, digest).await?));
    }
    let manifest = attest(session, &prefix.events)?;
    let parts = Parts {
        bundle: info.bundle_id,
        exported_at: info.exported_at,
        producer: Producer { app_version: info.app_version, applied_config_hash: None },
        salvage,
        session,
        events: prefix.events,
        manifest,
        blobs,
    };
    Ok(bundle::pack(parts)?)
}

/// A manifest for exactly these events, as one segment. Where the segments of a store begin
/// and end is its own business, so equal sessions give equal bundles.
fn attest(session: SessionId, events: &[Event]) -> Result<Vec<Record>> {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for event in events {
        lines.extend(event.encode()?);
        lines.push(b'\n');
    }
    let pins: Vec<Pin> = events.iter().flat_map(Event::pins).collect();
    let segment =
        Sealed { first: first.index, last: last.index, lines: &lines, pins: &pins, commit: None };
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
