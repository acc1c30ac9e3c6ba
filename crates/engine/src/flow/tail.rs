//! What other processes record, for those who watch runs here.
//!
//! Whoever performs a run tells the watchers of its own process. The sessions of others are
//! looked at from time to time, and what has come to them since is told in the same way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_core::event::{Event, EventData};
use cairn_core::id::{EventIndex, SessionId};
use cairn_store::port::Mark;
use tokio::sync::Mutex as AsyncMutex;

use super::Inner;
use super::watch::Told;
use crate::error::Result;

/// How often sessions are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How much longer than a look nothing is looked at, so that many sessions do not keep a
/// processor busy.
const REST: u32 = 20;

/// How far sessions were told about.
#[derive(Default)]
pub(super) struct Tail {
    /// The first event of each session that nobody was told of.
    next: Mutex<BTreeMap<SessionId, EventIndex>>,
    /// How the sessions of others were when they were last looked at; none before anybody
    /// follows them.
    seen: AsyncMutex<Option<BTreeMap<SessionId, Seen>>>,
}

struct Seen {
    mark: Mark,
    /// Whether it has runs that an engine performs.
    is_flow: bool,
}

impl Tail {
    fn next(&self) -> MutexGuard<'_, BTreeMap<SessionId, EventIndex>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that everything up to an event was told.
    pub(super) fn told(&self, session: SessionId, last: EventIndex) {
        self.next().insert(session, last.next());
    }
}

impl Inner {
    /// Tells what other processes record, for as long as it is asked to.
    pub(super) async fn follow_others(self: &Arc<Self>) -> Result<()> {
        self.begin_to_follow().await?;
        loop {
            let begun = self.host.uptime();
            // What cannot be read now may be read the next time.
            let _ = self.look_at_others().await;
            let taken = self.host.uptime().saturating_sub(begun);
            self.host.sleep(LOOK_EVERY.max(taken * REST)).await;
        }
    }

    /// Takes what is there now for known.
    async fn begin_to_follow(&self) -> Result<()> {
        let mut seen = self.tail.seen.lock().await;
        self.index.catch_up().await?;
        let mut marks: BTreeMap<SessionId, Mark> =
            self.store.sessions.marks().await?.into_iter().collect();
        let mut known = BTreeMap::new();
        for read in self.store.runs.sessions().await? {
            self.tail.next().entry(read.session).or_insert(read.next);
            // One that has moved since is looked at once more.
            let mark = marks.remove(&read.session).filter(|mark| read.mark.as_ref() == Some(mark));
            let mark = mark.unwrap_or_else(|| Mark(String::new()));
            known.insert(read.session, Seen { mark, is_flow: read.workflow.is_some() });
        }
        *seen = Some(known);
        Ok(())
    }

    async fn look_at_others(&self) -> Result<()> {
        let mut seen = self.tail.seen.lock().await;
        let Some(seen) = seen.as_mut() else { return Ok(()) };
        let marks = self.store.sessions.marks().await?;
        for (session, mark) in marks {
            if self.lanes.get(session).is_some() {
                // Its lane tells; what it is when that ends is looked at then.
                seen.remove(&session);
                continue;
            }
            let known = seen.get(&session);
            if known.is_some_and(|seen| seen.mark == mark) {
                continue;
            }
            let is_flow = known.map(|seen| seen.is_flow);
            let Ok(is_flow) = self.tell_rest(session, is_flow).await else { continue };
            seen.insert(session, Seen { mark, is_flow });
        }
        Ok(())
    }

    /// Tells what somebody else recorded in a session before it was taken over.
    pub(super) async fn tell_before_taking(&self, session: SessionId) {
        let seen = self.tail.seen.lock().await;
        if let Some(seen) = seen.as_ref() {
            let is_flow = seen.get(&session).map(|seen| seen.is_flow);
            // What cannot be read cannot be taken over either.
            let _ = self.tell_rest(session, is_flow).await;
        }
    }

    /// Tells what is new in a session, if engines perform its runs; says whether they do.
    async fn tell_rest(&self, session: SessionId, is_flow: Option<bool>) -> Result<bool> {
        let next = self.tail.next().get(&session).copied();
        let events = self.store.log.read(session, next.unwrap_or(EventIndex(0))).await?;
        let Some(last) = events.last().map(|event| event.index) else {
            return Ok(is_flow.unwrap_or_default());
        };
        let is_flow = is_flow.unwrap_or_default() || events.iter().any(is_of_flow);
        self.tail.told(session, last);
        if is_flow {
            self.watchers.tell(&Told { session, events: events.into() });
        }
        Ok(is_flow)
    }
}

/// Whether only engines record such an event.
const fn is_of_flow(event: &Event) -> bool {
    matches!(event.data, EventData::RunQueued(_))
}
