//! Saying of a session under other names what was said under its own.
//!
//! A session that moves keeps what happened in it, and may get other ids: its runs have ids that
//! are taken, it names runs of another machine, or places that only that machine has. Names stand
//! in events and in snapshots, and some follow from others; all of them change together.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::canonical;
use crate::digest::Digest;
use crate::event::{Event, EventData, Scope};
use crate::flow::begins;
use crate::id::{NodeId, RunId, SessionId, TaskId, TimerId};
use crate::instance::StepInstanceKey;
use crate::pin::BlobKind;

/// How many retries of a step have timers that are looked for.
const RETRIES_MAX: u32 = 1_000;

/// Blobs of a session.
pub type Blobs = Vec<(BlobKind, Vec<u8>)>;

/// Which names become which others. What is not named stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// One name becomes another.
    pub fn set(&mut self, from: impl ToString, to: impl ToString) {
        self.0.insert(from.to_string(), to.to_string());
    }

    /// Whether nothing gets another name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A run gets another id, and so does what is named after it in these events.
    pub fn set_run(&mut self, events: &[Event], from: RunId, to: RunId) {
        self.set(from, to);
        let limit = |run: RunId| TimerId::derive(&[&run.to_string(), "run", "limit"]);
        self.set(limit(from), limit(to));
        for event in events.iter().filter(|event| event.scope.run() == Some(from)) {
            if let Some(instance) = named(&event.data) {
                self.set_instance(instance, from, to);
            }
            if let EventData::TimerSet(timer) = &event.data
                && let Some(instance) = &timer.instance
            {
                self.set_timer(timer.timer_id, instance, from, to);
            }
        }
    }

    fn set_instance(&mut self, instance: &StepInstanceKey, from: RunId, to: RunId) {
        let task = |run: RunId| TaskId::derive(&[&run.to_string(), &instance.to_string()]);
        self.set(task(from), task(to));
        self.set(instance.node(from), instance.node(to));
    }

    fn set_timer(&mut self, timer: TimerId, instance: &StepInstanceKey, from: RunId, to: RunId) {
        let of = |run: RunId, purpose: &str| {
            TimerId::derive(&[&run.to_string(), &instance.to_string(), purpose])
        };
        let retries = (0..=RETRIES_MAX).map(|attempt| format!("retry {attempt}"));
        let mut purposes = ["wait", "task"].map(str::to_owned).into_iter().chain(retries);
        if let Some(purpose) = purposes.find(|purpose| of(from, purpose) == timer) {
            self.set(timer, of(to, &purpose));
        }
    }

    /// A value with the other names, in texts and in the names of members.
    fn value(&self, value: Value) -> Value {
        let text = |text: String| self.0.get(&text).cloned().unwrap_or(text);
        match value {
            Value::String(said) => Value::String(text(said)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                let members = members.into_iter();
                Value::Object(
                    members.map(|(name, v)| (text(name), self.value(v))).collect::<Map<_, _>>(),
                )
            }
            other => other,
        }
    }

    fn id<T: std::str::FromStr + ToString + Copy>(&self, id: T) -> T {
        self.0.get(&id.to_string()).and_then(|other| other.parse().ok()).unwrap_or(id)
    }

    fn scope(&self, scope: Scope) -> Scope {
        match scope {
            Scope::Session => scope,
            Scope::Run(run) => Scope::Run(self.id(run)),
            Scope::Node(run, node) => Scope::Node(self.id(run), self.id::<NodeId>(node)),
        }
    }

    fn event(&self, event: Event) -> Result<Event, canonical::Error> {
        let kind = event.data.kind();
        let data = serde_json::to_value(&event.data).map_err(malformed)?;
        let data = EventData::read(kind, &self.value(data).to_string()).map_err(malformed)?;
        let (session, scope) = (self.id(event.session), self.scope(event.scope));
        Ok(Event { session, scope, data, ..event })
    }
}

/// The instance that an event is about, if it names one.
fn named(data: &EventData) -> Option<&StepInstanceKey> {
    match data {
        EventData::TaskOpened(task) => Some(&task.instance),
        other => begins(other),
    }
}

fn malformed(error: impl std::fmt::Display) -> canonical::Error {
    canonical::Error::Json(error.to_string())
}

/// A session under other names, with the blobs that it needs then.
pub fn translate(
    events: Vec<Event>,
    blobs: Blobs,
    mut names: Names,
) -> Result<(Vec<Event>, Blobs), canonical::Error> {
    if names.is_empty() {
        return Ok((events, blobs));
    }
    let (snapshots, mut blobs): (Blobs, Blobs) =
        blobs.into_iter().partition(|(kind, _)| *kind == BlobKind::Snapshot);
    let mut left: BTreeMap<String, Vec<u8>> =
        snapshots.into_iter().map(|(_, bytes)| (Digest::of(&bytes).to_string(), bytes)).collect();
    // A snapshot is named after what it says, and may say the name of an earlier one.
    while !left.is_empty() {
        let ready: Vec<String> = left
            .iter()
            .filter(|(own, bytes)| !says(bytes, left.keys().filter(|name| name != own)))
            .map(|(name, _)| name.clone())
            .collect();
        if ready.is_empty() {
            return Err(malformed("snapshots that name each other"));
        }
        for name in ready {
            let Some(bytes) = left.remove(&name) else { continue };
            let Ok(value) = canonical::parse::<Value>(&bytes) else {
                blobs.push((BlobKind::Snapshot, bytes));
                continue;
            };
            let bytes = canonical::to_vec(&names.value(value))?;
            names.set(name, Digest::of(&bytes));
            blobs.push((BlobKind::Snapshot, bytes));
        }
    }
    let events = events.into_iter().map(|event| names.event(event));
    Ok((events.collect::<Result<_, _>>()?, blobs))
}

/// Whether bytes say one of these names.
fn says<'n>(bytes: &[u8], names: impl Iterator<Item = &'n String>) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    names.into_iter().any(|name| text.contains(name.as_str()))
}

/// The runs that events are about.
#[must_use]
pub fn runs_of(events: &[Event]) -> std::collections::BTreeSet<RunId> {
    events.iter().filter_map(|event| event.scope.run()).collect()
}

/// The runs that events name without being about them, and their sessions.
#[must_use]
pub fn named_elsewhere(events: &[Event]) -> Vec<(RunId, Option<SessionId>)> {
    let own = runs_of(events);
    let mut found = Vec::new();
    for event in events {
        match &event.data {
            EventData::RunQueued(queued) => {
                let parent = queued.parent.as_ref();
                found.extend(parent.map(|parent| (parent.run_id, Some(parent.session_id))));
                let from = queued.forked_from.as_ref();
                found.extend(from.map(|from| (from.run_id, Some(from.session_id))));
            }
            EventData::ChildStarted(child) => {
                found.push((child.child_run_id, Some(child.child_session_id)));
            }
            EventData::ChildFinished(child) => found.push((child.child_run_id, None)),
            EventData::TriggerReceived(received) => found.push((received.run_id, None)),
            _ => {}
        }
    }
    found.retain(|(run, _)| !own.contains(run));
    found
}
