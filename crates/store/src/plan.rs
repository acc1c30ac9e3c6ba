//! Append plans: what is to become durable, all of it or none.

use cairn_core::digest::Digest;
use cairn_core::event::NewEvent;
use cairn_core::id::{EventIndex, RunId};
use cairn_core::pin::BlobKind;

use crate::fence::Epoch;

/// What is to become durable together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AppendPlan {
    /// The events, in order. The store gives them their indexes.
    pub events: Vec<NewEvent>,
    /// For each run that the plan's author read: the last event it has seen of it, or none.
    pub seen: Vec<(RunId, Option<EventIndex>)>,
    /// Blobs that the events need and that may not be in the store yet.
    pub blobs: Vec<Blob>,
    /// The epoch of the lease under which the plan was made; none when nobody owns the session.
    pub fence: Option<Epoch>,
}

/// Bytes that are kept under their own digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blob {
    /// What they are.
    pub kind: BlobKind,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Blob {
    /// The name under which they are kept.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

/// Where a plan's events are in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// The first.
    pub first: EventIndex,
    /// The last.
    pub last: EventIndex,
    /// Whether they were there already, and nothing was written.
    pub replayed: bool,
    /// How many bytes the events of the session take now.
    pub session_bytes: u64,
}
