//! Waiting for a run, whoever performs it.

use std::sync::Arc;
use std::time::Duration;

use cairn_core::id::{RunId, SessionId};
use cairn_store::port::mailbox::Follower;

use super::Inner;
use super::index::Summary;
use super::watch::Ended;
use crate::error::{Error, Result};

/// How long to wait before looking again for whoever performs a run.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What came of a look at a run of another process.
enum Looked {
    /// Whoever waits has been told.
    Done,
    NotOver,
    /// It cannot be read now.
    Unread,
}

impl Inner {
    /// Whether this process performs a run.
    pub(super) async fn is_here(&self, run: RunId) -> Result<bool> {
        Ok(self.lanes.get(self.reading.found(run).await?.session).is_some())
    }

    /// Waits until a run is over.
    pub(super) async fn ended(self: &Arc<Self>, run: RunId) -> Result<Ended> {
        let told = self.watchers.until_end(run);
        if let Some(ended) = self.reading.end_of(run).await? {
            return Ok(ended);
        }
        self.tell_end_from_afar(run).await;
        told.await.map_err(|_| Error::RunUnknown(run))
    }

    /// Tells whoever waits here for a run of a session that is over, and has the others told by
    /// whoever performs theirs.
    pub(super) async fn tell_of_ends(self: &Arc<Self>, session: SessionId) -> Result<()> {
        for run in self.watchers.awaited() {
            match self.reading.found(run).await {
                Ok(summary) if summary.session == session => {}
                Ok(_) => continue,
                Err(Error::RunUnknown(_)) => {
                    self.watchers.gone(run);
                    continue;
                }
                Err(error) => return Err(error),
            }
            match self.reading.end_of(run).await? {
                Some(ended) => self.watchers.ended(run, &ended),
                None => self.tell_end_from_afar(run).await,
            }
        }
        Ok(())
    }

    /// Has whoever waits here for a run of another process told of its end. When that process is
    /// gone, this one goes on with the run: there may be nobody else.
    pub(super) async fn tell_end_from_afar(self: &Arc<Self>, run: RunId) {
        // Its own lane tells.
        let is_told =
            |summary: Summary| !summary.is_over() && self.lanes.get(summary.session).is_some();
        if self.reading.found(run).await.is_ok_and(is_told) {
            return;
        }
        let (inner, host) = (Arc::downgrade(self), Arc::clone(&self.host));
        self.host.spawn(Box::pin(async move {
            let mut follower = None;
            while let Some(inner) = inner.upgrade() {
                let looked = inner.look_afar(run, &mut follower).await;
                // Nobody is kept by one who waits.
                drop(inner);
                let told = match (looked, &mut follower) {
                    (Looked::Done, _) => return,
                    (Looked::NotOver, Some(follower)) => follower.next().await,
                    _ => false,
                };
                if !told {
                    follower = None;
                    host.sleep(LOOK_AGAIN).await;
                }
            }
        }));
    }

    /// Looks how a run of another process is, and tells whoever waits for it here.
    async fn look_afar(self: &Arc<Self>, run: RunId, follower: &mut Option<Follower>) -> Looked {
        let found = match self.reading.found(run).await {
            Ok(found) => found,
            Err(Error::RunUnknown(_)) => {
                self.watchers.gone(run);
                return Looked::Done;
            }
            Err(_) => return Looked::Unread,
        };
        if follower.is_none() {
            // Whoever does not tell is looked at again.
            *follower = self.store.mailbox.follow(found.session).await.ok().flatten();
        }
        if follower.is_none() && !self.lanes.is_draining() {
            // Who cannot be replaced goes on with it, or is about to end.
            drop(self.take_up(&found.identity()).await);
        }
        match self.reading.end_of(run).await {
            Ok(Some(ended)) => {
                self.watchers.ended(run, &ended);
                Looked::Done
            }
            Ok(None) => Looked::NotOver,
            // What cannot be read now may have been the end: nobody tells of it again.
            Err(_) => Looked::Unread,
        }
    }
}
