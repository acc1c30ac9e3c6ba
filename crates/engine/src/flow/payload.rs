//! Large values are kept beside the log, and put back when a run is loaded.

use cairn_core::canonical::{self, StrictValue};
use cairn_core::event::engine::{BlobRef, Payload};
use cairn_core::event::{EventData, NewEvent};
use cairn_core::pin::BlobKind;
use cairn_core::projection::run::{End, RunState};
use cairn_store::{Blob, Store};

use crate::error::{Error, Result};

/// The payloads of an event.
fn payloads(data: &mut EventData) -> Vec<&mut Payload> {
    match data {
        EventData::TriggerReceived(e) => vec![&mut e.payload],
        EventData::RunQueued(e) => vec![&mut e.input],
        EventData::StepStarted(e) => e.input.given_mut().into_iter().collect(),
        EventData::StepCompleted(e) => vec![&mut e.output],
        EventData::StepFailed(e) => e.output.iter_mut().collect(),
        EventData::LoopEntered(e) => e.items.iter_mut().collect(),
        EventData::TaskOpened(e) => vec![&mut e.request],
        EventData::TaskAnswered(e) => vec![&mut e.answer],
        EventData::ChildFinished(e) => vec![&mut e.output],
        EventData::RunCompleted(e) => vec![&mut e.result],
        EventData::RunResumed(e) => e.input.iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// Moves what is larger than an event should be into blobs.
pub(super) fn set_aside(events: &mut [NewEvent], max: usize) -> Result<Vec<Blob>> {
    let mut blobs = Vec::new();
    for event in events {
        for payload in payloads(&mut event.data) {
            blobs.extend(moved(payload, max)?);
        }
    }
    Ok(blobs)
}

/// Moves what is larger than a value in a snapshot should be into blobs.
pub(super) fn set_aside_state(state: &mut RunState, max: usize) -> Result<Vec<Blob>> {
    let mut blobs = Vec::new();
    for payload in payloads_of(state) {
        blobs.extend(moved(payload, max)?);
    }
    Ok(blobs)
}

/// Moves a large value into a blob, and gives that.
fn moved(payload: &mut Payload, max: usize) -> Result<Option<Blob>> {
    let Payload::Inline(value) = payload else { return Ok(None) };
    if is_small(&value.0, max) {
        return Ok(None);
    }
    let bytes = canonical::to_vec(value).map_err(|e| Error::Broken(e.to_string()))?;
    if bytes.len() <= max {
        return Ok(None);
    }
    let blob = Blob { kind: BlobKind::Artifact, bytes };
    *payload = Payload::Blob(BlobRef {
        byte_length: blob.bytes.len() as u64,
        content_type: "application/json".to_owned(),
        sha256: blob.digest(),
    });
    Ok(Some(blob))
}

/// About how many bytes of memory a value holds that is in its place.
pub(super) fn weight(payload: &Payload) -> usize {
    fn of(value: &serde_json::Value) -> usize {
        use serde_json::Value;
        let more = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of).sum(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| 2 * size_of::<String>() + name.len() + of(value))
                .sum(),
        };
        size_of::<Value>() + more
    }
    match payload {
        Payload::Inline(value) => of(&value.0),
        Payload::Blob(_) => 0,
    }
}

/// Whether a value has no more than so many bytes.
pub(super) fn fits(value: &serde_json::Value, max: usize) -> Result<bool> {
    let written = || canonical::to_vec(value).map_err(|e| Error::Broken(e.to_string()));
    Ok(is_small(value, max) || written()?.len() <= max)
}

/// Whether a value is surely smaller than so many bytes, found without writing it out.
fn is_small(value: &serde_json::Value, max: usize) -> bool {
    fn room(value: &serde_json::Value, left: &mut usize) -> bool {
        use serde_json::Value;
        let taken = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 25,
            Value::String(text) => text.len().saturating_mul(6).saturating_add(2),
            Value::Array(items) => {
                return take(left, 2 + items.len()) && items.iter().all(|item| room(item, left));
            }
            Value::Object(members) => {
                return members.iter().all(|(name, value)| {
                    take(left, name.len().saturating_mul(6).saturating_add(4)) && room(value, left)
                });
            }
        };
        take(left, taken)
    }
    fn take(left: &mut usize, taken: usize) -> bool {
        let rest = left.checked_sub(taken);
        *left = rest.unwrap_or_default();
        rest.is_some()
    }
    room(value, &mut { max })
}

/// The payloads of a run.
fn payloads_of(state: &mut RunState) -> Vec<&mut Payload> {
    let steps = state.steps.values_mut().flat_map(|step| [&mut step.input, &mut step.output]);
    let loops = state.loops.values_mut().flat_map(|looped| {
        let results = looped.results.iter_mut();
        results.chain(looped.items.as_mut()).chain(looped.last.as_mut())
    });
    let tasks = state.tasks.values_mut().map(|task| &mut task.request);
    let queued = state.queued.as_mut().map(|queued| &mut queued.input);
    let result = match &mut state.end {
        Some(End::Succeeded { result }) => Some(result),
        _ => None,
    };
    steps.flatten().chain(loops).chain(tasks).chain(queued).chain(result).collect()
}

/// Puts every value of a run back in its place.
pub(super) async fn put_back(store: &Store, state: &mut RunState) -> Result<()> {
    put_back_all(store, payloads_of(state)).await
}

/// Puts every value of an event back in its place.
pub(super) async fn put_back_event(store: &Store, data: &mut EventData) -> Result<()> {
    put_back_all(store, payloads(data)).await
}

async fn put_back_all(store: &Store, all: Vec<&mut Payload>) -> Result<()> {
    for payload in all {
        if matches!(payload, Payload::Blob(_)) {
            *payload = Payload::Inline(StrictValue::new(value(store, payload).await?));
        }
    }
    Ok(())
}

/// The value of a payload, wherever it is.
pub(super) async fn value(store: &Store, payload: &Payload) -> Result<serde_json::Value> {
    match payload {
        Payload::Inline(value) => Ok(value.0.clone()),
        Payload::Blob(blob) => {
            let bytes = store.blobs.get(BlobKind::Artifact, blob.sha256).await?;
            serde_json::from_slice(&bytes).map_err(|error| Error::Broken(error.to_string()))
        }
    }
}
