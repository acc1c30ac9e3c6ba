//! Which sessions this process owns, and who goes on with what was left.
//!
//! Whoever has the desk of a workflow owns every session of it in which a run is not over. So a
//! session is taken by taking the desk first, and a desk is given back when one of its sessions
//! cannot be had.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cairn_core::id::SessionId;
use cairn_store as store;

use super::desk::Desk;
use super::holdings::Unfinished;
use super::index::{Filter, Summary};
use super::lane::Lane;
use super::lanes::Taking;
use super::{Inner, mail};
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::host::Task;

/// How long a session is left alone whose lane could not record what it decided.
pub(super) const REVIVE_MIN: Duration = Duration::from_millis(100);
const REVIVE_MAX: Duration = Duration::from_secs(30);

impl Inner {
    /// The desk of a workflow, which this process takes when nobody has it.
    pub(super) async fn desk(self: &Arc<Self>, workflow: &Identity) -> Result<Arc<Desk>> {
        if let Some(desk) = self.lanes.desk(workflow) {
            return Ok(desk);
        }
        let taking = self.lanes.taking().await?;
        if let Some(desk) = self.lanes.desk(workflow) {
            return Ok(desk);
        }
        let desk = self.take_desk(workflow, &taking).await?;
        drop(taking);
        self.begin_received(&desk).await;
        Ok(desk)
    }

    /// Takes the desk of a workflow, and every session of it in which a run is not over: all of
    /// them or nothing. What they hold is known before anybody is admitted.
    async fn take_desk(self: &Arc<Self>, workflow: &Identity, _: &Taking<'_>) -> Result<Arc<Desk>> {
        let lease = self.holdings.desk_lease(workflow).await?;
        // It lists the sessions.
        self.holdings.know([lease.session()].into_iter()).await?;
        let leases = self.holdings.leases_of(workflow).await?;
        self.holdings.list_at(workflow, lease.epoch(), &leases).await?;
        let sessions = self.index.sessions_of(workflow).await?;
        self.holdings.know(sessions.iter().map(|read| read.session)).await?;
        let lately = self.holdings.begun_lately(workflow).await?;
        let (mut open, mut loaded, mut fallen) = (Vec::new(), Vec::new(), Vec::new());
        for lease in leases {
            let session = lease.session();
            match self.holdings.load(lease).await {
                Ok(left) => {
                    open.push(left.open());
                    loaded.push(left);
                }
                Err(error) => {
                    open.push(self.holdings.listed(session).await?);
                    fallen.push((session, error));
                }
            }
        }
        // A desk that was lost is renewed once everything is loaded: whoever fails on the way has
        // no desk, and nobody is admitted by what was known before.
        let known = self.lanes.desks().get(workflow).cloned();
        let desk = known.unwrap_or_else(|| {
            let (lease, host) = (Arc::clone(&lease), Arc::clone(&self.host));
            let steps_at_once = self.options.steps_at_once_per_workflow;
            Arc::new(Desk::new(workflow.clone(), lease, steps_at_once, host))
        });
        // Whoever had it meanwhile has let in some.
        desk.rate.learn(lately);
        desk.renew(lease, &open, |session| self.lanes.get(session).is_some());
        fallen.iter().for_each(|(session, error)| self.fell(*session, &desk, error));
        for left in loaded {
            let session = left.lease.session();
            // Whoever had one that nothing is left to do in cannot write there any more.
            if left.runs.is_empty() {
                continue;
            }
            if let Err(error) = self.open_left(left, &desk).await {
                self.fell(session, &desk, &error);
            }
        }
        if let Some(listener) = mail::listen_at_desk(self, &desk).await {
            let before = self.lanes.listening().insert(desk.session, listener);
            before.iter().for_each(Task::abort);
        }
        self.lanes.desks().insert(workflow.clone(), Arc::clone(&desk));
        Ok(desk)
    }

    /// Becomes the owner of a session and goes on with its runs.
    pub(super) async fn open_lane(
        self: &Arc<Self>,
        session: SessionId,
        desk: &Arc<Desk>,
        _: &Taking<'_>,
    ) -> Result<Lane> {
        if let Some(lane) = self.lanes.get(session) {
            return Ok(lane);
        }
        let lease = self.holdings.lease_of(session).await?;
        let leases = std::slice::from_ref(&lease);
        self.holdings.list_at(&desk.workflow, desk.epoch(), leases).await?;
        self.holdings.know([session].into_iter()).await?;
        let left = self.holdings.load(lease).await?;
        desk.reload(&left.open());
        self.open_left(left, desk).await
    }

