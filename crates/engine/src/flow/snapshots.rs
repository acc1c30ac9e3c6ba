//! Snapshots of long runs, so that nobody has to read all their events to know how they are.

use cairn_core::canonical;
use cairn_core::digest::{Digest, SnapshotRef};
use cairn_core::event::engine::{Payload, SnapshotTaken};
use cairn_core::event::{Event, EventData};
use cairn_core::flow::begins;
use cairn_core::id::EventIndex;
use cairn_core::instance::StepInstanceKey;
use cairn_core::pin::BlobKind;
use cairn_core::projection::run::{Held, RunState};
use cairn_core::snapshot::RunSnapshot;
use cairn_store::Blob;
use cairn_store::port::SnapshotAt;

use super::index::Summary;
use super::{Inner, payload};
use crate::error::{Error, Result};

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

impl Inner {
    /// Stores a snapshot; none when it cannot be.
    pub(super) async fn store_snapshot(&self, snapshot: RunSnapshot) -> Option<Stored> {
        let max = self.options.inline_max;
        let made = self.host.wait_for(move || make(snapshot, max)).await;
        let stored = made.ok()?.ok()?;
        for blob in &stored.blobs {
            self.store.blobs.put(blob.clone()).await.ok()?;
        }
        Some(stored)
    }

    /// How a run is, from its latest snapshot if that can be read and else from all its events.
    /// `events` are those of its session from `from` on.
    pub(super) async fn state_from(
        &self,
        summary: &Summary,
        events: &[Event],
        from: EventIndex,
    ) -> Result<(RunState, Progress)> {
        let own = |event: &&Event| event.scope.run() == Some(summary.run);
        if let Some(latest) = summary.snapshot.filter(|latest| from <= latest.through.next())
            && let Ok(state) = self.snapshot(latest.at).await
        {
            let held = state.held();
            let tail: Vec<&Event> =
                events.iter().filter(own).filter(|event| event.index > latest.through).collect();
            let (latest, events) = (Some(latest), tail.len());
            let progress = Progress { latest, held, events, ..Progress::default() };
            return Ok((self.fold_onto(state, &tail).await?, progress));
        }
        let all;
        let events = match from <= summary.first {
            true => events,
            false => {
                all = self.read(summary, summary.first).await?;
                &all
            }
        };
        let own: Vec<&Event> = events.iter().filter(own).collect();
        let progress = Progress { events: own.len(), ..Progress::default() };
        Ok((self.folded(summary.run, &own).await?, progress))
    }

    /// A run as it was when a step was reached.
    pub(super) async fn state_at(
        &self,
        summary: &Summary,
        step: &StepInstanceKey,
    ) -> Result<RunState> {
        let before = self.snapshot_before(summary, step).await;
        let from = before.as_ref().map_or(summary.first, |(_, through)| through.next());
        let events = self.read(summary, from).await?;
        let own: Vec<&Event> =
            events.iter().filter(|event| event.scope.run() == Some(summary.run)).collect();
        let then = own.iter().position(|event| begins(&event.data) == Some(step));
        let until = own.get(..then.map_or(own.len(), |at| at + 1)).unwrap_or_default();
        match before {
            Some((state, _)) => self.fold_onto(state, until).await,
            None => self.folded(summary.run, until).await,
        }
    }

    /// The latest snapshot in which a step is still to come.
    async fn snapshot_before(
        &self,
        summary: &Summary,
        step: &StepInstanceKey,
    ) -> Option<(RunState, EventIndex)> {
        let mut next = Some(summary.snapshot?.at);
        while let Some(at) = next {
            let part = self.part(at).await.ok()?;
            if part.state.is_before(step) {
                return Some((self.snapshot(at).await.ok()?, part.through));
            }
            next = part.base;
        }
        None
    }

    async fn part(&self, at: SnapshotRef) -> Result<RunSnapshot> {
        let bytes = self.store.blobs.get(BlobKind::Snapshot, at.0).await?;
        RunSnapshot::decode(&bytes).map_err(|error| Error::Broken(error.to_string()))
    }

    /// The state in a snapshot and in those that it came after, with every value in its place.
    pub(super) async fn snapshot(&self, at: SnapshotRef) -> Result<RunState> {
        let RunSnapshot { mut base, state, .. } = self.part(at).await?;
        let mut parts = vec![state];
        while let Some(at) = base {
            let part = self.part(at).await?;
            base = part.base;
            parts.push(part.state);
        }
        let whole = parts.into_iter().rev().reduce(|whole, part| part.onto(whole));
        let mut whole = whole.ok_or_else(|| Error::Broken("a snapshot of nothing".to_owned()))?;
        payload::put_back(&self.store, &mut whole).await?;
        Ok(whole)
    }

    /// Takes events in, with every value in its place.
    pub(super) async fn fold_onto(
        &self,
        mut state: RunState,
        events: &[&Event],
    ) -> Result<RunState> {
        for event in events {
            // What came of a turn becomes part of another value when its loop is over.
            let large = match &event.data {
                EventData::StepCompleted(step) if !step.instance.loop_path.is_empty() => {
                    matches!(step.output, Payload::Blob(_))
                }
                _ => false,
            };
            if large {
                let mut event = (*event).clone();
                payload::put_back_event(&self.store, &mut event.data).await?;
                state.apply(&event);
            } else {
                state.apply(event);
            }
        }
        payload::put_back(&self.store, &mut state).await?;
        Ok(state)
    }
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
