//! How an event stands in the log: one line of canonical JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DedupeKey, Event, EventData, Invalid, Kind, Newer, Scope};
use crate::canonical::{self, StrictValue};
use crate::format::{self, NEEDS};
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
    /// It says that it needs a format that every program knows, which is never said.
    #[error("the event says that it needs format {0}, which is not said of any event")]
    NeedsNothing(u32),
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

#[derive(Clone, Serialize, Deserialize)]
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
    needs: Option<u32>,
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
    /// The format that a program must know to write the like of it.
    pub needs: u32,
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
            needs: wire.needs.unwrap_or(1),
        })
    }
}

impl Event {
    /// The event's line, without the newline.
    pub fn encode(&self) -> Result<Vec<u8>, canonical::Error> {
        if let Some(newer) = &self.newer {
            return Ok(newer.line().to_vec());
        }
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
        if let Some(needs) = wire.needs {
            return read_newer(&wire, needs, line);
        }
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
            newer: None,
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
    let wire = match serde_json::from_slice::<In<'_>>(line) {
        Ok(wire) => wire,
        Err(error) => read_members(line).unwrap_or_else(|| Err(version_or(line, error)))?,
    };
    match wire.needs {
        Some(needs) if !format::is_newer(needs) => return Err(DecodeError::NeedsNothing(needs)),
        _ => {}
    }
    if wire.v != u64::from(VERSION) {
        return Err(DecodeError::UnknownVersion(wire.v));
    }
    if !DedupeKey::is_well_formed(&wire.dedupe_key) {
        return Err(DecodeError::Malformed("the dedupe key has characters it may not have".into()));
    }
    Ok(wire)
}

/// Reads the members that are known of a line that needs a later format; none when it does not
/// say that it does, for then it has no business to hold anything else.
fn read_members(line: &[u8]) -> Option<Result<In<'_>, DecodeError>> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(line).ok()?;
    let needs: u32 = member(&members, NEEDS).ok()?;
    let read = || {
        Ok(In {
            data: members.get("data").ok_or_else(|| missing("data"))?,
            dedupe_key: Cow::Owned(member(&members, "dedupeKey")?),
            event_id: member(&members, "eventId")?,
            event_index: member(&members, "eventIndex")?,
            kind: Cow::Owned(member(&members, "kind")?),
            needs: Some(needs),
            scope: members.get("scope").map(|_| member(&members, "scope")).transpose()?,
            session_id: member(&members, "sessionId")?,
            v: member(&members, "v")?,
        })
    };
    format::is_newer(needs).then(read)
}

fn member<T: serde::de::DeserializeOwned>(
    members: &BTreeMap<Cow<'_, str>, &RawValue>,
    name: &'static str,
) -> Result<T, DecodeError> {
    let json = members.get(name).ok_or_else(|| missing(name))?;
    let malformed = |error: serde_json::Error| DecodeError::Malformed(format!("{name}: {error}"));
    serde_json::from_str(json.get()).map_err(malformed)
}

fn missing(name: &str) -> DecodeError {
    DecodeError::Malformed(format!("it has no {name}"))
}

/// An event of a later format: what is known of it, and its line as it stands.
fn read_newer(wire: &In<'_>, needs: u32, line: &[u8]) -> Result<Event, DecodeError> {
    let scope = ScopeWire::scope(wire.scope.clone());
    let kind = Kind::named(&wire.kind).filter(|kind| kind.scope_rule().allows(scope));
    let StrictValue(data) = canonical::parse(wire.data.get().as_bytes())
        .map_err(|error| DecodeError::Malformed(error.to_string()))?;
    // What is not as it is known is not guessed at, also when its kind is known.
    let data = kind.and_then(|kind| EventData::read_known(kind, data).ok());
    let dedupe_key = DedupeKey::read(&wire.dedupe_key).ok_or_else(|| missing("dedupeKey"))?;
    Ok(Event {
        id: wire.event_id,
        index: wire.event_index,
        session: wire.session_id,
        scope,
        data: data.unwrap_or_else(|| EventData::Unknown(wire.kind.clone().into_owned())),
        newer: Some(Box::new(Newer::new(needs, dedupe_key, line.to_vec()))),
    })
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
