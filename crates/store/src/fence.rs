//! The fence: an owner that was replaced writes nothing more.
//!
//! A lock alone is never the proof that a process owns a session: its file can be removed, its
//! holder can be paused past the end of a lease. So each acquiring raises the session's epoch,
//! whatever an owner changes carries the epoch it got, and the store compares the two in the
//! act. The law is here, once, for every backend.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cairn_core::id::SessionId;
use tokio::sync::watch;

use crate::error::{Error, Result};

/// The number of an ownership of a session: each acquiring gets a higher one than all before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of the next owner.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who owns a session, as it said when it acquired it. Information for people, never a reason
/// to take the session away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The process.
    pub pid: u32,
    /// When that process began, in the kernel's ticks since it booted, where that is known.
    /// Together with the number it names one process; numbers alone are used again.
    pub started: Option<u64>,
    /// When it acquired the session, in milliseconds since 1970.
    pub since_ms: u64,
    /// What for.
    pub purpose: String,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} since {}", self.pid, instant(self.since_ms))?;
        if self.purpose.is_empty() { Ok(()) } else { write!(f, ", to {}", self.purpose) }
    }
}

/// A time as people read it; one that is beyond the calendar stays a number.
fn instant(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| format!("{ms} ms after 1970"), |time| time.to_string())
}

/// What a session knows of its owners.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ownership {
    /// The epoch of the last owner.
    pub(crate) epoch: Epoch,
    /// Whether anybody ever acquired the session.
    pub(crate) acquired: bool,
}

impl Ownership {
    /// The session, acquired once more.
    #[must_use]
    pub(crate) const fn raised(self) -> Self {
        Self { epoch: self.epoch.next(), acquired: true }
    }

    /// Compares the epoch that a change carries with the session's own.
    pub(crate) fn check(self, session: SessionId, held: Epoch) -> Result<()> {
        let current = self.epoch;
        match held.cmp(&current) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => Err(Error::Fenced { session, held, current }),
            std::cmp::Ordering::Greater => Err(Error::EpochBackwards { session, held, current }),
        }
    }

    /// Whether a change may come without an epoch: not once the session has had an owner, when
    /// only owners make such changes.
    pub(crate) const fn check_unfenced(self, session: SessionId, owners_only: bool) -> Result<()> {
        if self.acquired && owners_only {
            return Err(Error::Unfenced { session, current: self.epoch });
        }
        Ok(())
    }
}

/// The leases that a process holds, so that their owners can be told that they were replaced.
#[derive(Default)]
pub(crate) struct LeaseBook(Mutex<BTreeMap<(SessionId, Epoch), Weak<Loss>>>);

impl LeaseBook {
    fn held(&self) -> MutexGuard<'_, BTreeMap<(SessionId, Epoch), Weak<Loss>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a lease; it is forgotten when the last of its holders goes.
    pub(crate) fn enlist(self: &Arc<Self>, session: SessionId, epoch: Epoch) -> Arc<Loss> {
        let (told, _) = watch::channel(false);
        let loss = Arc::new(Loss { session, epoch, told, book: Arc::clone(self) });
        self.held().insert((session, epoch), Arc::downgrade(&loss));
        loss
    }

    /// Tells an owner whose change was refused that it is none any more.
    pub(crate) fn tell(&self, refusal: &Error) {
        if let Error::Fenced { session, held, .. } | Error::EpochBackwards { session, held, .. } =
            refusal
        {
            self.tell_owner(*session, *held);
        }
    }

    /// Tells the owners before this epoch that they are none any more.
    pub(crate) fn tell_older(&self, session: SessionId, epoch: Epoch) {
        let older: Vec<Epoch> = self
            .held()
            .range((session, Epoch(0))..(session, epoch))
            .map(|(key, _)| key.1)
            .collect();
        older.into_iter().for_each(|epoch| self.tell_owner(session, epoch));
    }

    /// Tells the owner of this epoch that it is none any more.
    pub(crate) fn tell_owner(&self, session: SessionId, epoch: Epoch) {
        let loss = self.held().get(&(session, epoch)).and_then(Weak::upgrade);
        if let Some(loss) = loss {
            loss.told.send_replace(true);
        }
    }
}

/// A lease, and whether its owner was replaced.
pub(crate) struct Loss {
    pub(crate) session: SessionId,
    pub(crate) epoch: Epoch,
    told: watch::Sender<bool>,
    book: Arc<LeaseBook>,
}

impl Loss {
    pub(crate) fn is_told(&self) -> bool {
        *self.told.borrow()
    }

    /// Waits until the owner is told.
    pub(crate) async fn told(&self) {
        let mut told = self.told.subscribe();
        // The sender lives as long as this does, so waiting ends with the word alone.
        if told.wait_for(|told| *told).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        self.book.held().remove(&(self.session, self.epoch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: SessionId = SessionId::from_bits(1);

    #[test]
    fn only_the_sessions_own_epoch_passes() {
        let ownership = Ownership { epoch: Epoch(5), acquired: true };
        let codes: Vec<&str> = (3..8)
            .map(|held| ownership.check(SESSION, Epoch(held)).map_or_else(|e| e.code(), |()| "ok"))
            .collect();
        let backwards = "STORE_EPOCH_BACKWARDS";
        assert_eq!(codes, ["STORE_FENCED", "STORE_FENCED", "ok", backwards, backwards]);
    }

    #[test]
    fn without_an_epoch_nothing_of_an_owner_passes() {
        for (acquired, owners_only, passes) in
            [(false, false, true), (false, true, true), (true, false, true), (true, true, false)]
        {
            let ownership = Ownership { epoch: Epoch(5), acquired };
            let checked = ownership.check_unfenced(SESSION, owners_only);
            assert_eq!(checked.is_ok(), passes, "{acquired} {owners_only}");
            assert!(checked.is_ok() || checked.is_err_and(|e| e.code() == "STORE_UNFENCED"));
        }
    }

    #[test]
    fn an_owner_reads_as_a_person_would_say_it() {
        let owner = |since_ms, purpose: &str| Owner {
            pid: 4711,
            started: Some(99),
            since_ms,
            purpose: purpose.to_owned(),
        };
        let serving = owner(1_700_000_000_000, "perform runs");
        assert_eq!(serving.to_string(), "process 4711 since 2023-11-14T22:13:20Z, to perform runs");
        let odd = owner(u64::MAX, "");
        assert_eq!(odd.to_string(), "process 4711 since 18446744073709551615 ms after 1970");
    }
}
