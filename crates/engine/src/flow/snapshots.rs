//! Snapshots of long runs, so that nobody has to read all their events to know how they are.

use cairn_core::canonical;
use cairn_core::digest::{Digest, SnapshotRef};
use cairn_core::event::engine::SnapshotTaken;
use cairn_core::id::EventIndex;
use cairn_core::pin::BlobKind;
use cairn_core::projection::run::{Held, RunState};
use cairn_core::snapshot::RunSnapshot;
use cairn_store::port::SnapshotAt;
use cairn_store::{Blob, Store};

use super::index::Summary;
use super::payload;
use crate::error::{Error, Result};
use crate::host::Host;

/// How many bytes of what every snapshot repeats may fall on each event in between.
const BYTES_PER_EVENT: usize = 50;

/// How far the snapshots of a run are.
#[derive(Default)]
pub(super) struct Progress {
    latest: Option<SnapshotAt>,
    held: Held,
    /// How many events came since.
    events: usize,
    /// After how many the next one is due, when that is more than usual.
    due: usize,
    /// What the one under way will hold.
    under_way: Option<Held>,
}

/// A snapshot that is stored, and what is to be recorded of it.
pub(super) struct Stored {
    pub(super) taken: SnapshotTaken,
    pub(super) blobs: Vec<Blob>,
    /// How many of its bytes the next one repeats.
    repeated: usize,
}

impl Progress {
    /// So many events came since the latest one, which holds so much.
    pub(super) fn since(latest: Option<SnapshotAt>, held: Held, events: usize) -> Self {
        Self { latest, held, events, ..Self::default() }
    }

    pub(super) const fn latest(&self) -> Option<SnapshotAt> {
        self.latest
    }

    /// Counts events; says whether a snapshot is due.
    pub(super) fn count(&mut self, events: usize, every: usize) -> bool {
        self.events += events;
        self.under_way.is_none() && self.events >= every.max(self.due)
    }

    /// Begins a snapshot of a run whose events are recorded up to one.
    pub(super) fn begin(&mut self, state: &RunState, through: EventIndex) -> Option<RunSnapshot> {
        let started = state.started.as_ref().filter(|_| state.end.is_none())?;
        if self.under_way.is_some() {
            return None;
        }
        self.events = 0;
        self.under_way = Some(state.held());
        let base = self.latest.map(|latest| latest.at);
        let workflow_hash = started.workflow_hash;
        Some(RunSnapshot { base, state: state.since(&self.held), through, workflow_hash })
    }

    /// Ends a snapshot. One that could not be stored is tried again later.
    pub(super) fn end(&mut self, stored: Option<&Stored>) {
        let (Some(held), Some(stored)) = (self.under_way.take(), stored) else { return };
        self.held = held;
        self.due = stored.repeated / BYTES_PER_EVENT;
        let SnapshotTaken { snapshot_ref, through, .. } = stored.taken;
        self.latest = Some(SnapshotAt { at: snapshot_ref, through });
    }
}

impl Summary {
    /// The first event that has to be read to know how the run is.
    pub(super) fn unread(&self) -> EventIndex {
        self.snapshot.map_or(self.first, |snapshot| snapshot.through.next())
    }
}

/// Stores a snapshot; none when it cannot be. Values of more than so many bytes are kept beside it.
pub(super) async fn keep(
    host: &dyn Host,
    store: &Store,
    snapshot: RunSnapshot,
    inline_max: usize,
) -> Option<Stored> {
    let made = host.wait_for(move || make(snapshot, inline_max)).await;
    let stored = made.ok()?.ok()?;
    for blob in &stored.blobs {
        store.blobs.put(blob.clone()).await.ok()?;
    }
    Some(stored)
}

/// Makes a snapshot ready to be stored.
fn make(mut snapshot: RunSnapshot, inline_max: usize) -> Result<Stored> {
    let broken = |error: canonical::Error| Error::Broken(error.to_string());
    let mut blobs = payload::set_aside_state(&mut snapshot.state, inline_max)?;
    let artifacts = blobs.iter().map(Blob::digest).collect();
    let bytes = snapshot.encode().map_err(broken)?;
    let snapshot_ref = SnapshotRef(Digest::of(&bytes));
    blobs.push(Blob { kind: BlobKind::Snapshot, bytes });
    snapshot.state.loops.values_mut().for_each(|looped| looped.results.clear());
    let repeated = snapshot.encode().map_err(broken)?.len();
    let taken = SnapshotTaken { artifacts, snapshot_ref, through: snapshot.through };
    Ok(Stored { taken, blobs, repeated })
}
