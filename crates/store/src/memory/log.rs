//! The event log.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::pin;

use super::{Fault, Memory, held};
use crate::admit::{Admission, Admitted, Index, prepare};
use crate::error::{Error, Result};
use crate::health::Health;
use crate::plan::{AppendPlan, Appended};
use crate::port::{EventLog, Prefix, Status};

impl Memory {
    fn add(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        let blobs = plan.blobs.clone();
        let plan = prepare(session, plan)?;
        for blob in blobs {
            held(&self.shared.blobs).insert((blob.kind, blob.digest()), blob.bytes);
        }
        let needed = plan.events.iter().flat_map(|event| event.blobs());
        needed.into_iter().try_for_each(|(kind, digest)| self.shared.require(*kind, *digest))?;
        let mut sessions = held(&self.shared.sessions);
        let nothing = Index::default();
        let index = sessions.get(&session).map_or(&nothing, |known| &known.index);
        let mut batch = Admitted::on(index);
        let admitted = batch.admit(index, &plan);
        let at = match admitted.inspect_err(|refusal| self.shared.book.tell(refusal))? {
            Admission::Replay(at) => {
                let session_bytes = sessions.get(&session).map_or(0, |known| known.bytes);
                return Ok(Appended { session_bytes, ..at });
            }
            Admission::Append(at) => at,
        };
        let is_new = !sessions.contains_key(&session);
        let came = is_new.then_some(None);
        held(&self.shared.changes).extend([Some(session)].into_iter().chain(came));
        let known = sessions.entry(session).or_default();
        known.index.join(batch);
        for (event, index) in plan.events.iter().zip(at.first.0..) {
            let mut line = Vec::new();
            event.write(EventIndex(index), &mut line);
            known.bytes += line.len() as u64;
            known.events.push(event.event(EventIndex(index)));
        }
        Ok(Appended { session_bytes: known.bytes, ..at })
    }
}

#[async_trait]
impl EventLog for Memory {
    async fn append(&self, session: SessionId, plan: AppendPlan) -> Result<Appended> {
        let fault = held(&self.shared.faults).pop_front();
        let source = || Arc::new(io::Error::other("planned"));
        let context = || format!("appending to {session}");
        match fault {
            None => self.add(session, plan),
            Some(Fault::Full) => Err(Error::Full { context: context() }),
            Some(Fault::Io) => Err(Error::Io { context: context(), source: source() }),
            Some(Fault::Unsure) => {
                self.add(session, plan)?;
                Err(Error::DurabilityLost { path: context().into(), source: source() })
            }
            Some(Fault::Unheard) => {
                self.add(session, plan)?;
                std::future::pending().await
            }
        }
    }

    async fn read_between(
        &self,
        session: SessionId,
        from: EventIndex,
        through: EventIndex,
    ) -> Result<Vec<Event>> {
        let wanted = from..=through;
        self.shared.look(session, |known| {
            known.events.iter().filter(|event| wanted.contains(&event.index)).cloned().collect()
        })
    }

    async fn read_prefix(&self, session: SessionId) -> Result<Prefix> {
        let events = self.read(session, EventIndex(0)).await?;
        Ok(Prefix { events, health: Health::Healthy, damage: None })
    }

    async fn status(&self, session: SessionId) -> Result<Status> {
        self.shared.look(session, |known| Status {
            health: Health::Healthy,
            damage: None,
            notices: Vec::new(),
            events: known.events.len() as u64,
            bytes: known.bytes,
            pins: pin::once(known.events.iter().flat_map(Event::pins)),
            kept: known.kept,
            format: 1,
        })
    }

    async fn seal(&self, session: SessionId) -> Result<()> {
        self.shared.look(session, |_| ())
    }
}
