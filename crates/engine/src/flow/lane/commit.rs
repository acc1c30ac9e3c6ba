//! Making durable what a lane decided.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::digest::WorkflowHash;
use cairn_core::event::{Event, EventData, NewEvent};
use cairn_core::flow::{Effect, part};
use cairn_core::id::{EventIndex, RunId};
use cairn_store as store;
use cairn_store::port::Room;
use cairn_store::port::mailbox::Followers;
use cairn_store::{AppendPlan, Appended, Blob};
use tokio::sync::{mpsc, oneshot};

use super::{Actor, Message, summary};
use crate::error::{Error, Result};
use crate::flow::watch::Told;
use crate::flow::{Inner, payload};

/// How many events are recorded together.
pub(super) const EVENTS_MAX: usize = 4_096;
/// How long a full disk is left alone before it is looked at again.
pub(super) const ROOM_NAP: Duration = Duration::from_millis(500);

/// What is decided and not yet durable.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) events: Vec<NewEvent>,
    pub(super) blobs: Vec<Blob>,
    pub(super) effects: Vec<(RunId, Effect)>,
    /// Runs that stand elsewhere now than the list of runs says.
    pub(super) moved: Vec<RunId>,
    pub(super) replies: Vec<Reply>,
    /// Child runs whose parent does not wait for them any more.
    pub(super) orphans: Vec<RunId>,
    /// Whether there is room for new runs, once somebody asked.
    pub(super) room: Option<Result<()>>,
}

impl Batch {
    pub(super) async fn room(&mut self, inner: &Inner) -> Result<()> {
        if self.room.is_none() {
            self.room = Some(inner.store.log.room(Room::Run).await.map_err(Error::from));
        }
        self.room.clone().unwrap_or(Ok(()))
    }
}

/// Somebody who waits for what was decided to be durable.
pub(super) struct Reply {
    pub(super) to: oneshot::Sender<Result<()>>,
    pub(super) outcome: Result<()>,
}

impl Actor {
    /// Waits until there is room to record what runs under way come to, or there is nothing to
    /// record any more. They lose nothing by it. Whoever asks for something meanwhile is told that
    /// the disk is full, and everything else is heard later.
    pub(super) async fn wait_for_room(
        &self,
        inner: &Inner,
        heard: &mut VecDeque<Message>,
        inbox: &mut mpsc::UnboundedReceiver<Message>,
    ) {
        while let Err(full @ store::Error::Full { .. }) = inner.store.log.room(Room::Step).await {
            if self.lease.is_lost() {
                return;
            }
            heard.extend(std::iter::from_fn(|| inbox.try_recv().ok()));
            let all = std::mem::take(heard).into_iter();
            heard.extend(all.filter_map(|one| one.unless(true, || full.clone().into())));
            inner.host.sleep(ROOM_NAP).await;
        }
    }

    /// Makes durable what was decided, and then lets it happen.
    pub(super) async fn commit(&mut self, inner: &Arc<Inner>, batch: Batch) -> Result<()> {
        let Batch { events, blobs, effects, moved, replies, orphans, room: _ } = batch;
        if let Err(error) = self.record(inner, events, blobs).await {
            // Before anybody asks again.
            self.desk.fell(self.session);
            // A session that somebody deleted is not what anybody asked for: the next one is.
            let told = match &error {
                Error::Store(store::Error::NotFound(session)) => {
                    Error::LaneDown { session: *session }
                }
                // Nobody can tell whether it is there.
                Error::Store(store::Error::DurabilityLost { .. }) => {
                    Error::InDoubt { session: self.session, owner: None }
                }
                error => error.clone(),
            };
            // Whoever asked may be gone.
            replies.into_iter().for_each(|reply| drop(reply.to.send(Err(told.clone()))));
            return Err(error);
        }
        for active in moved.iter().filter_map(|run| self.runs.get(run)) {
            inner.index.note(summary(self.session, active));
        }
        let steps = effects.iter().filter(|(_, effect)| matches!(effect, Effect::Perform { .. }));
        let is_alone = steps.count() == 1;
        for (run, effect) in effects {
            self.let_happen(inner, run, effect, is_alone).await;
        }
        orphans.into_iter().for_each(|child| inner.cancel_orphan_later(child));
        // Whoever knows how far the session is knows of all runs in it.
        if self.through > EventIndex(0) {
            inner.index.moved(self.session, self.desk.workflow.key(), self.through);
        }
        replies.into_iter().for_each(|reply| drop(reply.to.send(reply.outcome)));
        Ok(())
    }

