//! What others hold of a lane.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use cairn_core::flow::Command;
use cairn_core::id::{RunId, SessionId};
use cairn_store::Epoch;
use cairn_store::port::Lease;
use cairn_store::port::mailbox::Followers;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};

use super::{Actor, Adopted, Message, NewRun};
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::flow::desk::Desk;
use crate::flow::intake::busy;
use crate::flow::{Inner, Left};
use crate::host::unpanicked;

/// A handle to a lane.
#[derive(Clone)]
pub(in crate::flow) struct Lane {
    pub(in crate::flow) session: SessionId,
    /// The number of the ownership that it decides under.
    pub(in crate::flow) epoch: Epoch,
    workflow: Identity,
    messages: mpsc::UnboundedSender<Message>,
    shared: Arc<Shared>,
    /// Held by the lane itself, and given back with it.
    lease: Weak<dyn Lease>,
}

/// How many may wait for an answer of a lane before others are asked to come back.
const WAITING_MAX: usize = 2_048;

/// What is known of a lane from outside.
pub(super) struct Shared {
    /// The places of those who wait for an answer.
    places: Semaphore,
    /// How many bytes its session has.
    pub(super) bytes: AtomicU64,
    /// Whether it takes no new runs.
    pub(super) closed: AtomicBool,
    /// Those in other processes who want to know when something is recorded.
    pub(super) followers: OnceLock<Followers>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            places: Semaphore::new(WAITING_MAX),
            bytes: AtomicU64::default(),
            closed: AtomicBool::default(),
            followers: OnceLock::default(),
        }
    }
}

impl Lane {
    /// Begins to decide for a session that this process owns, and in which these runs are left.
    pub(in crate::flow) fn open(
        inner: &Arc<Inner>,
        desk: &Arc<Desk>,
        lease: Arc<dyn Lease>,
        left: Vec<Adopted>,
    ) -> Result<Self> {
        let (messages, inbox) = mpsc::unbounded_channel();
        let (session, shared, epoch) = (lease.session(), Arc::<Shared>::default(), lease.epoch());
        let parts = (messages.clone(), Arc::clone(&shared));
        let held = Arc::downgrade(&lease);
        let actor = Actor::new(inner, Arc::clone(desk), lease, parts)?;
        let workflow = desk.workflow.clone();
        let lane = Self { session, epoch, workflow, messages, shared, lease: held };
        // Before anybody can say something to one of them: a run that the lane does not know is
        // over.
        left.into_iter().try_for_each(|run| lane.send(Message::Adopt(Box::new(run))))?;
        // It is known before it begins: one that falls at once is forgotten after that.
        inner.lanes.open().insert(session, lane.clone());
        let supervised = supervise(Arc::downgrade(inner), Arc::clone(desk), actor, inbox);
        inner.host.spawn(Box::pin(supervised));
        Ok(lane)
    }

    /// Compares its epoch with that of its session. One that was replaced hears of it with that,
    /// and ends.
    pub(in crate::flow) async fn verify(&self) -> Result<()> {
        match self.lease.upgrade() {
            Some(lease) => Ok(lease.verify().await?),
            None => Err(self.down()),
        }
    }

    /// The right to decide for the session; none when the lane is over.
    pub(in crate::flow) fn lease(&self) -> Option<Arc<dyn Lease>> {
        self.lease.upgrade()
    }

    /// Completes when it is over and its lease given back.
    pub(in crate::flow) async fn gone(&self) {
        self.messages.closed().await;
    }

    pub(in crate::flow) fn send(&self, message: Message) -> Result<()> {
        self.messages.send(message).map_err(|_| self.down())
    }

    /// Nobody decides for the session at the moment.
    fn down(&self) -> Error {
        Error::LaneDown { session: self.session }
    }

    /// A place among those who wait for an answer of the lane. What its own steps come to needs
    /// none: there are never more of them than were begun.
    fn place(&self) -> Result<SemaphorePermit<'_>> {
        self.shared.places.try_acquire().map_err(|_| busy(self.workflow.id()))
    }

    pub(in crate::flow) async fn begin(&self, run: NewRun) -> Result<()> {
        let _place = self.place()?;
        let (reply, answer) = oneshot::channel();
        self.send(Message::Begin(Box::new(run), reply))?;
        answer.await.map_err(|_| self.down())?
    }

    pub(in crate::flow) async fn tell(&self, run: RunId, command: Command) -> Result<()> {
        let _place = self.place()?;
        let (reply, answer) = oneshot::channel();
        self.send(Message::Tell(run, Box::new(command), Some(reply)))?;
        answer.await.map_err(|_| self.down())?
    }

    /// Has others told when something is recorded.
    pub(in crate::flow) fn is_followed_by(&self, followers: Followers) {
        // A lane is listened to once.
        drop(self.shared.followers.set(followers));
    }

    /// How many bytes the session has, as far as this process has added to it.
    pub(in crate::flow) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Notes how many bytes the session had before.
    pub(in crate::flow) fn has_bytes(&self, bytes: u64) {
        self.shared.bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(in crate::flow) fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Relaxed)
    }

    /// Takes no new runs from now on.
    pub(in crate::flow) fn close(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
    }

    /// Ends the lane when it has no runs.
    pub(in crate::flow) async fn end_if_idle(&self) {
        let (reply, stopped) = oneshot::channel();
        if self.send(Message::StopIfIdle(reply)).is_ok() {
            let _ = stopped.await;
        }
    }

    /// Begins nothing more; the receiver is told when nothing is under way.
    pub(in crate::flow) fn drain(&self) -> oneshot::Receiver<()> {
        let (reply, drained) = oneshot::channel();
        // A lane that has ended has nothing under way.
        let _ = self.send(Message::Drain(reply));
        drained
    }

    pub(in crate::flow) async fn stop(&self) -> Left {
        let (reply, stopped) = oneshot::channel();
        match self.send(Message::Stop(reply)) {
            Ok(()) => stopped.await.unwrap_or_default(),
            Err(_) => Left::default(),
        }
    }
}

/// Lets a lane decide until it is stopped. One that falls, because what it decided was not
/// recorded or because it broke an invariant, is opened again from what is recorded.
async fn supervise(
    inner: Weak<Inner>,
    desk: Arc<Desk>,
    mut actor: Actor,
    mut inbox: mpsc::UnboundedReceiver<Message>,
) {
    let (session, epoch) = (actor.session, actor.lease.epoch());
    let lived = unpanicked(actor.live(&mut inbox)).await;
    let fell = match lived {
        Some(Ok(())) => None,
        Some(Err(error)) => Some(error),
        None => Some(Error::Broken("a lane broke one of its invariants".to_owned())),
    };
    let left = actor.left();
    actor.call_off_all();
    let Some(inner) = inner.upgrade() else { return };
    if fell.is_some() {
        desk.fell(session);
    }
    inner.lanes.forget(session, epoch);
    let stopped = actor.stopped.take();
    // With it goes the lease, and then whoever waits for that is told.
    drop(actor);
    drop(inbox);
    match (fell, stopped) {
        (None, stopped) => {
            // Whoever stops the lane can give up the desk next.
            drop(desk);
            stopped.into_iter().for_each(|tell| drop(tell.send(left.clone())));
        }
        (Some(error), _) => inner.fell(session, &desk, &error),
    }
}
