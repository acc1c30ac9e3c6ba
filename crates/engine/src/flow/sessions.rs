//! Which session the new runs of a workflow go into. A full or old one takes no more.

use std::sync::Arc;

use cairn_store as store;
use cairn_store::port::SessionRead;

use super::Inner;
use super::desk::Desk;
use super::lane::Lane;
use super::papers::is_imported;
use crate::error::{Error, Result};

impl Inner {
    /// The lane that new runs of a workflow go into.
    pub(super) async fn lane(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<Lane> {
        let mut sessions = self.lanes.by_workflow.lock().await;
        let last = sessions.get(&desk.workflow).and_then(|session| self.lanes.get(*session));
        if let Some(lane) = last {
            if self.has_room(&lane) {
                return Ok(lane);
            }
            // Its runs end in it, and new ones go elsewhere.
            lane.close();
        }
        let lane = match self.free_session(desk).await? {
            Some(lane) => lane,
            None => self.new_session(desk).await?,
        };
        sessions.insert(desk.workflow.clone(), lane.session);
        Ok(lane)
    }

    /// Whether a lane takes new runs: its session is neither large nor old.
    fn has_room(&self, lane: &Lane) -> bool {
        let now_ms = self.host.now_ms();
        !lane.is_closed() && self.options.takes_more(lane.session, lane.bytes(), now_ms)
    }

    /// Ends the lanes that take no new runs and whose runs are all over.
    pub(super) async fn end_full(&self) {
        let lanes: Vec<Lane> = self.lanes.open().values().cloned().collect();
        for lane in lanes.into_iter().filter(|lane| !self.has_room(lane)) {
            lane.close();
            lane.end_if_idle().await;
        }
    }

    /// A session of a workflow that has room.
    async fn free_session(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<Option<Lane>> {
        for SessionRead { session, .. } in self.index.sessions_of(&desk.workflow).await? {
            // What came from elsewhere stays as it came, and nothing of ours begins in it.
            if is_imported(&self.store, session).await.unwrap_or(true) {
                continue;
            }
            match self.lanes.get(session) {
                Some(lane) if self.has_room(&lane) => return Ok(Some(lane)),
                Some(_) => continue,
                None => {}
            }
            let Ok(status) = self.store.log.status(session).await else { continue };
            if status.damage.is_some()
                || !self.options.takes_more(session, status.bytes, self.host.now_ms())
            {
                continue;
            }
            let taking = self.lanes.taking().await?;
            match self.open_lane(session, desk, &taking).await {
                Ok(lane) => return Ok(Some(lane)),
                // Somebody tidies it up, or it is gone.
                Err(Error::Store(store::Error::Owned { .. } | store::Error::NotFound(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn new_session(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<Lane> {
        let session = self.host.session_id()?;
        self.holdings.make_session(session).await?;
        let taking = self.lanes.taking().await?;
        self.open_lane(session, desk, &taking).await
    }
}