    /// Goes on with what is left to do in a session.
    async fn open_left(self: &Arc<Self>, left: Unfinished, desk: &Arc<Desk>) -> Result<Lane> {
        let Unfinished { lease, runs, bytes } = left;
        let lane = Lane::open(self, desk, lease, runs)?;
        lane.has_bytes(bytes);
        // It may have been opened while all others were told.
        if self.lanes.is_draining() {
            drop(lane.drain());
        }
        mail::listen(self, lane.clone()).await;
        self.lanes.down().remove(&lane.session);
        Ok(lane)
    }

    /// A lane fell. Nothing of what it decided last came to pass, so its runs go on from what is
    /// recorded, as soon as the session can be had again.
    pub(super) fn fell(self: &Arc<Self>, session: SessionId, desk: &Arc<Desk>, error: &Error) {
        let workflow = desk.workflow.clone();
        let id = workflow.id();
        self.lanes.falls.fetch_add(1, Ordering::Relaxed);
        self.lanes.down().insert(session, (id.to_owned(), error.to_string()));
        (self.options.trouble)(&format!(
            "{}: the runs of {id} in {session} are loaded again: {error}",
            error.code()
        ));
        let (inner, host) = (Arc::downgrade(self), Arc::clone(&self.host));
        self.host.spawn(Box::pin(async move {
            let mut pause = REVIVE_MIN;
            loop {
                host.sleep(pause).await;
                let Some(inner) = inner.upgrade() else { return };
                match inner.revive(session, &workflow).await {
                    Ok(()) | Err(Error::Stopping) => return,
                    Err(error) => {
                        let why = (workflow.id().to_owned(), error.to_string());
                        inner.lanes.down().insert(session, why);
                    }
                }
                pause = (pause * 2).min(REVIVE_MAX);
            }
        }));
    }

    /// Opens a session again, unless another process admits its workflow by now: then it owns
    /// the session, too. Either way somebody else may have gone on with its runs meanwhile, so
    /// whoever waits here for one of them is seen to.
    async fn revive(self: &Arc<Self>, session: SessionId, workflow: &Identity) -> Result<()> {
        match self.desk(workflow).await {
            Ok(desk) => {
                let taking = self.lanes.taking().await?;
                match self.open_lane(session, &desk, &taking).await {
                    Ok(_) | Err(Error::Store(store::Error::NotFound(_))) => {}
                    Err(error) => return Err(error),
                }
            }
            Err(Error::AdmittedElsewhere { .. }) => {}
            Err(error) => return Err(error),
        }
        self.tell_of_ends(session).await?;
        self.lanes.down().remove(&session);
        Ok(())
    }

    /// Goes on with what was left, and tells of failures that nobody was told of.
    pub(super) async fn recover(self: &Arc<Self>) -> Result<usize> {
        let taken = self.take_up_all().await;
        self.tell_of_earlier_failures().await?;
        taken
    }

    /// Goes on with what nobody else performs, and begins what was received and not begun.
    pub(super) async fn take_up_all(self: &Arc<Self>) -> Result<usize> {
        let unread = self.index.catch_up().await?;
        let taken = self.take_up_left().await;
        self.take_received(&unread).await?;
        taken
    }

    /// Goes on with every run that is not over and that nobody else performs.
    pub(super) async fn take_up_left(self: &Arc<Self>) -> Result<usize> {
        let _ = self.index.catch_up().await?;
        let open = self.index.list(&Filter { is_over: Some(false), ..Filter::default() }).await?;
        let left = open.iter().filter(|summary| self.lanes.get(summary.session).is_none());
        let workflows: BTreeSet<Identity> = left.map(Summary::identity).collect();
        // One workflow that cannot be gone on with holds up no other.
        let mut failed = None;
        for workflow in workflows {
            match self.take_up(&workflow).await {
                Ok(()) | Err(Error::AdmittedElsewhere { .. }) => {}
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(open.len()), Err)
    }

    /// Takes the desk of a workflow, and whatever of its sessions is left.
    pub(super) async fn take_up(self: &Arc<Self>, workflow: &Identity) -> Result<()> {
        let desk = self.desk(workflow).await?;
        for session in self.holdings.open_sessions(workflow).await? {
            let taking = self.lanes.taking().await?;
            self.open_lane(session, &desk, &taking).await?;
        }
        Ok(())
    }
}
