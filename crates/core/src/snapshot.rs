//! Snapshots: the stored state from which a run goes on.
//!
//! A guided node has an [`ExecutionSnapshot`]; an engine-performed run has a
//! [`RunSnapshot`] now and then. Both are named by the digest of their canonical JSON.

mod state;

pub use state::{Completed, EngineState, Invalid, LoopDecision, LoopFrame, Running, Verdict};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::canonical::{self, StrictValue};
use crate::digest::{Digest, SnapshotRef, WorkflowHash};
use crate::format;
use crate::id::EventIndex;
use crate::projection::run::RunState;

/// The version of both snapshots and of the state inside.
pub const VERSION: u64 = 1;

/// Why bytes are not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A later version wrote it.
    #[error("the snapshot is of version {0}; this program reads version {VERSION}")]
    UnknownVersion(u64),
    /// A kind that this version does not have.
    #[error("`{0}` is not a kind of snapshot that this program knows")]
    UnknownKind(String),
    /// Its state cannot be.
    #[error("the snapshot's state is impossible: {0}")]
    Invalid(#[from] Invalid),
    /// Anything else.
    #[error("not a snapshot: {0}")]
    Malformed(String),
}

/// Any snapshot.
#[derive(Clone, PartialEq, Debug)]
pub enum Snapshot {
    /// Of a guided node.
    Execution(ExecutionSnapshot),
    /// Of an engine-performed run.
    Run(Box<RunSnapshot>),
}

/// Where a guided run stands at a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutionSnapshot {
    /// Where it stands.
    pub state: EngineState,
    /// The plan it stands in.
    pub workflow_hash: WorkflowHash,
}

/// Where an engine-performed run stood after an event.
#[derive(Clone, PartialEq, Debug)]
pub struct RunSnapshot {
    /// The snapshot that this one came after, and without which it is not whole.
    pub base: Option<SnapshotRef>,
    /// Where it stood; with a base, [the part](RunState::since) that is not in it.
    pub state: RunState,
    /// The last event that is in it.
    pub through: EventIndex,
    /// The plan it stood in.
    pub workflow_hash: WorkflowHash,
}

impl Snapshot {
    /// The snapshot's canonical JSON.
    pub fn encode(&self) -> Result<Vec<u8>, canonical::Error> {
        match self {
            Self::Execution(snapshot) => snapshot.encode(),
            Self::Run(snapshot) => snapshot.encode(),
        }
    }

    /// The snapshot's name.
    pub fn reference(&self) -> Result<SnapshotRef, canonical::Error> {
        Ok(name(&self.encode()?))
    }

    /// Whether a guided run is complete here; none when it is the other kind.
    #[must_use]
    pub const fn is_complete(&self) -> Option<bool> {
        match self {
            Self::Execution(snapshot) => Some(snapshot.state.is_complete()),
            Self::Run(_) => None,
        }
    }

    /// Reads a snapshot of either kind.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let malformed = |error: canonical::Error| DecodeError::Malformed(error.to_string());
        let StrictValue(value) = canonical::parse(bytes).map_err(malformed)?;
        let text = |field| value.get(field).and_then(serde_json::Value::as_str);
        let version = value.get("v").and_then(serde_json::Value::as_u64);
        let is_newer = format::needs(&value).is_some_and(format::is_newer);
        match (version, text("kind")) {
            (Some(VERSION), Some(EXECUTION)) => {
                let wire = ExecutionWire::read(value, is_newer)?;
                wire.snapshot().map(Self::Execution)
            }
            (Some(VERSION), Some(RUN)) => {
                let wire: RunWire = read(value, is_newer)?;
                Ok(Self::Run(Box::new(RunSnapshot {
                    base: wire.base,
                    state: wire.state,
                    through: wire.through,
                    workflow_hash: wire.workflow_hash,
                })))
            }
            (Some(VERSION), Some(other)) => Err(DecodeError::UnknownKind(other.to_owned())),
            (Some(VERSION), None) => Err(DecodeError::Malformed("it has no kind".into())),
            (Some(other), _) => Err(DecodeError::UnknownVersion(other)),
            (None, _) => Err(DecodeError::Malformed("it has no version".into())),
        }
    }
}

