//! What this process has: the desks of workflows, the lanes of sessions, and those that fell.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_core::id::SessionId;
use cairn_store::Epoch;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as MutexGuardAsync, watch};

use super::Left;
use super::desk::Desk;
use super::lane::Lane;
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::host::{Host, Task};

#[derive(Default)]
pub(super) struct Lanes {
    /// The workflows that this process admits runs of.
    pub(super) desks: Mutex<BTreeMap<Identity, Arc<Desk>>>,
    /// The session that new runs of a workflow go into.
    pub(super) by_workflow: AsyncMutex<BTreeMap<Identity, SessionId>>,
    /// The sessions whose lane fell and is not back yet, and why.
    pub(super) down: Mutex<BTreeMap<SessionId, (String, String)>>,
    /// How many lanes fell.
    pub(super) falls: AtomicU64,
    /// Every lane of this process.
    pub(super) open: Mutex<BTreeMap<SessionId, Lane>>,
    /// What hears other processes, for each desk.
    pub(super) listening: Mutex<BTreeMap<SessionId, Task>>,
    /// Held by whoever answers a letter.
    hearing: Hearing,
    /// Held while sessions are taken over, so that none is taken twice.
    taking: AsyncMutex<()>,
    /// Whether nothing more is begun.
    pub(super) draining: AtomicBool,
    /// Whether the steps of runs are left to another process.
    pub(super) holding: AtomicBool,
    /// Whether nothing more is taken over or opened.
    stopped: AtomicBool,
}

/// How many letters are being answered.
struct Hearing(watch::Sender<usize>);

impl Default for Hearing {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

/// A letter that is being answered.
pub(super) struct Answering(watch::Sender<usize>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The right to take sessions over, which one at a time has, and nobody in a process that stopped.
pub(super) struct Taking<'l>(#[expect(dead_code, reason = "it is held")] MutexGuardAsync<'l, ()>);

impl Lanes {
    pub(super) fn open(&self) -> MutexGuard<'_, BTreeMap<SessionId, Lane>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, session: SessionId) -> Option<Lane> {
        self.open().get(&session).cloned()
    }

    /// Forgets a lane that is over. Its session may have another one by now.
    pub(super) fn forget(&self, session: SessionId, epoch: Epoch) {
        let mut open = self.open();
        if open.get(&session).is_some_and(|lane| lane.epoch == epoch) {
            open.remove(&session);
        }
    }

    pub(super) fn listening(&self) -> MutexGuard<'_, BTreeMap<SessionId, Task>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps sessions from being taken over by others for as long as it is held.
    pub(super) async fn taking(&self) -> Result<Taking<'_>> {
        let held = self.taking.lock().await;
        match self.is_stopped() {
            true => Err(Error::Stopping),
            false => Ok(Taking(held)),
        }
    }

    /// The sessions that this process is at work on.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.open().keys().copied().collect()
    }

    pub(super) fn all(&self) -> Vec<Lane> {
        self.open().values().cloned().collect()
    }

    /// Notes that a letter is being answered, for as long as this is held.
    pub(super) fn hearing(&self) -> Answering {
        self.hearing.0.send_modify(|count| *count += 1);
        Answering(self.hearing.0.clone())
    }

    /// Begins nothing more, and waits until nothing is under way.
    pub(super) async fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        let drained: Vec<_> = self.all().iter().map(Lane::drain).collect();
        for lane in drained {
            // A lane that ends by itself has nothing under way.
            let _ = lane.await;
        }
    }

    /// Whether this process takes nothing over any more.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether nothing more is begun.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Whether the steps of runs are left to another process.
    pub(super) fn is_holding(&self) -> bool {
        self.holding.load(Ordering::Acquire)
    }

    pub(super) fn hold(&self) {
        self.holding.store(true, Ordering::Release);
    }

    pub(super) async fn stop(&self, host: &dyn Host, patience: Duration) -> Left {
        let mut left = Left::default();
        // What was opened behind this would be opened without what the desks know.
        self.stopped.store(true, Ordering::Release);
        // Whoever writes from now on is heard by the next one, and whoever was heard is answered.
        let listeners = std::mem::take(&mut *self.listening());
        listeners.values().for_each(Task::abort);
        let all = async {
            // Whoever is about to open one does so before.
            drop(self.taking.lock().await);
            for lane in self.all() {
                let Left { finished, parked } = lane.stop().await;
                left.finished += finished;
                left.parked.extend(parked);
            }
            let mut hearing = self.hearing.0.subscribe();
            // Its sender is this one, which is there.
            let _ = hearing.wait_for(|count| *count == 0).await;
        };
        // Whoever takes longer is recovered like anybody else.
        let _ = host.within(patience, all).await;
        self.desks().clear();
        left
    }
}

/// A lane that fell and is not back yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fallen {
    /// Its session.
    pub session: SessionId,
    /// The workflow whose runs are in it.
    pub workflow: String,
    /// Why it fell, or why it cannot be opened again.
    pub why: String,
}

impl Lanes {
    pub(super) fn desks(&self) -> MutexGuard<'_, BTreeMap<Identity, Arc<Desk>>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn down(&self) -> MutexGuard<'_, BTreeMap<SessionId, (String, String)>> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The desk of a workflow, if this process has it.
    pub(super) fn desk(&self, workflow: &Identity) -> Option<Arc<Desk>> {
        self.desks().get(workflow).filter(|desk| !desk.is_lost()).cloned()
    }

    /// The lanes that fell and are not back yet.
    pub(super) fn fallen(&self) -> Vec<Fallen> {
        let fallen = |(session, (workflow, why)): (&SessionId, &(String, String))| Fallen {
            session: *session,
            workflow: workflow.clone(),
            why: why.clone(),
        };
        self.down().iter().map(fallen).collect()
    }

    /// How many lanes fell since this process began.
    pub(super) fn falls(&self) -> u64 {
        self.falls.load(Ordering::Relaxed)
    }

    /// How many runs are under way and how many wait, by workflow.
    pub(super) fn counts(&self) -> BTreeMap<String, (usize, usize)> {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (workflow, desk) in &*self.desks() {
            let (under_way, waiting) = desk.counts();
            let of_id = counts.entry(workflow.id().to_owned()).or_default();
            *of_id = (of_id.0 + under_way, of_id.1 + waiting);
        }
        counts
    }
}
