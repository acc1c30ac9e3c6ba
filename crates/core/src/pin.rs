//! Pins: which blobs a session needs, named by the events that brought them in.
//!
//! Pins are the only roots of garbage collection, so they follow from the events and
//! from nothing else.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::event::engine::Payload;
use crate::event::guided::OutputPayload;
use crate::event::{Event, EventData};
use crate::id::{EventId, EventIndex};

/// What kind of blob a digest names.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum BlobKind {
    /// The state of a run at a node.
    #[default]
    Snapshot,
    /// A result that is too large for an event.
    Artifact,
    /// A plan.
    Plan,
    /// A file that a plan names.
    Asset,
}

impl BlobKind {
    /// Every kind there is.
    pub const ALL: [Self; 4] = [Self::Snapshot, Self::Artifact, Self::Plan, Self::Asset];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Artifact => "artifact",
            Self::Plan => "plan",
            Self::Asset => "asset",
        }
    }

    const fn is_snapshot(&self) -> bool {
        matches!(self, Self::Snapshot)
    }
}

/// One blob that a session needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pin {
    /// What kind of blob; a snapshot when nothing is said.
    #[serde(default, skip_serializing_if = "BlobKind::is_snapshot")]
    pub blob_kind: BlobKind,
    /// The event that brought it in.
    pub created_by_event_id: EventId,
    /// That event's place.
    pub event_index: EventIndex,
    /// The blob's digest; the name is older than the other kinds of blobs.
    pub snapshot_ref: Digest,
}

/// Pins without repetition: many runs of a session have one plan, and it is named once.
///
/// Snapshots are left as they are, since other readers look for one pin for each node.
#[must_use]
pub fn once(pins: impl IntoIterator<Item = Pin>) -> Vec<Pin> {
    let mut named = HashSet::new();
    let is_new =
        |pin: &Pin| pin.blob_kind.is_snapshot() || named.insert((pin.blob_kind, pin.snapshot_ref));
    pins.into_iter().filter(is_new).collect()
}

impl Event {
    /// The blobs that this event needs.
    #[must_use]
    pub fn pins(&self) -> Vec<Pin> {
        let pin = |(blob_kind, snapshot_ref)| Pin {
            blob_kind,
            created_by_event_id: self.id,
            event_index: self.index,
            snapshot_ref,
        };
        self.data.blobs().into_iter().map(pin).collect()
    }
}

impl EventData {
    /// The blobs that such an event needs.
    #[must_use]
    pub fn blobs(&self) -> Vec<(BlobKind, Digest)> {
        let payload = |payload: &Payload| match payload {
            Payload::Inline(_) => None,
            Payload::Blob(blob) => Some((BlobKind::Artifact, blob.sha256)),
        };
        let one = match self {
            Self::RunStarted(run) => {
                let assets = run.assets.iter().map(|asset| (BlobKind::Asset, *asset));
                return std::iter::once((BlobKind::Plan, run.workflow_hash.0))
                    .chain(assets)
                    .collect();
            }
            Self::NodeCreated(node) => Some((BlobKind::Snapshot, node.snapshot_ref.0)),
            Self::NodeOutputAppended(output) => match &output.payload {
                OutputPayload::Notes { .. } => None,
                OutputPayload::ArtifactRef { sha256, .. } => Some((BlobKind::Artifact, *sha256)),
            },
            Self::SnapshotTaken(taken) => {
                let artifacts = taken.artifacts.iter().map(|large| (BlobKind::Artifact, *large));
                let snapshot = (BlobKind::Snapshot, taken.snapshot_ref.0);
                return std::iter::once(snapshot).chain(artifacts).collect();
            }
            Self::TriggerReceived(trigger) => payload(&trigger.payload),
            Self::StepStarted(step) => step.input.given().and_then(payload),
            Self::StepCompleted(step) => payload(&step.output),
            Self::StepFailed(step) => step.output.as_ref().and_then(payload),
            Self::LoopEntered(entered) => entered.items.as_ref().and_then(payload),
            Self::TaskOpened(task) => payload(&task.request),
            Self::TaskAnswered(task) => payload(&task.answer),
            Self::ChildFinished(child) => payload(&child.output),
            Self::RunCompleted(run) => payload(&run.result),
            Self::RunResumed(run) => run.input.as_ref().and_then(payload),
            Self::RunQueued(run) => {
                let fork = run.forked_from.as_ref();
                let fork = fork.map(|fork| (BlobKind::Snapshot, fork.snapshot_ref.0));
                return payload(&run.input).into_iter().chain(fork).collect();
            }
            _ => None,
        };
        one.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(blob_kind: BlobKind, of: &[u8], at: u64) -> Pin {
        let event_index = EventIndex(at);
        let created_by_event_id = EventId::from_bits(at.into());
        Pin { blob_kind, created_by_event_id, event_index, snapshot_ref: Digest::of(of) }
    }

    #[test]
    fn all_but_snapshots_are_named_once() {
        let pins = [
            pin(BlobKind::Plan, b"p", 0),
            pin(BlobKind::Asset, b"p", 0),
            pin(BlobKind::Snapshot, b"s", 1),
            pin(BlobKind::Plan, b"p", 2),
            pin(BlobKind::Plan, b"q", 2),
            pin(BlobKind::Asset, b"p", 2),
            pin(BlobKind::Snapshot, b"s", 3),
        ];
        let left: Vec<u64> = once(pins).iter().map(|pin| pin.event_index.0).collect();
        assert_eq!(left, [0, 0, 1, 2, 3]);
    }
}