impl ExecutionSnapshot {
    /// The snapshot's canonical JSON.
    pub fn encode(&self) -> Result<Vec<u8>, canonical::Error> {
        canonical::to_vec(&ExecutionWire {
            engine_payload: PayloadWire { engine_state: self.state.to_wire(), v: VERSION },
            kind: EXECUTION.to_owned(),
            v: VERSION,
            workflow_hash: self.workflow_hash,
        })
    }

    /// The snapshot's name.
    pub fn reference(&self) -> Result<SnapshotRef, canonical::Error> {
        Ok(name(&self.encode()?))
    }

    /// Reads a guided node's snapshot.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        match Snapshot::decode(bytes)? {
            Snapshot::Execution(snapshot) => Ok(snapshot),
            Snapshot::Run(_) => Err(DecodeError::UnknownKind(RUN.to_owned())),
        }
    }
}

impl RunSnapshot {
    /// The snapshot's canonical JSON.
    pub fn encode(&self) -> Result<Vec<u8>, canonical::Error> {
        canonical::to_vec(&RunOut {
            base: self.base,
            kind: RUN,
            state: &self.state,
            through: self.through,
            v: VERSION,
            workflow_hash: self.workflow_hash,
        })
    }

    /// The snapshot's name.
    pub fn reference(&self) -> Result<SnapshotRef, canonical::Error> {
        Ok(name(&self.encode()?))
    }

    /// Reads a run's snapshot.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        match Snapshot::decode(bytes)? {
            Snapshot::Run(snapshot) => Ok(*snapshot),
            Snapshot::Execution(_) => Err(DecodeError::UnknownKind(EXECUTION.to_owned())),
        }
    }
}

const EXECUTION: &str = "execution_snapshot";
const RUN: &str = "run_snapshot";

/// Reads all of a snapshot, or as much as is known of one that needs a later format.
fn read<T: DeserializeOwned>(value: serde_json::Value, is_newer: bool) -> Result<T, DecodeError> {
    let read = if is_newer { format::known(value) } else { T::deserialize(value) };
    read.map_err(|error| DecodeError::Malformed(error.to_string()))
}

fn name(bytes: &[u8]) -> SnapshotRef {
    SnapshotRef(Digest::of(bytes))
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExecutionWire {
    engine_payload: PayloadWire,
    kind: String,
    v: u64,
    workflow_hash: WorkflowHash,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PayloadWire {
    engine_state: state::Wire,
    v: u64,
}

impl ExecutionWire {
    /// The payload has a version of its own, which is asked for before anything in it.
    fn read(value: serde_json::Value, is_newer: bool) -> Result<Self, DecodeError> {
        match value.pointer("/enginePayload/v").and_then(serde_json::Value::as_u64) {
            Some(version) if version != VERSION => Err(DecodeError::UnknownVersion(version)),
            _ => read(value, is_newer),
        }
    }

    fn snapshot(self) -> Result<ExecutionSnapshot, DecodeError> {
        let state = EngineState::from_wire(self.engine_payload.engine_state)?;
        Ok(ExecutionSnapshot { state, workflow_hash: self.workflow_hash })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<SnapshotRef>,
    kind: &'static str,
    state: &'a RunState,
    through: EventIndex,
    v: u64,
    workflow_hash: WorkflowHash,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RunWire {
    #[serde(default)]
    base: Option<SnapshotRef>,
    #[serde(rename = "kind")]
    _kind: String,
    state: RunState,
    through: EventIndex,
    #[serde(rename = "v")]
    _version: u64,
    workflow_hash: WorkflowHash,
}

#[cfg(test)]
mod tests;