    async fn record(
        &mut self,
        inner: &Arc<Inner>,
        mut events: Vec<NewEvent>,
        mut blobs: Vec<Blob>,
    ) -> Result<()> {
        let mut through = None;
        while !events.is_empty() {
            let rest = events.split_off(part(&events, EVENTS_MAX));
            blobs.extend(payload::set_aside(&mut events, inner.options.inline_max)?);
            let watched = inner.watchers.is_watched().then(|| events.clone());
            let (seen, touched, begun) = (self.seen(&events), touched(&events), begun(&events));
            let fence = Some(self.lease.epoch());
            let plan = AppendPlan { events, seen, blobs: std::mem::take(&mut blobs), fence };
            let appended = self.append(inner, plan).await?;
            for (run, at) in touched {
                let last = EventIndex(appended.first.0 + at);
                self.runs.entry(run).and_modify(|active| active.last = Some(last));
            }
            self.note_begun(inner, &begun, appended.first);
            self.shared.bytes.store(appended.session_bytes, Ordering::Relaxed);
            through = Some(appended.last);
            self.through = appended.last;
            inner.others.told(self.session, appended.last);
            if let Some(events) = watched {
                self.broadcast(inner, events, appended.first);
            }
            events = rest;
        }
        if let Some(through) = through {
            self.take_snapshots(inner, through);
            self.shared.followers.get().into_iter().for_each(Followers::wake);
        }
        Ok(())
    }

    /// The last event that this lane knows of each run that a plan touches: whoever recorded
    /// another one since has it refused.
    fn seen(&self, events: &[NewEvent]) -> Vec<(RunId, Option<EventIndex>)> {
        let runs: BTreeSet<RunId> = events.iter().filter_map(|event| event.scope.run()).collect();
        let last = |run: RunId| Some((run, self.runs.get(&run)?.last));
        runs.into_iter().filter_map(last).collect()
    }

    /// Appends. A plan that no run of this session was pinned to yet may have been collected
    /// since it was made ready, and is put back then.
    async fn append(&mut self, inner: &Inner, plan: AppendPlan) -> Result<Appended> {
        let fresh = |event: &NewEvent| match &event.data {
            EventData::RunStarted(run) if !self.pinned.contains(&run.workflow_hash) => {
                Some((event.scope.run()?, run.workflow_hash))
            }
            _ => None,
        };
        let fresh: Vec<(RunId, WorkflowHash)> = plan.events.iter().filter_map(fresh).collect();
        let again = (!fresh.is_empty()).then(|| plan.clone());
        let appended = match (inner.store.log.append(self.session, plan).await, again) {
            (Err(store::Error::BlobMissing { .. }), Some(again)) => {
                for active in fresh.iter().filter_map(|(run, _)| self.runs.get(run)) {
                    inner.plans.put(&active.ready).await?;
                }
                inner.store.log.append(self.session, again).await?
            }
            (appended, _) => appended?,
        };
        self.pinned.extend(fresh.into_iter().map(|(_, hash)| hash));
        Ok(appended)
    }

    fn broadcast(&self, inner: &Inner, events: Vec<NewEvent>, first: EventIndex) {
        let places = (first.0..).map(EventIndex);
        let events = events.into_iter().zip(places).map(|(event, at)| event.at(self.session, at));
        let events: Arc<[Event]> = events.collect();
        inner.watchers.tell(&Told { session: self.session, events });
    }

    /// Notes runs that were asked for, each with the place of its own first event.
    fn note_begun(&mut self, inner: &Inner, begun: &[(RunId, u64)], first: EventIndex) {
        for (id, at) in begun {
            if let Some(active) = self.runs.get_mut(id) {
                active.first = EventIndex(first.0 + at);
                inner.index.note(summary(self.session, active));
            }
        }
    }
}

/// The runs that events of a plan ask for, and where.
fn begun(events: &[NewEvent]) -> Vec<(RunId, u64)> {
    let asks = |event: &NewEvent| matches!(event.data, EventData::RunQueued(_));
    let places = events.iter().zip(0_u64..).filter(|(event, _)| asks(event));
    places.filter_map(|(event, at)| Some((event.scope.run()?, at))).collect()
}

/// Where the last event of each run is among those of a plan.
fn touched(events: &[NewEvent]) -> BTreeMap<RunId, u64> {
    let places = events.iter().zip(0_u64..);
    places.filter_map(|(event, at)| Some((event.scope.run()?, at))).collect()
}
