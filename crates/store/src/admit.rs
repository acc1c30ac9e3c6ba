//! Admitting plans: what a log already holds decides what a plan means for it.
//!
//! Pure, and the same for every backend. A batch is worked out beside the index and joins
//! it only when the backend has made it durable.

use std::collections::{HashMap, HashSet};

use cairn_core::digest::Digest;
use cairn_core::event::{Event, EventData, Kind, Scope, limits};
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::pin::{BlobKind, Pin};

use crate::error::{Error, Result};
use crate::fence::{Epoch, Ownership};
use crate::plan::{AppendPlan, Appended};

/// A fact's dedupe key, as the index holds it: half of its digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FactKey(u128);

impl FactKey {
    pub(crate) fn of(dedupe_key: &str) -> Self {
        Self(Digest::of(dedupe_key.as_bytes()).leading_bits())
    }
}

/// What a log holds, as far as admitting a plan needs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    next: u64,
    facts: HashMap<FactKey, EventIndex>,
    runs: HashMap<RunId, EventIndex>,
    /// Whether any event is of a run that the engine performs.
    performed: bool,
    /// Who may add to it.
    pub(crate) ownership: Ownership,
}

impl Index {
    /// The place of the next event.
    pub(crate) const fn next(&self) -> EventIndex {
        EventIndex(self.next)
    }

    /// The place of the last event.
    pub(crate) fn last(&self) -> Option<EventIndex> {
        self.next.checked_sub(1).map(EventIndex)
    }

    /// Takes in an event that is in the log.
    pub(crate) fn add(&mut self, index: EventIndex, dedupe_key: &str, scope: Scope, kind: Kind) {
        self.next = index.0 + 1;
        self.facts.insert(FactKey::of(dedupe_key), index);
        if let Some(run) = scope.run() {
            self.runs.insert(run, index);
        }
        self.performed = self.performed || kind.is_performed();
    }

    /// Takes in what a batch has made durable.
    pub(crate) fn join(&mut self, batch: Admitted) {
        self.next = batch.next;
        self.facts.extend(batch.facts);
        self.runs.extend(batch.runs);
        self.performed |= batch.performed;
    }
}

/// A plan made ready for any place in a log: its lines lack only their indexes.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    session: SessionId,
    pub(crate) events: Vec<PreparedEvent>,
    seen: Vec<(RunId, Option<EventIndex>)>,
    fence: Option<Epoch>,
}

/// An event whose line lacks only its index.
#[derive(Clone, Debug)]
pub(crate) struct PreparedEvent {
    key: FactKey,
    dedupe_key: String,
    run: Option<RunId>,
    /// The line up to its index, and behind it.
    line: (Vec<u8>, Vec<u8>),
    blobs: Vec<(BlobKind, Digest)>,
    /// The event at place 0, until it has its own.
    event: Event,
}

/// Events in one plan.
const EVENTS_MAX: usize = 10_000;

impl Prepared {
    /// How many bytes its lines have.
    pub(crate) fn bytes(&self) -> usize {
        self.events.iter().map(PreparedEvent::bytes).sum()
    }

    fn is_performed(&self) -> bool {
        self.events.iter().any(|event| event.event.data.kind().is_performed())
    }
}

/// Checks a plan by itself and writes its lines.
pub(crate) fn prepare(session: SessionId, plan: AppendPlan) -> Result<Prepared> {
    if plan.events.is_empty() {
        return Err(Error::InvalidPlan("it has no events"));
    }
    if plan.events.len() > EVENTS_MAX {
        return Err(Error::InvalidPlan("it has more than 10,000 events; append them in parts"));
    }
    let mut facts = HashSet::new();
    let mut events = Vec::with_capacity(plan.events.len());
    for (place, event) in plan.events.into_iter().enumerate() {
        event.check().map_err(|source| Error::InvalidEvent { place, source })?;
        let event = prepare_event(event.at(session, EventIndex(0)))?;
        if event.bytes() > limits::EVENT {
            return Err(Error::InvalidPlan("one of its events is larger than 4 MiB; use a blob"));
        }
        if !facts.insert(event.key) {
            return Err(Error::InvalidPlan("two of its events are the same fact"));
        }
        events.push(event);
    }
    Ok(Prepared { session, events, seen: plan.seen, fence: plan.fence })
}

fn prepare_event(event: Event) -> Result<PreparedEvent> {
    const INDEX: &[u8] = b"\"eventIndex\":0,";
    let dedupe_key = event.dedupe_key().to_string();
    let (run, blobs) = (event.scope.run(), event.data.blobs());
    let mut before = event.encode()?;
    // What follows the index is ids and names, so the last match is the envelope's own.
    let at = before.windows(INDEX.len()).rposition(|window| window == INDEX);
    let at = at.ok_or(Error::InvalidPlan("an event's line has no place for its index"))?;
    let mut behind = before.split_off(at + INDEX.len() - 2);
    behind.remove(0);
    let (key, line) = (FactKey::of(&dedupe_key), (before, behind));
    Ok(PreparedEvent { key, dedupe_key, run, line, blobs, event })
}

