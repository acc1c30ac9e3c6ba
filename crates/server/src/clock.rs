//! What time it is.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How often something is done for each name at most.
const STEP_MS: u64 = 60_000;

/// Keeps what is done for each name apart in time.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<HashMap<String, u64>>);

impl Seldom {
    /// Whether it is time again. If so, it counts as done.
    pub(crate) fn is_due(&self, name: &str, now_ms: u64) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.get(name).is_none_or(|at| now_ms >= at.saturating_add(STEP_MS));
        if due {
            last.insert(name.to_owned(), now_ms);
        }
        due
    }
}
