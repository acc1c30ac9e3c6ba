//! Letting go of runs whose time is over, and of the sessions that they leave empty.
//!
//! A run that is retired is not listed any more. Its bytes are given back with its session,
//! once all runs of that are retired and no new one can come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cairn_core::event::engine::RunRetired;
use cairn_core::event::{By, EventData, NewEvent, Scope};
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::plan::Retention;
use cairn_core::projection::run::RunStatus;
use cairn_store as store;
use cairn_store::port::SessionRead;
use cairn_store::{AppendPlan, Epoch, Store, gc};

use super::desk::Desk;
use super::index::{Filter, Index, Summary};
use super::lanes::Lanes;
use super::papers::is_imported;
use super::workflows::Workflows;
use super::{Inner, Options};
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::record::{Action, Deed, Object, Record};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// How many runs are retired in one commit.
const BATCH_MAX: usize = 1_000;

/// How long runs are kept whose workflow does not say so.
pub const RETENTION: Retention =
    Retention { failed_days: 90, runs_max: 10_000, succeeded_days: 30 };

/// What was let go.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tidied {
    /// How many runs were retired.
    pub runs: usize,
    /// The sessions that went.
    pub sessions: Vec<SessionId>,
    /// How many blobs went that nobody needs any more.
    pub blobs: u64,
}

