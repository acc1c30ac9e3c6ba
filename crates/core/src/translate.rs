//! Saying of a session under other names what was said under its own.
//!
//! A session that moves keeps what happened in it, and may get other ids: its runs have ids that
//! are taken, it names runs of another machine, or places that only that machine has. Names stand
//! in events and in snapshots, and some follow from others; all of them change together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::canonical;
use crate::digest::Digest;
use crate::event::{Event, EventData, Scope};
use crate::flow::begins;
use crate::id::{NodeId, RunId, SessionId, TaskId, TimerId};
use crate::instance::StepInstanceKey;
use crate::pin::BlobKind;

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

    /// Other names as well. What has one already keeps it.
    pub fn add(&mut self, others: Self) {
        for (from, to) in others.0 {
            self.0.entry(from).or_insert(to);
        }
    }

    /// Whether nothing gets another name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A run gets another id, and so does what is named after it in its events.
    pub fn set_run(&mut self, events: &[&Event], from: RunId, to: RunId) {
        self.set(from, to);
        for event in events {
            if let Some(instance) = named(&event.data) {
                self.set_instance(instance, from, to);
            }
        }
    }

    /// What a run finds again by working its name out; other names are found as they are recorded.
    fn set_instance(&mut self, instance: &StepInstanceKey, from: RunId, to: RunId) {
        let timer =
            |run: RunId| TimerId::derive(&[&run.to_string(), &instance.to_string(), "task"]);
        self.set(timer(from), timer(to));
        let task = |run: RunId| TaskId::derive(&[&run.to_string(), &instance.to_string()]);
        self.set(task(from), task(to));
        self.set(instance.node(from), instance.node(to));
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
    let mut said = BTreeMap::new();
    for (kind, bytes) in snapshots {
        match canonical::parse::<Value>(&bytes) {
            Ok(value) => drop(said.insert(Digest::of(&bytes).to_string(), value)),
            Err(_) => blobs.push((kind, bytes)),
        }
    }
    // A snapshot is named after what it says, and may say the name of an earlier one.
    for name in in_order(&said)? {
        let Some(value) = said.remove(&name) else { continue };
        let bytes = canonical::to_vec(&names.value(value))?;
        names.set(name, Digest::of(&bytes));
        blobs.push((BlobKind::Snapshot, bytes));
    }
    let events = events.into_iter().map(|event| names.event(event));
    Ok((events.collect::<Result<_, _>>()?, blobs))
}

/// The names of values, each behind those that it says.
fn in_order(said: &BTreeMap<String, Value>) -> Result<Vec<String>, canonical::Error> {
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    let mut behind: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in said {
        let mut others = BTreeSet::new();
        mentions(value, &mut |text| {
            others.extend(said.get_key_value(text).map(|(other, _)| other.as_str()));
        });
        others.remove(name.as_str());
        waiting.insert(name, others.len());
        others.into_iter().for_each(|other| behind.entry(other).or_default().push(name));
    }
    let free = waiting.iter().filter(|(_, count)| **count == 0);
    let mut ready: Vec<&str> = free.map(|(name, _)| *name).collect();
    let mut ordered = Vec::with_capacity(said.len());
    while let Some(name) = ready.pop() {
        ordered.push(name.to_owned());
        for other in behind.remove(name).unwrap_or_default() {
            let Some(left) = waiting.get_mut(other) else { continue };
            *left -= 1;
            if *left == 0 {
                ready.push(other);
            }
        }
    }
    match ordered.len() == said.len() {
        true => Ok(ordered),
        false => Err(malformed("snapshots that name each other")),
    }
}

/// Hands over every text of a value.
fn mentions<'v>(value: &'v Value, take: &mut dyn FnMut(&'v str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| mentions(item, take)),
        Value::Object(members) => members.values().for_each(|member| mentions(member, take)),
        _ => {}
    }
}

/// The events of each run.
#[must_use]
pub fn by_run(events: &[Event]) -> BTreeMap<RunId, Vec<&Event>> {
    let mut runs: BTreeMap<RunId, Vec<&Event>> = BTreeMap::new();
    for event in events {
        if let Some(run) = event.scope.run() {
            runs.entry(run).or_default().push(event);
        }
    }
    runs
}

/// The runs that events are about.
#[must_use]
pub fn runs_of(events: &[Event]) -> BTreeSet<RunId> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_names_another_comes_behind_it_however_long_the_chain() {
        let name = |place: usize| format!("s{place:05}");
        let chain: BTreeMap<String, Value> = (0..20_000)
            .map(|place| (name(place), json!({"base": name(place + 1), "own": name(place)})))
            .collect();
        let ordered = in_order(&chain).unwrap();
        assert_eq!(ordered.first(), Some(&name(19_999)));
        assert_eq!(ordered.len(), 20_000);
        assert!(ordered.windows(2).all(|pair| pair[0] > pair[1]));
        let circle: BTreeMap<String, Value> =
            [(name(0), json!([name(1)])), (name(1), json!({"x": name(0)}))].into();
        assert!(in_order(&circle).is_err());
    }

    #[test]
    fn names_change_in_texts_and_in_the_names_of_members_and_nowhere_else() {
        let mut names = Names::default();
        names.set("run_a", "run_b");
        let said = json!({"run_a": ["run_a", "xrun_a", 1], "deep": {"x": "run_a "}});
        let told = json!({"run_b": ["run_b", "xrun_a", 1], "deep": {"x": "run_a "}});
        assert_eq!(names.value(said), told);
    }
}
