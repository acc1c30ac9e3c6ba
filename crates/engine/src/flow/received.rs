//! What a trigger received: recorded before its run begins, and begun as soon as it can be.
//!
//! A key that is recorded is a promise. Whoever was cut off behind it, by a crash or by a disk,
//! leaves a run that was never begun; whoever has the desk begins it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cairn_core::event::engine::{Payload, RunQueued, TriggerReceived};
use cairn_core::event::guided::RunStarted;
use cairn_core::event::{Event, EventData, NewEvent, Scope};
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::text::Slug;
use cairn_store::port::Which;
use cairn_store::{self as store, AppendPlan, Epoch};
use serde_json::{Value, json};

use super::desk::{Arrived, Desk};
use super::holdings::started;
use super::index::Unread;
use super::intake::{Entry, busy, fitting, triggers_of};
use super::lane::NewRun;
use super::{Inner, payload};
use crate::catalog::Identity;
use crate::error::{Error, Result};

/// How long what was received and cannot begin is left alone.
const OWED_PAUSE: Duration = Duration::from_secs(2);

impl Inner {
    /// Records that a trigger fired; says whether it had been recorded before.
    pub(super) async fn note_received(
        &self,
        desk: &Desk,
        received: TriggerReceived,
        epoch: Epoch,
    ) -> Result<bool> {
        let (id, scope, data) = (self.host.event_id()?, Scope::Session, received.into());
        let mut events = vec![NewEvent { id, scope, data }];
        let blobs = payload::set_aside(&mut events, self.options.inline_max)?;
        let plan = AppendPlan { events, seen: Vec::new(), blobs, fence: Some(epoch) };
        match self.store.log.append(desk.session, plan).await {
            // Nobody can tell whether it is there.
            Err(store::Error::DurabilityLost { .. }) => {
                Err(Error::InDoubt { session: desk.session, owner: None })
            }
            appended => Ok(appended?.replayed),
        }
    }

    /// Whether something asked for a run here, which may be gone since and brought back.
    pub(super) async fn has_received(&self, desk: &Desk, run: RunId) -> Result<bool> {
        let events = self.store.log.read(desk.session, EventIndex(0)).await?;
        let is_it = |event: &Event| match &event.data {
            EventData::TriggerReceived(received) => received.run_id == run,
            _ => false,
        };
        Ok(events.iter().any(is_it))
    }

    /// Refuses while a session that the desk lists is missing and nobody deleted it: what seems
    /// never to have begun may be in there.
    pub(super) async fn require_whole(&self, desk: &Desk) -> Result<()> {
        let events = self.store.log.read(desk.session, EventIndex(0)).await?;
        let listed: BTreeSet<SessionId> = events.iter().filter_map(listed).collect();
        for session in listed {
            let is_missing =
                matches!(self.store.log.status(session).await, Err(store::Error::NotFound(_)));
            if is_missing && !self.store.sessions.is_deleted(session).await? {
                (self.options.trouble)(&format!(
                    "{session}, in which runs of `{}` are, is missing, and so nothing begins that was \
                     received and may be in it. Put it back or, if it is gone for good, make an \
                     empty file of that name in the folder `deleted` of the data directory",
                    desk.workflow.id()
                ));
                return Err(Error::LaneDown { session });
            }
        }
        // One of them may have come back since the list of runs was last read.
        self.index.catch_up().await?.require_all()
    }

