//! What is wrong with the store at the moment, and whom it struck.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_store::{Error, Result};

use super::world::Counts;

/// Something that can be wrong with the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Fault {
    /// Nothing can be written.
    Write,
    /// There is no room.
    Full,
    /// What is written is there, and whoever wrote it is told that it may not be.
    Unsure,
    /// No log can be read.
    Read,
    /// No session can be acquired.
    Acquire,
    /// The list of runs can be neither read nor written.
    Index,
    /// No document can be replaced.
    Document,
    /// Nothing can be added to the audit record.
    Audit,
    /// Letters and their answers are lost.
    Mail,
}

impl Fault {
    /// All of them, and what it is called when one strikes.
    pub(super) const ALL: [(Self, &'static str); 9] = [
        (Self::Write, "disk fails"),
        (Self::Full, "disk full"),
        (Self::Unsure, "disk unsure"),
        (Self::Read, "read fails"),
        (Self::Acquire, "acquire fails"),
        (Self::Index, "index fails"),
        (Self::Document, "document fails"),
        (Self::Audit, "audit fails"),
        (Self::Mail, "letter lost"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(fault, _)| *fault == self).map_or("nothing", |(_, name)| name)
    }
}

/// How the store is at the moment. Clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Weather {
    bad: Arc<Mutex<BTreeSet<Fault>>>,
    hits: Arc<Mutex<Counts>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Weather {
    /// Begins a fault.
    pub(super) fn begin(&self, fault: Fault) {
        held(&self.bad).insert(fault);
    }

    /// Ends a fault, or all of them.
    pub(super) fn clear(&self, fault: Option<Fault>) {
        held(&self.bad).retain(|bad| fault.is_some_and(|fault| *bad != fault));
    }

    /// Whether a fault strikes whoever asks, who is counted then.
    pub(super) fn strikes(&self, fault: Fault) -> bool {
        let strikes = held(&self.bad).contains(&fault);
        if strikes {
            self.hit(fault.name());
        }
        strikes
    }

    /// Fails whoever a fault strikes.
    pub(super) fn pass(&self, fault: Fault) -> Result<()> {
        match self.strikes(fault) {
            true => Err(failed(fault.name())),
            false => Ok(()),
        }
    }

    /// Counts something that went wrong for somebody.
    pub(super) fn hit(&self, what: &'static str) {
        *held(&self.hits).entry(what).or_default() += 1;
    }

    /// What went wrong for somebody, and how often.
    pub(super) fn hits(&self) -> Counts {
        held(&self.hits).clone()
    }
}

pub(super) fn failed(context: &str) -> Error {
    Error::Io { context: context.to_owned(), source: Arc::new(std::io::Error::other("a fault")) }
}
