//! How an event stands in the log: one line of canonical JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DedupeKey, Event, EventData, Invalid, Kind, Scope};
use crate::canonical::{self, StrictValue};
use crate::id::{EventId, EventIndex, NodeId, RunId, SessionId};

/// The version of the event envelope.
pub const VERSION: u32 = 1;

/// How deep an event may nest: a bundle puts a few levels around it.
const DEPTH_MAX: usize = canonical::DEPTH_MAX - 8;

/// Why a line is not an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A later version wrote it.
    #[error("the event is of version {0}; this program reads version {VERSION}")]
    UnknownVersion(u64),
    /// A kind that this version does not have.
    #[error("`{0}` is not a kind of event that this program knows")]
    UnknownKind(String),
    /// The payload breaks a rule of its kind.
    #[error("the event breaks a rule: {0}")]
    Invalid(#[from] Invalid),
    /// Its dedupe key is not the one its content asks for.
    #[error("the dedupe key is `{found}`, and its content asks for `{expected}`")]
    WrongKey {
        /// What the line says.
        found: String,
        /// What it should say.
        expected: String,
    },
    /// Anything else.
    #[error("not an event: {0}")]
    Malformed(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScopeWire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node_id: Option<NodeId>,
    run_id: RunId,
}

impl ScopeWire {
    const fn of(scope: Scope) -> Option<Self> {
        match scope {
            Scope::Session => None,
            Scope::Run(run_id) => Some(Self { node_id: None, run_id }),
            Scope::Node(run_id, node_id) => Some(Self { node_id: Some(node_id), run_id }),
        }
    }

    fn scope(wire: Option<Self>) -> Scope {
        match wire {
            None => Scope::Session,
            Some(Self { node_id: None, run_id }) => Scope::Run(run_id),
            Some(Self { node_id: Some(node_id), run_id }) => Scope::Node(run_id, node_id),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Out<'a> {
    data: &'a EventData,
    dedupe_key: &'a str,
    event_id: EventId,
    event_index: EventIndex,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<ScopeWire>,
    session_id: SessionId,
    v: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct In<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(borrow)]
    dedupe_key: Cow<'a, str>,
    event_id: EventId,
    event_index: EventIndex,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    scope: Option<ScopeWire>,
    session_id: SessionId,
    v: u64,
}

/// What the store needs of a line without reading its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The event's own id.
    pub id: EventId,
    /// Its place in the log.
    pub index: EventIndex,
    /// The log it says it stands in.
    pub session: SessionId,
    /// What it is about.
    pub scope: Scope,
    /// The name of what happened, known or not.
    pub kind: Cow<'a, str>,
    /// The name of the fact.
    pub dedupe_key: Cow<'a, str>,
}

impl<'a> Header<'a> {
    /// Reads a line's envelope. The line's digest has vouched for the rest.
    pub fn decode(line: &'a [u8]) -> Result<Self, DecodeError> {
        let wire = read_line(line)?;
        Ok(Self {
            id: wire.event_id,
            index: wire.event_index,
            session: wire.session_id,
            scope: ScopeWire::scope(wire.scope),
            kind: wire.kind,
            dedupe_key: wire.dedupe_key,
        })
    }
}

impl Event {
    /// The event's line, without the newline.
    pub fn encode(&self) -> Result<Vec<u8>, canonical::Error> {
        let key = self.dedupe_key();
        let line = Out {
            data: &self.data,
            dedupe_key: key.as_str(),
            event_id: self.id,
            event_index: self.index,
            kind: self.data.kind().name(),
            scope: ScopeWire::of(self.scope),
            session_id: self.session,
            v: VERSION,
        };
        canonical::to_vec_within(&line, DEPTH_MAX)
    }

    /// Reads a line.
    pub fn decode(line: &[u8]) -> Result<Self, DecodeError> {
        let wire = read_line(line)?;
        let kind = Kind::named(&wire.kind)
            .ok_or_else(|| DecodeError::UnknownKind(wire.kind.clone().into_owned()))?;
        let data = EventData::read(kind, wire.data.get())
            .map_err(|error| DecodeError::Malformed(format!("data of {}: {error}", kind.name())))?;
        let event = Self {
            id: wire.event_id,
            index: wire.event_index,
            session: wire.session_id,
            scope: ScopeWire::scope(wire.scope),
            data,
        };
        event.check()?;
        let expected = event.dedupe_key();
        if expected.as_str() != wire.dedupe_key {
            let found = wire.dedupe_key.into_owned();
            return Err(DecodeError::WrongKey { found, expected: expected.to_string() });
        }
        Ok(event)
    }

    /// Reads an event that is already JSON, as a bundle holds it.
    pub fn from_value(value: &StrictValue) -> Result<Self, DecodeError> {
        let line = canonical::to_vec(value).map_err(|e| DecodeError::Malformed(e.to_string()))?;
        Self::decode(&line)
    }
}

fn read_line(line: &[u8]) -> Result<In<'_>, DecodeError> {
    let wire: In<'_> = serde_json::from_slice(line).map_err(|error| version_or(line, error))?;
    if wire.v != u64::from(VERSION) {
        return Err(DecodeError::UnknownVersion(wire.v));
    }
    if !DedupeKey::is_well_formed(&wire.dedupe_key) {
        return Err(DecodeError::Malformed("the dedupe key has characters it may not have".into()));
    }
    Ok(wire)
}

/// A later version may have other fields, so ask for the version before complaining of them.
fn version_or(line: &[u8], error: serde_json::Error) -> DecodeError {
    #[derive(Deserialize)]
    struct Version {
        v: u64,
    }
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { v }) if v != u64::from(VERSION) => DecodeError::UnknownVersion(v),
        _ => DecodeError::Malformed(error.to_string()),
    }
}
