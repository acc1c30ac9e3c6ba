//! Inboxes within one process, for tests and for a simulated machine.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use async_trait::async_trait;
use cairn_core::id::SessionId;
use tokio::sync::{mpsc, watch};

use crate::error::{Error, Result};
use crate::fence::Epoch;
use crate::port::Lease;
use crate::port::mailbox::{
    Delivery, Follower, Followers, Inbox, LETTERS_MAX, Letter, Mailbox, Openings, Patience, Pause,
};

/// The inboxes that are open, and who wants to know of others.
#[derive(Default)]
pub(crate) struct Inboxes {
    open: Mutex<BTreeMap<SessionId, Open>>,
    told: Mutex<Vec<mpsc::UnboundedSender<SessionId>>>,
}

#[derive(Clone)]
struct Open {
    epoch: Epoch,
    letters: mpsc::Sender<Letter>,
    moved: watch::Receiver<u64>,
}

impl Inboxes {
    fn open(&self) -> MutexGuard<'_, BTreeMap<SessionId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The inbox of a session, if somebody reads it.
    fn find(&self, session: SessionId) -> Option<Open> {
        let mut open = self.open();
        let found = open.get(&session).filter(|found| !found.letters.is_closed()).cloned();
        if found.is_none() {
            open.remove(&session);
        }
        found
    }
}

/// Waits for something no longer than a pause.
pub(crate) async fn within<T>(work: impl Future<Output = T>, pause: Pause) -> Option<T> {
    let (mut work, mut pause) = (pin!(work), pause);
    poll_fn(|ctx| match work.as_mut().poll(ctx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => pause.as_mut().poll(ctx).map(|()| None),
    })
    .await
}

#[async_trait]
impl Mailbox for Inboxes {
    async fn open(&self, lease: &dyn Lease) -> Result<Inbox> {
        lease.verify().await?;
        let (session, epoch) = (lease.session(), lease.epoch());
        let (letters, inbox) = mpsc::channel(LETTERS_MAX);
        let followers = Followers::default();
        {
            let mut open = self.open();
            // Somebody else may have acquired the session since it was looked at.
            if let Some(later) = open.get(&session).filter(|known| known.epoch > epoch) {
                let (held, current) = (epoch, later.epoch);
                return Err(Error::Fenced { session, held, current });
            }
            open.insert(session, Open { epoch, letters, moved: followers.moved() });
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|told| told.send(session).is_ok());
        Ok(Inbox::new(inbox, followers, ()))
    }

    async fn ask(&self, session: SessionId, text: String, patience: Patience) -> Result<Delivery> {
        let Some(open) = self.find(session) else { return Ok(Delivery::Nobody) };
        let (letter, envelope, answered) = Letter::new(text);
        let mut answered = pin!(answered);
        let early = async {
            if open.letters.send(letter).await.is_err() {
                return Err(());
            }
            answered.as_mut().await.map_err(drop)
        };
        match within(early, patience.to_take).await {
            Some(Ok(answer)) => return Ok(Delivery::Answered(answer)),
            // Whoever had the inbox is gone, and may have taken it before.
            Some(Err(())) => {
                let never = envelope.withdraw();
                return Ok(if never { Delivery::Nobody } else { Delivery::InDoubt });
            }
            None if envelope.withdraw() => return Ok(Delivery::Withdrawn),
            None => {}
        }
        let late = within(answered, patience.to_answer).await;
        Ok(late.and_then(|answer| answer.ok()).map_or(Delivery::InDoubt, Delivery::Answered))
    }

    async fn follow(&self, session: SessionId) -> Result<Option<Follower>> {
        Ok(self.find(session).map(|open| Follower::new(&open.moved, ())))
    }

    async fn openings(&self) -> Result<Openings> {
        let (tell, sessions) = mpsc::unbounded_channel();
        let open = self.open();
        // Whoever opens one meanwhile waits until its sender is known.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        open.keys().for_each(|session| _ = tell.send(*session));
        told.push(tell);
        Ok(Openings::new(sessions, ()))
    }

    async fn is_open(&self, session: SessionId) -> bool {
        self.find(session).is_some()
    }
}
