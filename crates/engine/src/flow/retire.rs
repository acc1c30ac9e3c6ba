//! Letting go of runs whose time is over, and of the sessions that they leave empty.
//!
//! A run that is retired is not listed any more. Its bytes are given back with its session,
//! once all runs of that are retired and no new one can come.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cairn_core::event::engine::RunRetired;
use cairn_core::event::{By, EventData, NewEvent, Scope};
use cairn_core::id::{EventIndex, RunId, SessionId};
use cairn_core::plan::Retention;
use cairn_core::projection::run::RunStatus;
use cairn_store as store;
use cairn_store::port::{SessionRead, Which};
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
        let _ = self.index.look_at_all().await?;
        let mut tidied = Tidied::default();
        let mut looked = Looked::new(now_ms);
        // A portion at a time, so that it does not matter how many there are.
        while let Some(expired) = self.retention.expired(&mut looked).await? {
            for (workflow, runs) in expired {
                tidied.runs += self.retire(&workflow, &runs).await?;
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

    /// Retires runs of a workflow; gives how many.
    async fn retire(self: &Arc<Self>, workflow: &Identity, expired: &[Summary]) -> Result<usize> {
        let desk = match self.desk(workflow).await {
            Ok(desk) => desk,
            // Whoever admits its runs retires them, too.
            Err(Error::AdmittedElsewhere { .. }) => return Ok(0),
            Err(error) => return Err(error),
        };
        let retired = self.retention.retire(&desk, expired).await?;
        let runs: Vec<RunId> = expired.iter().map(|run| run.run).collect();
        self.steps.performers.remove_workspaces(&runs).await;
        Ok(retired)
    }
}

/// How far a pass over the runs that are over has come, latest first.
struct Looked {
    now_ms: u64,
    /// The last one that was looked at.
    before: Option<(u64, RunId)>,
    /// What came from elsewhere is counted for itself, session by session, so that none of ours
    /// has to go for it.
    tallies: BTreeMap<(Identity, Option<SessionId>), Tally>,
    imported: BTreeMap<SessionId, bool>,
}

impl Looked {
    const fn new(now_ms: u64) -> Self {
        Self { now_ms, before: None, tallies: BTreeMap::new(), imported: BTreeMap::new() }
    }
}

/// How many runs of a workflow are kept so far.
struct Tally {
    policy: Retention,
    /// For how long a run counts for how many may begin.
    counts_for_ms: u64,
    kept: u32,
}

impl Tally {
    /// Whether the time of a run is over. Those of its workflow come one after another, latest
    /// first.
    fn is_over(&mut self, summary: &Summary, now_ms: u64) -> bool {
        let days = match summary.status {
            RunStatus::Failed => self.policy.failed_days,
            _ => self.policy.succeeded_days,
        };
        let age_ms = now_ms.saturating_sub(summary.ended_ms.unwrap_or(summary.queued_ms));
        let is_over = self.kept >= self.policy.runs_max || age_ms >= u64::from(days) * DAY_MS;
        self.kept += u32::from(!is_over);
        is_over && summary.begun_ms().saturating_add(self.counts_for_ms) <= now_ms
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
    /// The next portion of runs whose time is over, by workflow; none when all were looked at.
    /// One that another run waits for stays, and so does one that still counts for how many may
    /// begin.
    async fn expired(
        &self,
        looked: &mut Looked,
    ) -> Result<Option<BTreeMap<Identity, Vec<Summary>>>> {
        let (is_over, limit) = (Some(true), Some(BATCH_MAX));
        let filter = Filter { is_over, limit, before: looked.before, ..Filter::default() };
        let runs = self.index.list(&filter).await?;
        let Some(last) = runs.last() else { return Ok(None) };
        looked.before = Some((last.queued_ms, last.run));
        let mut expired: BTreeMap<_, Vec<Summary>> = BTreeMap::new();
        for summary in runs {
            if self.is_over(looked, &summary).await && !self.is_awaited(&summary).await? {
                expired.entry(summary.identity()).or_default().push(summary);
            }
        }
        Ok(Some(expired))
    }

    async fn is_over(&self, looked: &mut Looked, summary: &Summary) -> bool {
        let session = summary.session;
        let is_imported = match looked.imported.get(&session) {
            Some(known) => *known,
            // One whose origin cannot be read holds up no other.
            None => is_imported(&self.store, session).await.unwrap_or(true),
        };
        looked.imported.insert(session, is_imported);
        let key = (summary.identity(), is_imported.then_some(session));
        let tally = match looked.tallies.entry(key) {
            Entry::Occupied(tally) => tally.into_mut(),
            Entry::Vacant(place) => {
                let tally = self.tally(&place.key().0).await;
                place.insert(tally)
            }
        };
        tally.is_over(summary, looked.now_ms)
    }

    async fn tally(&self, workflow: &Identity) -> Tally {
        let found = self.workflows.find_same(workflow).await.ok();
        let plan = found.as_ref().and_then(|found| Some(&found.compiled().ok()?.plan));
        let policy = plan.and_then(|plan| plan.policy.retention.clone());
        let policy = policy.unwrap_or_else(|| self.options.retention.clone());
        let counts_for_ms = plan.map_or(0, |plan| self.options.rate(plan).per_ms);
        Tally { policy, counts_for_ms, kept: 0 }
    }

    /// Whether another run waits for one.
    async fn is_awaited(&self, summary: &Summary) -> Result<bool> {
        let Some(parent) = summary.parent else { return Ok(false) };
        let parent = self.index.find(parent).await?;
        Ok(parent.is_some_and(|parent| !parent.is_over()))
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
        for SessionRead { session, seen, .. } in self.store.runs.sessions(&Which::OfAny).await? {
            // One that this process is at work on may get new runs.
            if self.lanes.get(session).is_some() {
                continue;
            }
            let one = Filter { session: Some(session), limit: Some(1), ..Filter::default() };
            if !self.index.list(&one).await?.is_empty() {
                continue;
            }
            let runs = self.index.list(&Filter { with_retired: true, ..one }).await?;
            if runs.is_empty() && self.options.is_young(session, self.host.now_ms()) {
                continue;
            }
            if self.store.log.status(session).await.is_ok_and(|status| status.kept) {
                continue;
            }
            let workflow = runs.first().map(|run| run.workflow.clone());
            let object = Object { session: Some(session), workflow, ..Object::default() };
            let (by, action) = (By::engine(), Action::RetireSession);
            self.record.note(Deed { by, action, object, arguments: None }).await?;
            let last = EventIndex(seen.0.saturating_sub(1));
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
            seen: EventIndex(number + 1),
        }
    }

    #[test]
    fn runs_go_by_age_and_by_number_and_failed_ones_stay_longer() {
        use RunStatus::{Cancelled, Failed, Succeeded};
        let runs = [
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
            let mut tally = Tally { policy, counts_for_ms: 0, kept: 0 };
            let over = runs.iter().filter(|run| tally.is_over(run, 1_000 * DAY_MS));
            over.map(|run| run.first.0).collect::<Vec<_>>()
        };
        assert_eq!(over(10), [3, 4, 6]);
        assert_eq!(over(2), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_run_that_still_counts_for_a_rate_stays() {
        let policy = Retention { runs_max: 0, ..RETENTION };
        let mut tally = Tally { policy, counts_for_ms: DAY_MS, kept: 0 };
        let now_ms = 1_000 * DAY_MS;
        let mut stays = |age_days| !tally.is_over(&run(0, RunStatus::Succeeded, age_days), now_ms);
        assert!(stays(0));
        assert!(!stays(1));
    }
}