impl Inner {
    /// Retires the runs whose time is over, removes the sessions that have no others, and
    /// seals what was recorded so far.
    pub(super) async fn tidy(self: &Arc<Self>, now_ms: u64) -> Result<Tidied> {
        let _ = self.index.catch_up().await?;
        let mut tidied = Tidied::default();
        for ((workflow, _), runs) in self.retention.over_by_workflow().await? {
            let expired = self.retention.expired(&workflow, runs, now_ms).await?;
            if expired.is_empty() {
                continue;
            }
            match self.desk(&workflow).await {
                Ok(desk) => {
                    tidied.runs += self.retention.retire(&desk, &expired).await?;
                    let runs: Vec<RunId> = expired.iter().map(|run| run.run).collect();
                    self.steps.performers.remove_workspaces(&runs).await;
                }
                // Whoever admits its runs tidies up after them.
                Err(Error::AdmittedElsewhere { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let _ = self.index.catch_up().await?;
        self.end_full().await;
        tidied.sessions = self.retention.remove_empty().await?;
        if let Some(days) = self.options.guided_days {
            let before_ms = now_ms.saturating_sub(u64::from(days).saturating_mul(DAY_MS));
            tidied.sessions.extend(gc::retire(&self.store, before_ms, false).await?);
        }
        if !tidied.sessions.is_empty() {
            let _ = self.index.catch_up().await?;
            let collected = gc::collect(&self.store, &gc::Policy::default(), now_ms).await?;
            tidied.blobs = collected.deleted_blobs;
        }
        for session in self.lanes.sessions() {
            // What cannot be sealed now stays in its journal, where it is as safe.
            let _ = self.store.log.seal(session).await;
        }
        Ok(tidied)
    }
}

/// Knows which runs nobody needs any more, and lets go of them.
pub(super) struct Keeper {
    pub(super) host: Arc<dyn Host>,
    pub(super) store: Store,
    pub(super) index: Arc<Index>,
    pub(super) workflows: Arc<Workflows>,
    pub(super) lanes: Arc<Lanes>,
    pub(super) options: Arc<Options>,
    pub(super) record: Record,
}

impl Keeper {
    /// Runs that are over and not retired, latest first. What came from elsewhere is counted for
    /// itself, session by session, so that none of ours has to go for it.
    async fn over_by_workflow(
        &self,
    ) -> Result<BTreeMap<(Identity, Option<SessionId>), Vec<Summary>>> {
        let filter = Filter { is_over: Some(true), ..Filter::default() };
        let mut imported: BTreeMap<SessionId, bool> = BTreeMap::new();
        let mut runs: BTreeMap<_, Vec<Summary>> = BTreeMap::new();
        for summary in self.index.list(&filter).await? {
            let session = summary.session;
            let is_imported = match imported.get(&session) {
                Some(known) => *known,
                // One whose origin cannot be read holds up no other.
                None => is_imported(&self.store, session).await.unwrap_or(true),
            };
            imported.insert(session, is_imported);
            let key = (summary.identity(), is_imported.then_some(session));
            runs.entry(key).or_default().push(summary);
        }
        Ok(runs)
    }

    /// The runs of a workflow whose time is over. One that another run waits for stays, and so
    /// does one that still counts for how many may begin.
    async fn expired(
        &self,
        workflow: &Identity,
        runs: Vec<Summary>,
        now_ms: u64,
    ) -> Result<Vec<Summary>> {
        let found = self.workflows.find_same(workflow).await.ok();
        let plan = found.as_ref().and_then(|found| Some(&found.compiled().ok()?.plan));
        let policy = plan.and_then(|plan| plan.policy.retention.as_ref());
        let policy = policy.unwrap_or(&self.options.retention);
        let counts_for_ms = plan.map_or(0, |plan| self.options.rate(plan).per_ms);
        let mut expired = Vec::new();
        for summary in over_policy(runs, policy, now_ms) {
            if summary.begun_ms().saturating_add(counts_for_ms) > now_ms {
                continue;
            }
            let parent = match summary.parent {
                Some(parent) => self.index.find(parent).await?,
                None => None,
            };
            if parent.is_none_or(|parent| parent.is_over()) {
                expired.push(summary);
            }
        }
        Ok(expired)
    }

    /// Records that runs are retired; gives how many.
    async fn retire(&self, desk: &Desk, expired: &[Summary]) -> Result<usize> {
        // What fired is told first: a run that is gone must not be taken for one that was
        // received and never begun.
        let received = expired.iter().filter(|run| run.trigger.is_some()).map(|run| run.run);
        let received: Vec<RunId> = received.collect();
        for runs in received.chunks(BATCH_MAX) {
            self.append_retired(desk.session, runs, Some(desk.epoch())).await?;
        }
        let mut by_session: BTreeMap<SessionId, Vec<&Summary>> = BTreeMap::new();
        for summary in expired {
            by_session.entry(summary.session).or_default().push(summary);
        }
        let mut retired = 0;
        for (session, runs) in by_session {
            for runs in runs.chunks(BATCH_MAX) {
                retired += self.retire_in(session, runs).await?;
            }
        }
        Ok(retired)
    }

    async fn retire_in(&self, session: SessionId, runs: &[&Summary]) -> Result<usize> {
        // Only its owner adds to a session of automations. Whoever is about to go on with its
        // runs waits, and does not find it owned.
        let _taking = self.lanes.taking().await?;
        let lease;
        let fence = match self.lanes.get(session) {
            Some(lane) => lane.epoch,
            None => match self.store.leases.acquire(session, "retire runs").await {
                Ok(acquired) => {
                    lease = acquired;
                    lease.epoch()
                }
                Err(store::Error::Owned { .. } | store::Error::NotFound(_)) => return Ok(0),
                Err(error) => return Err(error.into()),
            },
        };
        let ids: Vec<RunId> = runs.iter().map(|summary| summary.run).collect();
        if !self.append_retired(session, &ids, Some(fence)).await? {
            return Ok(0);
        }
        for summary in runs {
            self.index.note(Summary { is_retired: true, ..(*summary).clone() });
        }
        Ok(runs.len())
    }

    /// Adds that runs are retired to a session; says whether it is there.
    async fn append_retired(
        &self,
        session: SessionId,
        runs: &[RunId],
        fence: Option<Epoch>,
    ) -> Result<bool> {
        let event = |run: &RunId| {
            let (id, scope) = (self.host.event_id()?, Scope::Run(*run));
            Ok(NewEvent { id, scope, data: RunRetired {}.into() })
        };
        let mut events: Vec<NewEvent> = runs.iter().map(event).collect::<Result<_>>()?;
        loop {
            let plan = AppendPlan { events: events.clone(), fence, ..AppendPlan::default() };
            match self.store.log.append(session, plan).await {
                Ok(_) => return Ok(true),
                Err(store::Error::NotFound(_) | store::Error::InvalidPlan(_)) => return Ok(false),
                // Somebody was cut off before the other session was told, or after.
                Err(store::Error::PartlyRecorded { .. }) => {
                    let known = self.retired_in(session).await?;
                    let fresh = |event: &NewEvent| {
                        event.scope.run().is_some_and(|run| !known.contains(&run))
                    };
                    events.retain(fresh);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The runs that a session says are retired.
    pub(super) async fn retired_in(&self, session: SessionId) -> Result<BTreeSet<RunId>> {
        let events = self.store.log.read(session, EventIndex(0)).await?;
        let retired = events.iter().filter(|e| matches!(e.data, EventData::RunRetired(_)));
        Ok(retired.filter_map(|event| event.scope.run()).collect())
    }

    /// Removes the sessions whose runs are all retired.
    async fn remove_empty(&self) -> Result<Vec<SessionId>> {
        let mut removed = Vec::new();
        for SessionRead { session, workflow, next, .. } in self.store.runs.sessions().await? {
            // One that this process is at work on may get new runs.
            if workflow.is_none() || self.lanes.get(session).is_some() {
                continue;
            }
            let filter = Filter { session: Some(session), with_retired: true, ..Filter::default() };
            let runs = self.index.list(&filter).await?;
            let is_new = runs.is_empty() && self.options.is_young(session, self.host.now_ms());
            if is_new || !runs.iter().all(|run| run.is_retired) {
                continue;
            }
            if self.store.log.status(session).await.is_ok_and(|status| status.kept) {
                continue;
            }
            let workflow = runs.first().map(|run| run.workflow.clone());
            let object = Object { session: Some(session), workflow, ..Object::default() };
            let (by, action) = (By::engine(), Action::RetireSession);
            self.record.note(Deed { by, action, object, arguments: None }).await?;
            let last = EventIndex(next.0.saturating_sub(1));
            match self.store.sessions.retire(session, last, None).await {
                Ok(true) => removed.push(session),
                // It is kept, it has moved, or somebody is at work on it.
                Ok(false)
                | Err(
                    store::Error::Locked { .. }
                    | store::Error::Owned { .. }
                    | store::Error::NotFound(_),
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(removed)
    }
}

/// Those of a workflow's runs, latest first, that its policy does not keep.
fn over_policy(runs: Vec<Summary>, policy: &Retention, now_ms: u64) -> Vec<Summary> {
    let mut kept = 0;
    let mut over = |summary: &Summary| {
        let days = match summary.status {
            RunStatus::Failed => policy.failed_days,
            _ => policy.succeeded_days,
        };
        let age_ms = now_ms.saturating_sub(summary.ended_ms.unwrap_or(summary.queued_ms));
        let is_over = kept >= policy.runs_max || age_ms >= u64::from(days) * DAY_MS;
        kept += u32::from(!is_over);
        is_over
    };
    runs.into_iter().filter(|summary| over(summary)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u64, status: RunStatus, age_days: u64) -> Summary {
        let ended_ms = (1_000 - age_days) * DAY_MS;
        Summary {
            run: RunId::from_bits(number.into()),
            session: SessionId::from_bits(1),
            workflow: "w".to_owned(),
            place: None,
            status,
            first: EventIndex(number),
            last: None,
            queued_ms: ended_ms - 1,
            started_ms: None,
            ended_ms: Some(ended_ms),
            trigger: None,
            parent: None,
            snapshot: None,
            is_retired: false,
            is_paper: false,
        }
    }

    #[test]
    fn runs_go_by_age_and_by_number_and_failed_ones_stay_longer() {
        use RunStatus::{Cancelled, Failed, Succeeded};
        let runs = vec![
            run(0, Succeeded, 0),
            run(1, Failed, 29),
            run(2, Succeeded, 29),
            run(3, Succeeded, 30),
            run(4, Cancelled, 31),
            run(5, Failed, 89),
            run(6, Failed, 90),
        ];
        let over = |runs_max| {
            let policy = Retention { runs_max, ..RETENTION };
            let over = over_policy(runs.clone(), &policy, 1_000 * DAY_MS);
            over.iter().map(|run| run.first.0).collect::<Vec<_>>()
        };
        assert_eq!(over(10), [3, 4, 6]);
        assert_eq!(over(2), [2, 3, 4, 5, 6]);
    }
}
