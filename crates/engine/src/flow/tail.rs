//! What other processes record, for those who watch runs here.
//!
//! Whoever performs a run tells the watchers of its own process, and those who follow the inbox
//! of its session. So whoever wants to know of all runs hears which inboxes are opened, follows
//! each, and tells what has come to its session since in the same way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_core::event::{Event, EventData};
use cairn_core::id::{EventIndex, SessionId};
use cairn_store::Store;
use cairn_store::port::Which;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use super::index::Index;
use super::lanes::Lanes;
use super::watch::{Told, Watchers};
use crate::error::Result;
use crate::host::{Host, Task};

/// Tells what others record, and knows how far their sessions were told about.
pub(super) struct Others {
    host: Arc<dyn Host>,
    store: Store,
    index: Arc<Index>,
    lanes: Arc<Lanes>,
    watchers: Arc<Watchers>,
    /// How far each session was told about.
    told: Mutex<BTreeMap<SessionId, Far>>,
    /// Whether others are followed. Held while something of theirs is told.
    follows: AsyncMutex<bool>,
    /// Told when somebody who was followed lets go of a session.
    left: Notify,
}

/// How far a session was told about.
#[derive(Clone, Copy, Default)]
struct Far {
    /// The first event that nobody was told of.
    next: EventIndex,
    /// Whether it has runs that an engine performs.
    is_flow: bool,
}

/// Tasks that end with this.
#[derive(Default)]
struct Following(BTreeMap<SessionId, Task>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.values().for_each(Task::abort);
    }
}

impl Others {
    pub(super) fn new(
        (host, store): (Arc<dyn Host>, Store),
        index: Arc<Index>,
        lanes: Arc<Lanes>,
        watchers: Arc<Watchers>,
    ) -> Self {
        let (told, follows, left) = (Mutex::default(), AsyncMutex::default(), Notify::new());
        Self { host, store, index, lanes, watchers, told, follows, left }
    }

    fn far(&self) -> MutexGuard<'_, BTreeMap<SessionId, Far>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that everything up to an event of an engine's session was told.
    pub(super) fn told(&self, session: SessionId, last: EventIndex) {
        self.far().insert(session, Far { next: last.next(), is_flow: true });
    }

    /// Tells what other processes record, for as long as it is asked to.
    pub(super) async fn follow(self: &Arc<Self>) -> Result<()> {
        let mut openings = self.store.mailbox.openings().await?;
        self.take_for_known().await?;
        let mut following = Following::default();
        while let Some(session) = openings.next().await {
            let others = Arc::clone(self);
            let task = self.host.spawn(Box::pin(async move { others.follow_one(session).await }));
            let before = following.0.insert(session, task);
            before.iter().for_each(Task::abort);
        }
        Ok(())
    }

    /// Completes when somebody who was followed has let go of a session since it last did.
    pub(super) async fn left(&self) {
        self.left.notified().await;
    }

    /// Takes what is there now for known.
    async fn take_for_known(&self) -> Result<()> {
        let mut follows = self.follows.lock().await;
        let _ = self.index.catch_up().await?;
        for read in self.store.runs.sessions(&Which::All).await? {
            let far = Far { next: read.seen, is_flow: read.workflow.is_some() };
            self.far().entry(read.session).or_insert(far);
        }
        *follows = true;
        Ok(())
    }

    /// Tells what another process records in a session, until it lets go of it.
    async fn follow_one(&self, session: SessionId) {
        let mut follower = self.store.mailbox.follow(session).await.ok().flatten();
        loop {
            // Its own lane tells.
            if self.lanes.get(session).is_some() {
                return;
            }
            self.tell_before_taking(session).await;
            let Some(following) = &mut follower else { return self.left.notify_one() };
            if !following.next().await {
                // What it recorded last is told, too.
                follower = None;
            }
        }
    }

    /// Tells what somebody else recorded in a session before it is taken over.
    pub(super) async fn tell_before_taking(&self, session: SessionId) {
        let follows = self.follows.lock().await;
        if *follows {
            // What cannot be read now may be read the next time, and not be taken over before.
            let _ = self.tell_rest(session).await;
        }
    }

    /// Tells what is new in a session, if engines perform its runs.
    async fn tell_rest(&self, session: SessionId) -> Result<()> {
        let far = self.far().get(&session).copied().unwrap_or_default();
        let events = self.store.log.read(session, far.next).await?;
        let Some(last) = events.last().map(|event| event.index) else { return Ok(()) };
        let is_flow = far.is_flow || events.iter().any(is_of_flow);
        self.far().insert(session, Far { next: last.next(), is_flow });
        if is_flow {
            self.watchers.tell(&Told { session, events: events.into() });
        }
        Ok(())
    }
}

/// Whether only engines record such an event.
const fn is_of_flow(event: &Event) -> bool {
    matches!(event.data, EventData::RunQueued(_))
}