    /// Takes the desks of workflows that received something which was not begun, or that cannot
    /// be read and may have.
    pub(super) async fn take_received(self: &Arc<Self>, unread: &Unread) -> Result<()> {
        let workflows: Vec<Identity> =
            self.workflows.list()?.iter().map(|found| found.identity().clone()).collect();
        let owed = self.index.sessions(&Which::Unsettled).await?;
        // One that cannot be begun, for want of a setting perhaps, holds up no other.
        let mut failed = None;
        for workflow in workflows {
            // The list of runs has caught up, and says where there may be some.
            let session = triggers_of(&workflow);
            if !owed.contains_key(&session) && !unread.has(session) {
                continue;
            }
            match self.desk(&workflow).await {
                Ok(_) | Err(Error::AdmittedElsewhere { .. }) => {}
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Begins what was received at a desk and not begun when somebody ended; what cannot begin
    /// now, later.
    pub(super) async fn begin_received(self: &Arc<Self>, desk: &Arc<Desk>) {
        let is_done = match self.begin_owed(desk).await {
            Ok(is_done) => is_done,
            Err(error) => {
                let id = desk.workflow.id();
                (self.options.trouble)(&format!("what `{id}` received cannot be read: {error}"));
                false
            }
        };
        if !is_done {
            self.begin_later(desk);
        }
    }

    /// Begins what was received at a desk and not begun; says whether that is all of it.
    async fn begin_owed(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<bool> {
        let read = self.index.session(desk.session).await?;
        // The list of runs has caught up, and says from where on there may be some.
        let from = match read {
            Some(read) if read.mark.is_some() => return Ok(true),
            read => read.map_or(EventIndex(0), |read| read.next),
        };
        let events = self.store.log.read(desk.session, from).await?;
        let (mut is_done, mut is_whole) = (true, false);
        for (run, (_, received)) in asked_for(&events) {
            if self.index.find(run).await?.is_some() {
                continue;
            }
            if !is_whole {
                self.require_whole(desk).await?;
                is_whole = true;
                if self.index.find(run).await?.is_some() {
                    continue;
                }
            }
            if let Err(error) = self.begin_one(desk, received.clone()).await {
                is_done = false;
                let key = &received.key;
                (self.options.trouble)(&format!(
                    "what `{}` received as `{key}` cannot begin yet: {error}",
                    desk.workflow.id()
                ));
            }
        }
        Ok(is_done)
    }

    /// Begins what was received and not begun, as soon as that is possible.
    pub(super) fn begin_later(self: &Arc<Self>, desk: &Arc<Desk>) {
        if !desk.owes() {
            return;
        }
        let (inner, host) = (Arc::downgrade(self), Arc::clone(&self.host));
        let desk = Arc::downgrade(desk);
        self.host.spawn(Box::pin(async move {
            host.sleep(OWED_PAUSE).await;
            let (Some(inner), Some(desk)) = (inner.upgrade(), desk.upgrade()) else { return };
            desk.owes_no_more();
            let again = async {
                // It may have been lost meanwhile.
                let desk = inner.desk(&desk.workflow).await?;
                inner.holdings.know([desk.session].into_iter()).await?;
                inner.begin_received(&desk).await;
                Ok(())
            };
            match again.await {
                // Whoever admits its runs by now sees to it.
                Ok(()) | Err(Error::AdmittedElsewhere { .. } | Error::Stopping) => {}
                Err(_) => inner.begin_later(&desk),
            }
        }));
    }

    /// Begins a run that was received before: it was admitted then, and keeps its place.
    async fn begin_one(
        self: &Arc<Self>,
        desk: &Arc<Desk>,
        received: TriggerReceived,
    ) -> Result<()> {
        let TriggerReceived { payload, run_id, trigger_id, by, via, .. } = received;
        let claim = match desk.arrive(run_id).await {
            Arrived::New(claim) => claim,
            Arrived::Known => return Ok(()),
            Arrived::Unknown(session) => return Err(Error::LaneDown { session }),
            Arrived::Busy => return Err(busy(desk.workflow.id())),
        };
        // Whoever asked for it again may have begun it since, and it may be over.
        if self.index.find(run_id).await?.is_some() {
            return Ok(());
        }
        let kept = payload::value(&self.store, &payload).await?;
        let depth = kept.get("depth").and_then(Value::as_u64).unwrap_or_default();
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        let found = self.workflows.find_same(&desk.workflow).await?;
        let plan = &found.compiled()?.plan;
        let event = kept.get("event").cloned().unwrap_or_default();
        let event = fitting(plan, Some(&trigger_id), event)?;
        let env = self.steps.environment.settings(found.identity(), plan).await?;
        let ready = self.plans.pin(&found).await?;
        let started = started(&found, &ready);
        let queued = RunQueued {
            advance: None,
            by,
            via,
            workspace: None,
            depth,
            forked_from: None,
            input: Payload::inline(json!({"env": env, "event": event})),
            parent: None,
            trigger_id: Some(trigger_id),
            workflow_id: started.workflow_id.clone(),
            workflow_source_ref: Some(started.workflow_source_ref.clone()),
        };
        let (id, forked, admitted) = (run_id, None, claim.epoch);
        self.begin(desk, NewRun { id, ready, queued, started, forked, admitted }).await
    }
}

/// What is kept of something that starts a run.
pub(super) fn received(
    workflow: &RunStarted,
    entry: &Entry,
    trigger: &Slug,
    key: &str,
    event: &Value,
) -> TriggerReceived {
    TriggerReceived {
        by: Some(entry.by.name.clone()),
        key: key.to_owned(),
        payload: Payload::inline(json!({"event": event, "depth": entry.depth})),
        run_id: entry.run,
        trigger_id: trigger.clone(),
        via: entry.by.via.clone(),
        workflow_id: workflow.workflow_id.clone(),
        workflow_source_ref: Some(workflow.workflow_source_ref.clone()),
    }
}

/// What was received, and where, by the run that it asks for; without runs that were begun and
/// are over for so long that they may be gone.
pub(super) fn asked_for(events: &[Event]) -> BTreeMap<RunId, (EventIndex, &TriggerReceived)> {
    let mut asked = BTreeMap::new();
    for event in events {
        match (&event.data, event.scope.run()) {
            (EventData::TriggerReceived(received), _) => {
                asked.insert(received.run_id, (event.index, received));
            }
            (EventData::RunRetired(_), Some(run)) => {
                asked.remove(&run);
            }
            _ => {}
        }
    }
    asked
}

/// The session that an event of a desk lists.
const fn listed(event: &Event) -> Option<SessionId> {
    match &event.data {
        EventData::SessionListed(listed) => Some(listed.listed_id),
        _ => None,
    }
}
