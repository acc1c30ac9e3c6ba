//! Which session the new runs of a workflow go into. A full or old one takes no more.

use std::sync::Arc;

use cairn_core::event::guided::SessionCreated;
use cairn_core::event::{NewEvent, Scope};
use cairn_core::id::SessionId;
use cairn_store as store;
use cairn_store::AppendPlan;
use cairn_store::port::SessionRead;

use super::Inner;
use super::desk::Desk;
use super::lane::Lane;
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
        !lane.is_closed() && self.takes_more(lane.session, lane.bytes())
    }

    /// Whether a session of so many bytes takes new runs.
    fn takes_more(&self, session: SessionId, bytes: u64) -> bool {
        bytes < self.options.session_max && self.is_young(session)
    }

    /// Ends the lanes that take no new runs and whose runs are all over.
    pub(super) async fn end_full(&self) {
        let lanes: Vec<Lane> = self.lanes.open().values().cloned().collect();
        for lane in lanes.into_iter().filter(|lane| !self.has_room(lane)) {
            lane.close();
            lane.end_if_idle().await;
        }
    }

    pub(super) fn is_young(&self, session: SessionId) -> bool {
        let age_ms = self.host.now_ms().saturating_sub(session.minted_ms());
        u128::from(age_ms) < self.options.session_age_max.as_millis()
    }

    /// A session of a workflow that has room.
    async fn free_session(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<Option<Lane>> {
        for SessionRead { session, .. } in self.index.sessions_of(&desk.workflow).await? {
            match self.lanes.get(session) {
                Some(lane) if self.has_room(&lane) => return Ok(Some(lane)),
                Some(_) => continue,
                None => {}
            }
            let Ok(status) = self.store.log.status(session).await else { continue };
            if status.damage.is_some() || !self.takes_more(session, status.bytes) {
                continue;
            }
            let _taking = self.lanes.taking.lock().await;
            match self.open_lane(session, desk).await {
                Ok(lane) => return Ok(Some(lane)),
                // Somebody tidies it up, or it is gone.
                Err(Error::Store(store::Error::Owned { .. } | store::Error::NotFound(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn new_session(self: &Arc<Self>, desk: &Arc<Desk>) -> Result<Lane> {
        let session = SessionId::mint(self.host.now_ms(), self.host.entropy()?);
        self.make_session(session).await?;
        let _taking = self.lanes.taking.lock().await;
        self.open_lane(session, desk).await
    }

    pub(super) async fn make_session(&self, session: SessionId) -> Result<()> {
        let (id, scope) = (self.event_id()?, Scope::Session);
        let created = NewEvent { id, scope, data: SessionCreated {}.into() };
        let plan = AppendPlan { events: vec![created], ..AppendPlan::default() };
        match self.store.log.append(session, plan).await {
            // Somebody else was first, in this moment.
            Ok(_) | Err(store::Error::Unfenced { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
