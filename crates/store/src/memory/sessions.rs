//! Sessions as wholes.

use std::collections::BTreeSet;

use async_trait::async_trait;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};

use super::{Memory, Session, held};
use crate::admit::Index;
use crate::error::{Error, Result, require_known};
use crate::fence::Epoch;
use crate::port::{Mark, Moved, Origin, Place, Sessions};

impl Session {
    fn mark(&self) -> Mark {
        Mark(self.index.last().map_or_else(String::new, |last| last.to_string()))
    }
}

impl Memory {
    /// Removes a session if `wanted` says so, unless it has another owner.
    fn remove(
        &self,
        session: SessionId,
        fence: Option<Epoch>,
        wanted: impl FnOnce(&Session) -> bool,
    ) -> Result<bool> {
        let mut sessions = held(&self.shared.sessions);
        let known = sessions.get(&session).ok_or(Error::NotFound(session))?;
        match (fence, &known.owner) {
            (Some(held), _) => {
                let checked = known.index.ownership.check(session, held);
                checked.inspect_err(|refusal| self.shared.book.tell(refusal))?;
            }
            (None, Some((_, owner))) => {
                return Err(Error::Owned { session, owner: Some(Box::new(owner.clone())) });
            }
            (None, None) => {}
        }
        let goes = wanted(known);
        if goes {
            sessions.remove(&session);
            held(&self.shared.changes).push(None);
            held(&self.shared.deleted).insert(session);
        }
        Ok(goes)
    }
}

#[async_trait]
impl Sessions for Memory {
    async fn list(&self) -> Result<Vec<SessionId>> {
        Ok(held(&self.shared.sessions).keys().copied().collect())
    }

    async fn mark(&self, session: SessionId) -> Result<Option<Mark>> {
        Ok(held(&self.shared.sessions).get(&session).map(Session::mark))
    }

    async fn moved(&self, since: Option<&Place>) -> Result<Moved> {
        let sessions = held(&self.shared.sessions);
        let changes = held(&self.shared.changes);
        let since = since.and_then(|since| since.0.parse().ok());
        let fresh = since.and_then(|since: usize| changes.get(since..));
        let is_same = fresh.is_some_and(|fresh| fresh.iter().all(Option::is_some));
        let names = (!is_same).then(|| sessions.keys().copied().collect());
        let wanted: BTreeSet<SessionId> = match fresh {
            Some(fresh) => fresh.iter().copied().flatten().collect(),
            None => sessions.keys().copied().collect(),
        };
        let mark = |session| (session, sessions.get(&session).map(Session::mark));
        let marks = wanted.into_iter().map(mark).collect();
        Ok(Moved { marks, names, place: Place(changes.len().to_string()) })
    }

    async fn keep(&self, session: SessionId, kept: bool) -> Result<()> {
        self.shared.look(session, |known| known.kept = kept)
    }

    async fn delete(&self, session: SessionId, fence: Option<Epoch>) -> Result<()> {
        self.remove(session, fence, |_| true).map(|_| ())
    }

    async fn retire(
        &self,
        session: SessionId,
        last: EventIndex,
        fence: Option<Epoch>,
    ) -> Result<bool> {
        let wanted = |known: &Session| !known.kept && known.index.last() == Some(last);
        self.remove(session, fence, wanted)
    }

    async fn adopt(
        &self,
        session: SessionId,
        events: Vec<Event>,
        origin: Option<Origin>,
    ) -> Result<()> {
        require_known(session, events.iter().map(Event::needs).max().unwrap_or(1))?;
        let pins = events.iter().flat_map(Event::pins);
        pins.into_iter()
            .try_for_each(|pin| self.shared.require(pin.blob_kind, pin.snapshot_ref))?;
        let (mut index, mut bytes) = (Index::default(), 0);
        for event in &events {
            let key = event.dedupe_key();
            index.add(event.index, key.as_str(), event.scope, event.data.kind());
            // A line has its newline, too.
            bytes += event.encode()?.len() as u64 + 1;
        }
        let mut sessions = held(&self.shared.sessions);
        if sessions.contains_key(&session) {
            return Err(Error::Exists(session));
        }
        sessions.insert(session, Session { index, events, bytes, origin, ..Session::default() });
        held(&self.shared.changes).push(None);
        Ok(())
    }

    async fn is_deleted(&self, session: SessionId) -> Result<bool> {
        Ok(held(&self.shared.deleted).contains(&session))
    }

    async fn origin(&self, session: SessionId) -> Result<Option<Origin>> {
        self.shared.look(session, |known| known.origin.clone())
    }
}
