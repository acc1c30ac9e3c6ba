//! Papers: sessions that came from elsewhere and that nobody trusts yet.
//!
//! They are kept apart, in a store of their own, so that nothing that performs, continues,
//! retires or counts runs ever sees one: there is no check that could be forgotten. Whoever only
//! shows things looks at both.

use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::pin::BlobKind;

use crate::error::{Error, Result};
use crate::fence::Epoch;
use crate::open::Store;
use crate::plan::{AppendPlan, Appended, Blob};
use crate::port::{
    Blobs, EventLog, Mark, Moved, Origin, Papers, Place, Prefix, Room, Sessions, Status, Sweep,
};

/// There are no papers beside papers.
pub(crate) struct NoPapers;

impl Papers for NoPapers {
    fn find(&self) -> Result<Option<Store>> {
        Ok(None)
    }

    fn open(&self) -> Result<Store> {
        Err(Error::InvalidPlan("there are no papers beside papers"))
    }
}

impl Store {
    /// The store for somebody who shows what there is: papers are there, too, and can be read.
    pub fn with_papers(&self) -> Result<Self> {
        let Some(papers) = self.papers.find()? else { return Ok(self.clone()) };
        let both = Arc::new(Both { own: self.clone(), papers });
        Ok(Self {
            log: Arc::clone(&both) as _,
            sessions: Arc::clone(&both) as _,
            blobs: both,
            ..self.clone()
        })
    }
}

/// A store and its papers. What is written goes into the store.
struct Both {
    own: Store,
    papers: Store,
}

/// Asks the store, and its papers when it does not have what is asked for.
macro_rules! either {
    ($self:ident, $port:ident.$call:ident($($argument:expr),*)) => {
        match $self.own.$port.$call($($argument),*).await {
            Err(Error::NotFound(_)) => $self.papers.$port.$call($($argument),*).await,
            answer => answer,
        }
    };
}

#[async_trait]
impl EventLog for Both {
    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        self.own.log.append(session, plan).await
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> Result<Vec<Event>> {
        either!(self, log.read_between(session, from, through))
    }

    async fn read_prefix(&self, session: SessionId) -> Result<Prefix> {
        either!(self, log.read_prefix(session))
    }

    async fn status(&self, session: SessionId) -> Result<Status> {
        either!(self, log.status(session))
    }

    async fn seal(&self, session: SessionId) -> Result<()> {
        self.own.log.seal(session).await
    }

    async fn room(&self, room: Room) -> Result<()> {
        self.own.log.room(room).await
    }
}

#[async_trait]
impl Sessions for Both {
    async fn list(&self) -> Result<Vec<SessionId>> {
        let mut all = self.own.sessions.list().await?;
        all.extend(self.papers.sessions.list().await?);
        all.sort_unstable();
        // One that is trusted at this moment may be in both.
        all.dedup();
        Ok(all)
    }

    async fn mark(&self, session: SessionId) -> Result<Option<Mark>> {
        match self.own.sessions.mark(session).await? {
            None => self.papers.sessions.mark(session).await,
            mark => Ok(mark),
        }
    }

    async fn moved(&self, _: Option<&Place>) -> Result<Moved> {
        // Two orders are not one: whoever looks at both looks at everything.
        let mut both = self.papers.sessions.moved(None).await?;
        let own = self.own.sessions.moved(None).await?;
        both.marks.extend(own.marks);
        both.names = both.names.zip(own.names).map(|(papers, own)| &papers | &own);
        Ok(Moved { place: Place(String::new()), ..both })
    }

    async fn keep(&self, session: SessionId, kept: bool) -> Result<()> {
        either!(self, sessions.keep(session, kept))
    }

    async fn delete(&self, session: SessionId, fence: Option<Epoch>) -> Result<()> {
        either!(self, sessions.delete(session, fence))
    }

    async fn retire(
        &self,
        session: SessionId,
        last: EventIndex,
        fence: Option<Epoch>,
    ) -> Result<bool> {
        either!(self, sessions.retire(session, last, fence))
    }

    async fn adopt(
        &self,
        session: SessionId,
        events: Vec<Event>,
        origin: Option<Origin>,
    ) -> Result<()> {
        self.own.sessions.adopt(session, events, origin).await
    }

    async fn is_deleted(&self, session: SessionId) -> Result<bool> {
        self.own.sessions.is_deleted(session).await
    }

    async fn origin(&self, session: SessionId) -> Result<Option<Origin>> {
        either!(self, sessions.origin(session))
    }
}

#[async_trait]
impl Blobs for Both {
    async fn put(&self, blob: Blob) -> Result<Digest> {
        self.own.blobs.put(blob).await
    }

    async fn get(&self, kind: BlobKind, digest: Digest) -> Result<Vec<u8>> {
        match self.own.blobs.get(kind, digest).await {
            Err(Error::BlobMissing { .. }) => self.papers.blobs.get(kind, digest).await,
            answer => answer,
        }
    }

    async fn sweep(&self) -> Result<Box<dyn Sweep>> {
        self.own.blobs.sweep().await
    }
}
