//! Verdicts that count again for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cairn_core::classify::Verdict;
use cairn_core::digest::Digest;
use serde_json::json;

use crate::agents::Resolved;

/// How many verdicts are kept.
const ENTRIES_MAX: usize = 1_024;

/// What was asked of whom.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(Digest);

impl Key {
    /// The prompt is a part of it: another prompt is another question.
    pub(super) fn new(prompt: &str, cases: &[String], who: &Resolved) -> Self {
        let asked = json!([prompt, cases, who.name, who.model]);
        Self(Digest::of(asked.to_string().as_bytes()))
    }
}

/// Verdicts by what was asked. They are gone with the process.
#[derive(Default)]
pub(super) struct Cache {
    entries: Mutex<BTreeMap<Key, (Instant, Verdict)>>,
}

impl Cache {
    pub(super) fn find(&self, key: &Key) -> Option<Verdict> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, verdict) = entries.get(key)?;
        (Instant::now() < *until).then(|| verdict.clone())
    }

    pub(super) fn keep(&self, key: Key, verdict: Verdict, ttl: Duration) {
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, (until, _)| *until > now);
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        let Some(until) = now.checked_add(ttl) else { return };
        entries.insert(key, (until, verdict));
    }
}
