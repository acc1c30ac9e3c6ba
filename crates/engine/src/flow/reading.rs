//! Runs as their sessions have them: what is recorded, and what follows from it.
//!
//! It reads, and changes nothing. Who performs a run does not matter here.

use std::sync::Arc;

use cairn_core::digest::SnapshotRef;
use cairn_core::event::engine::Payload;
use cairn_core::event::{Event, EventData};
use cairn_core::flow::begins;
use cairn_core::id::{EventIndex, RunId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::pin::BlobKind;
use cairn_core::projection::run::{End, Held, RunState};
use cairn_core::snapshot::RunSnapshot;
use cairn_store::Store;
use serde_json::Value;

use super::index::{Filter, Index, Summary};
use super::papers::Papers;
use super::snapshots::Progress;
use super::watch::{Ended, failure};
use super::{payload, unknown};
use crate::error::{Error, Result};
use crate::host::Host;

/// Everything that is recorded of a run.
#[derive(Clone, Debug)]
pub struct Past {
    /// The run at a glance.
    pub summary: Summary,
    /// What happened, oldest first.
    pub events: Vec<Event>,
    /// What follows from it, with every value in its place.
    pub state: RunState,
}

/// Reads runs.
pub(super) struct Reading {
    store: Store,
    index: Arc<Index>,
    papers: Papers,
}

impl Reading {
    pub(super) fn new(host: &Arc<dyn Host>, store: Store, index: Arc<Index>) -> Self {
        Self { papers: Papers::new(Arc::clone(host), store.clone()), store, index }
    }

    /// Runs that came from elsewhere and that nobody trusts yet.
    pub(super) const fn papers(&self) -> &Papers {
        &self.papers
    }

    pub(super) async fn found(&self, run: RunId) -> Result<Summary> {
        if let Some(summary) = self.index.find(run).await? {
            return Ok(summary);
        }
        if let Some(summary) = self.found_anew(run).await? {
            return Ok(summary);
        }
        if let Some(refusal) = self.papers.refusal(run).await? {
            return Err(refusal);
        }
        // It may have been trusted since the list was read, and be no paper any more.
        self.found_anew(run).await?.ok_or_else(|| unknown(run))
    }

    /// A run as the sessions have it, if they do; an error when one of them cannot be read.
    async fn found_anew(&self, run: RunId) -> Result<Option<Summary>> {
        let unread = self.index.catch_up().await?;
        let found = self.index.find(run).await?;
        if found.is_none() {
            unread.require_all()?;
        }
        Ok(found)
    }

    /// Has the list of runs know all sessions.
    pub(super) async fn know_all(&self) -> Result<()> {
        self.index.catch_up().await?.require_all()
    }

    pub(super) async fn list(&self, filter: &Filter) -> Result<Vec<Summary>> {
        // One session that cannot be read does not hide the others.
        let _ = self.index.catch_up().await?;
        self.index.list(filter).await
    }

    /// What its session holds while a run was under way, from an event on.
    pub(super) async fn read(&self, summary: &Summary, from: EventIndex) -> Result<Vec<Event>> {
        let through = summary.last.unwrap_or(EventIndex::LAST);
        Ok(self.store.log.read_between(summary.session, from, through).await?)
    }

    pub(super) async fn past(&self, run: RunId) -> Result<Past> {
        let mut summary = self.found(run).await?;
        let events = self.read(&summary, summary.first).await?;
        let events: Vec<Event> =
            events.into_iter().filter(|event| event.scope.run() == Some(run)).collect();
        let own: Vec<&Event> = events.iter().collect();
        let state = self.folded(run, &own).await?;
        summary.status = state.status();
        Ok(Past { summary, events, state })
    }

    /// How a run is, without its events.
    pub(super) async fn state(&self, run: RunId) -> Result<(Summary, RunState)> {
        let mut summary = self.found(run).await?;
        let from = summary.unread();
        let events = self.read(&summary, from).await?;
        let (state, _) = self.state_from(&summary, &events, from).await?;
        summary.status = state.status();
        Ok((summary, state))
    }

    /// How a run ended, if it has.
    pub(super) async fn end_of(&self, run: RunId) -> Result<Option<Ended>> {
        let (_, state) = self.state(run).await?;
        let Some(end) = &state.end else { return Ok(None) };
        let result = match end {
            End::Succeeded { result } => payload::value(&self.store, result).await?,
            End::Failed { error, instance } => failure(error, instance.as_ref()),
            End::Cancelled {} => Value::Null,
        };
        Ok(Some(Ended { status: end.status(), result, response: None }))
    }

    /// The first and the last event of a run, as far as they are among these; all of them are
    /// read when none is.
    pub(super) async fn ends_of(
        &self,
        summary: &Summary,
        events: &[Event],
    ) -> Result<(Option<EventIndex>, Option<EventIndex>)> {
        let ends = |events: &[Event]| {
            let own = events.iter().filter(|event| event.scope.run() == Some(summary.run));
            let own: Vec<EventIndex> = own.map(|event| event.index).collect();
            own.first().copied().zip(own.last().copied())
        };
        let found = match ends(events) {
            Some(found) => Some(found),
            None => ends(&self.read(summary, summary.first).await?),
        };
        Ok(found.unzip())
    }

    /// A run's state, with every value in its place.
    pub(super) async fn folded(&self, run: RunId, events: &[&Event]) -> Result<RunState> {
        let forked = events.iter().find_map(|event| match &event.data {
            EventData::RunQueued(queued) => queued.forked_from.clone(),
            _ => None,
        });
        let state = match forked {
            // How it was asked for and what it is pinned to are its own.
            Some(from) => {
                let kept = self.snapshot(from.snapshot_ref).await?;
                RunState { run_id: run, queued: None, started: None, ..kept }
            }
            None => RunState::new(run),
        };
        self.fold_onto(state, events).await
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
            let progress = Progress::since(Some(latest), held, tail.len());
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
        let progress = Progress::since(None, Held::default(), own.len());
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
        let until = own.get(..then.unwrap_or(own.len())).unwrap_or_default();
        let mut state = match before {
            Some((state, _)) => self.fold_onto(state, until).await?,
            None => self.folded(summary.run, until).await?,
        };
        // What its first event says of it may be its end, which takes the place of an earlier
        // visit.
        if then.is_some() {
            state.reach(step);
        }
        Ok(state)
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
