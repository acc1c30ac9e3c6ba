//! What others hold of a lane.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cairn_core::flow::Command;
use cairn_core::id::{RunId, SessionId};
use cairn_store::Epoch;
use cairn_store::port::Lease;
use cairn_store::port::mailbox::Followers;
use tokio::sync::{mpsc, oneshot};

use super::{Actor, Message, NewRun};
use crate::error::{Error, Result};
use crate::flow::{Inner, Left};

/// A handle to a lane.
#[derive(Clone)]
pub(in crate::flow) struct Lane {
    pub(in crate::flow) session: SessionId,
    pub(in crate::flow) epoch: Epoch,
    messages: mpsc::UnboundedSender<Message>,
    shared: Arc<Shared>,
}

/// What is known of a lane from outside.
#[derive(Default)]
pub(super) struct Shared {
    /// How many bytes its session has.
    pub(super) bytes: AtomicU64,
    /// Whether it takes no new runs.
    pub(super) closed: AtomicBool,
    /// Those in other processes who want to know when something is recorded.
    pub(super) followers: OnceLock<Followers>,
}

impl Lane {
    /// Begins to decide for a session that this process owns.
    pub(in crate::flow) fn open(
        inner: &Arc<Inner>,
        workflow: &str,
        lease: Box<dyn Lease>,
    ) -> Result<Self> {
        let (messages, inbox) = mpsc::unbounded_channel();
        let (session, shared) = (lease.session(), Arc::<Shared>::default());
        let epoch = lease.epoch();
        let parts = (messages.clone(), Arc::clone(&shared));
        let actor = Actor::new(inner, workflow, lease, parts)?;
        inner.host.spawn(Box::pin(actor.live(inbox)));
        Ok(Self { session, epoch, messages, shared })
    }

    pub(in crate::flow) fn send(&self, message: Message) -> Result<()> {
        self.messages.send(message).map_err(|_| Error::Broken("the lane has ended".to_owned()))
    }

    pub(in crate::flow) async fn begin(&self, run: NewRun) -> Result<bool> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Begin(Box::new(run), reply))?;
        answer.await.map_err(|_| Error::Broken("the lane has ended".to_owned()))?
    }

    pub(in crate::flow) async fn tell(&self, run: RunId, command: Command) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Tell(run, command, Some(reply)))?;
        answer.await.map_err(|_| Error::Broken("the lane has ended".to_owned()))?
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
