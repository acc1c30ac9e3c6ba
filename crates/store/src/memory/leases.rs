//! Leases that nobody steals, until the hand that holds the store takes one away.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use cairn_core::id::SessionId;

use super::{Memory, Shared, held};
use crate::error::{Error, Result};
use crate::fence::{Epoch, Loss, Owner};
use crate::port::{Lease, Leases};

struct MemoryLease {
    shared: Arc<Shared>,
    loss: Arc<Loss>,
}

#[async_trait]
impl Lease for MemoryLease {
    fn session(&self) -> SessionId {
        self.loss.session
    }

    fn epoch(&self) -> Epoch {
        self.loss.epoch
    }

    async fn verify(&self) -> Result<()> {
        let Loss { session, epoch, .. } = *self.loss;
        let checked =
            self.shared.look(session, |known| known.index.ownership.check(session, epoch));
        checked.and_then(|checked| checked).inspect_err(|refusal| self.shared.book.tell(refusal))
    }

    fn is_lost(&self) -> bool {
        self.loss.is_told()
    }

    async fn lost(&self) {
        self.loss.told().await;
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        let mut sessions = held(&self.shared.sessions);
        if let Some(known) = sessions.get_mut(&self.loss.session) {
            // Another one may have it by now.
            known.owner.take_if(|(epoch, _)| *epoch == self.loss.epoch);
        }
    }
}

#[async_trait]
impl Leases for Memory {
    async fn acquire(&self, session: SessionId, purpose: &str) -> Result<Box<dyn Lease>> {
        let now_ms = (self.shared.outside.now_ms)();
        let epoch = self.shared.look(session, |known| {
            if let Some((_, owner)) = &known.owner {
                let owner = Some(Box::new(owner.clone()));
                return Err(Error::Owned { session, owner });
            }
            known.index.ownership = known.index.ownership.raised();
            let purpose = purpose.to_owned();
            let owner = Owner { pid: self.pid, started: None, since_ms: now_ms, purpose };
            known.owner = Some((known.index.ownership.epoch, owner));
            Ok(known.index.ownership.epoch)
        })??;
        if self.shared.tells.load(Ordering::Relaxed) {
            self.shared.book.tell_older(session, epoch);
        }
        let (shared, loss) = (Arc::clone(&self.shared), self.shared.book.enlist(session, epoch));
        Ok(Box::new(MemoryLease { shared, loss }))
    }
}