impl PreparedEvent {
    /// Writes the event's line, at its place in the log.
    pub(crate) fn write(&self, index: EventIndex, out: &mut Vec<u8>) {
        let (before, behind) = &self.line;
        out.extend_from_slice(before);
        out.extend_from_slice(index.to_string().as_bytes());
        out.extend_from_slice(behind);
        out.push(b'\n');
    }

    /// How many bytes its line has, with the shortest index.
    fn bytes(&self) -> usize {
        self.line.0.len() + 1 + self.line.1.len()
    }

    /// The blobs that the event needs.
    pub(crate) fn blobs(&self) -> &[(BlobKind, Digest)] {
        &self.blobs
    }

    /// The event at its place in the log, for a backend that keeps no lines.
    pub(crate) fn event(&self, index: EventIndex) -> Event {
        Event { index, ..self.event.clone() }
    }

    pub(crate) fn pins(&self, index: EventIndex) -> impl Iterator<Item = Pin> + '_ {
        self.blobs.iter().map(move |(blob_kind, digest)| Pin {
            blob_kind: *blob_kind,
            created_by_event_id: self.event.id,
            event_index: index,
            snapshot_ref: *digest,
        })
    }
}

/// What a plan means for a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// Its events go there.
    Append(Appended),
    /// Its events are there already.
    Replay(Appended),
}

/// What a batch adds to an index.
#[derive(Debug)]
pub(crate) struct Admitted {
    next: u64,
    facts: HashMap<FactKey, EventIndex>,
    runs: HashMap<RunId, EventIndex>,
    performed: bool,
}

impl Admitted {
    /// A batch on top of an index.
    pub(crate) fn on(index: &Index) -> Self {
        Self { next: index.next, facts: HashMap::new(), runs: HashMap::new(), performed: false }
    }

    /// Decides what a plan means, after the batch's earlier plans. The fence comes first: a
    /// replaced owner is told so, even of what is recorded already.
    pub(crate) fn admit(&mut self, index: &Index, plan: &Prepared) -> Result<Admission> {
        self.check_fence(index, plan)?;
        let there: Vec<Option<EventIndex>> =
            plan.events.iter().map(|event| self.fact(index, event.key)).collect();
        if let Some(known) = there.iter().flatten().min().zip(there.iter().flatten().max()) {
            return replay(plan, &there, known);
        }
        self.check_runs(index, plan)?;
        let first_kind = plan.events.first().map(|event| &event.event.data);
        if self.next == 0 && !matches!(first_kind, Some(EventData::SessionCreated(_))) {
            return Err(Error::InvalidPlan("a session's first event is session_created"));
        }
        let first = EventIndex(self.next);
        for event in &plan.events {
            let at = EventIndex(self.next);
            self.facts.insert(event.key, at);
            if let Some(run) = event.run {
                self.runs.insert(run, at);
            }
            self.next += 1;
        }
        self.performed = self.performed || plan.is_performed();
        let last = EventIndex(self.next - 1);
        Ok(Admission::Append(Appended { first, last, replayed: false, session_bytes: 0 }))
    }

    fn check_fence(&self, index: &Index, plan: &Prepared) -> Result<()> {
        match plan.fence {
            // It may have been removed since it was acquired.
            Some(_) if self.next == 0 => Err(Error::NotFound(plan.session)),
            Some(held) => index.ownership.check(plan.session, held),
            None => {
                let performed = index.performed || self.performed || plan.is_performed();
                index.ownership.check_unfenced(plan.session, performed)
            }
        }
    }

    fn fact(&self, index: &Index, key: FactKey) -> Option<EventIndex> {
        self.facts.get(&key).or_else(|| index.facts.get(&key)).copied()
    }

    fn check_runs(&self, index: &Index, plan: &Prepared) -> Result<()> {
        for (run, expected) in &plan.seen {
            let actual = self.runs.get(run).or_else(|| index.runs.get(run)).copied();
            if actual != *expected {
                return Err(Error::Conflict { run: *run, expected: *expected, actual });
            }
        }
        Ok(())
    }
}

/// A plan whose facts are there is answered with where they are; a half-known one is refused.
fn replay(
    plan: &Prepared,
    there: &[Option<EventIndex>],
    (first, last): (&EventIndex, &EventIndex),
) -> Result<Admission> {
    let name = |found: bool| {
        let event = plan.events.iter().zip(there).find(|(_, at)| at.is_some() == found);
        event.map(|(event, _)| event.dedupe_key.clone())
    };
    match (name(true), name(false)) {
        (Some(key), Some(missing)) => Err(Error::PartlyRecorded { key, missing }),
        _ => Ok(Admission::Replay(Appended {
            first: *first,
            last: *last,
            replayed: true,
            session_bytes: 0,
        })),
    }
}
