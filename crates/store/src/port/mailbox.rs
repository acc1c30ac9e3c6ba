//! The mailbox: how one process speaks to the owner of a session, and hears that it moved.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cairn_core::id::SessionId;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::Result;
use crate::port::Lease;

/// How many letters may lie in an inbox.
pub(crate) const LETTERS_MAX: usize = 256;

/// Letters between processes. Nothing of it is durable: what counts is what the owner records.
#[async_trait]
pub trait Mailbox: Send + Sync {
    /// Opens the inbox of a session under the lease of its owner. An earlier one of the same
    /// session gets no more letters.
    ///
    /// An owner that was replaced is refused with `Fenced`, like one that appends: the inbox of
    /// whoever replaced it stays where others find it.
    async fn open(&self, lease: &dyn Lease) -> Result<Inbox>;

    /// Says something to the owner of a session and waits for its answer.
    ///
    /// A letter is either taken by the owner or withdrawn, and never both: whoever is told
    /// [`Delivery::Nobody`] or [`Delivery::Withdrawn`] knows that it is never acted on.
    async fn ask(&self, session: SessionId, text: String, patience: Patience) -> Result<Delivery>;

    /// Follows a session that another process owns; none when nobody has its inbox open.
    /// Whatever is recorded after this returns wakes the follower.
    async fn follow(&self, session: SessionId) -> Result<Option<Follower>>;

    /// The sessions whose inbox is open, and then every one that is opened from now on. One that
    /// was closed since it was told, or has been for a while, may be among them.
    async fn openings(&self) -> Result<Openings>;

    /// Whether somebody has the inbox of a session open.
    async fn is_open(&self, session: SessionId) -> bool;
}

/// How long somebody waits. The store has no clock of its own for it.
pub struct Patience {
    /// Completes when the owner had time enough to take the letter.
    pub to_take: Pause,
    /// Completes when it had time enough to answer one that it took.
    pub to_answer: Pause,
}

/// Completes after a while.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What became of a letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// The owner took it and answered.
    Answered(String),
    /// Nobody has the inbox open.
    Nobody,
    /// The owner did not take it in time, and never will.
    Withdrawn,
    /// The owner took it, and no answer came: it may have been acted on.
    InDoubt,
}

/// What others say to the owner of a session. Dropping it closes it.
pub struct Inbox {
    letters: mpsc::Receiver<Letter>,
    followers: Followers,
    _open: Box<dyn Send + Sync>,
}

impl Inbox {
    /// An inbox into which letters come, kept open by a guard.
    pub(crate) fn new(
        letters: mpsc::Receiver<Letter>,
        followers: Followers,
        open: impl Send + Sync + 'static,
    ) -> Self {
        Self { letters, followers, _open: Box::new(open) }
    }

    /// The next letter, which is taken with that; none when no more can come.
    pub async fn next(&mut self) -> Option<Letter> {
        loop {
            let letter = self.letters.recv().await?;
            if letter.state.take() {
                return Some(letter);
            }
        }
    }

    /// Wakes those who follow the session.
    #[must_use]
    pub fn followers(&self) -> Followers {
        self.followers.clone()
    }
}

/// Something said to the owner of a session. One that is dropped before anybody begins to act on
/// it is given back: its sender knows that it never will be.
pub struct Letter {
    /// What was said.
    pub text: String,
    state: Envelope,
    answer: Option<oneshot::Sender<String>>,
    is_begun: bool,
}

impl Drop for Letter {
    fn drop(&mut self) {
        if !self.is_begun {
            self.state.give_back();
        }
    }
}

impl Letter {
    /// A letter, and what its sender keeps of it.
    pub(crate) fn new(text: String) -> (Self, Envelope, oneshot::Receiver<String>) {
        let (answer, answered) = oneshot::channel();
        let (state, answer) = (Envelope::default(), Some(answer));
        (Self { text, state: state.clone(), answer, is_begun: false }, state, answered)
    }

    /// Says that whatever it asks for may happen from now on.
    pub const fn begin(&mut self) {
        self.is_begun = true;
    }

    /// Answers it.
    pub fn answer(mut self, text: String) {
        self.is_begun = true;
        // Whoever asked may have gone.
        drop(self.answer.take().map(|answer| answer.send(text)));
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Sent,
    Taken,
    Withdrawn,
}

/// Whether a letter was taken or withdrawn: whichever comes first.
#[derive(Clone, Debug)]
pub(crate) struct Envelope(Arc<Mutex<State>>);

impl Default for Envelope {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State::Sent)))
    }
}

impl Envelope {
    fn becomes(&self, wanted: State) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == State::Sent {
            *state = wanted;
        }
        *state == wanted
    }

    fn take(&self) -> bool {
        self.becomes(State::Taken)
    }

    fn give_back(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::Withdrawn;
    }

    /// Withdraws the letter; says no when it was taken.
    pub(crate) fn withdraw(&self) -> bool {
        self.becomes(State::Withdrawn)
    }
}

/// Wakes those who follow a session.
#[derive(Clone)]
pub struct Followers(Arc<watch::Sender<u64>>);

impl Default for Followers {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Followers {
    /// Says that something was recorded.
    pub fn wake(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// What tells when something was recorded, for as long as anybody may record.
    pub(crate) fn moved(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// Tells which inboxes are opened.
pub struct Openings {
    sessions: mpsc::UnboundedReceiver<SessionId>,
    _open: Box<dyn Send + Sync>,
}

impl Openings {
    /// What is told of by a sender, for as long as a guard is held.
    pub(crate) fn new(
        sessions: mpsc::UnboundedReceiver<SessionId>,
        open: impl Send + Sync + 'static,
    ) -> Self {
        Self { sessions, _open: Box::new(open) }
    }

    /// The next one; none when nobody tells any more.
    pub async fn next(&mut self) -> Option<SessionId> {
        self.sessions.recv().await
    }
}

/// Follows a session.
pub struct Follower {
    moved: watch::Receiver<u64>,
    _open: Box<dyn Send + Sync>,
}

impl Follower {
    /// Somebody who follows from now on, for as long as a guard is held.
    pub(crate) fn new(moved: &watch::Receiver<u64>, open: impl Send + Sync + 'static) -> Self {
        let mut moved = moved.clone();
        moved.mark_unchanged();
        Self { moved, _open: Box::new(open) }
    }

    /// Waits until something was recorded since the last time; says no when nobody tells any
    /// more.
    pub async fn next(&mut self) -> bool {
        self.moved.changed().await.is_ok()
    }
}
