//! How many runs of a workflow may begin in a span of time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cairn_core::plan::RateLimit;

/// How many runs of a workflow may begin when it does not say so itself.
pub(crate) const DEFAULT: RateLimit = RateLimit { per_ms: 60_000, runs_max: 60 };

/// Counts the runs that begin, by workflow.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<HashMap<String, VecDeque<u64>>>);

impl Pace {
    fn begun(&self) -> MutexGuard<'_, HashMap<String, VecDeque<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a run begin, or says how long to wait.
    pub(crate) fn take(&self, workflow: &str, limit: &RateLimit, now_ms: u64) -> Result<(), u64> {
        let mut begun = self.begun();
        let times = begun.entry(workflow.to_owned()).or_default();
        // What lies ahead was counted before the clock went back.
        while times.pop_back_if(|at| *at > now_ms).is_some() {}
        while times.pop_front_if(|at| now_ms - *at >= limit.per_ms).is_some() {}
        if times.len() < usize::try_from(limit.runs_max).unwrap_or(usize::MAX) {
            times.push_back(now_ms);
            return Ok(());
        }
        let first = times.front().copied().unwrap_or(now_ms);
        Err((first.saturating_add(limit.per_ms)).saturating_sub(now_ms).max(1))
    }

    /// Takes back what was let begin and was there already.
    pub(crate) fn give_back(&self, workflow: &str) {
        if let Some(times) = self.begun().get_mut(workflow) {
            times.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_begin_as_may_and_then_the_first_has_to_be_past() {
        let (pace, limit) = (Pace::default(), RateLimit { per_ms: 1_000, runs_max: 2 });
        assert_eq!(pace.take("a", &limit, 100), Ok(()));
        assert_eq!(pace.take("a", &limit, 400), Ok(()));
        assert_eq!(pace.take("a", &limit, 500), Err(600));
        assert_eq!(pace.take("b", &limit, 500), Ok(()), "others are not held up");
        assert_eq!(pace.take("a", &limit, 1_099), Err(1));
        assert_eq!(pace.take("a", &limit, 1_100), Ok(()));
        pace.give_back("a");
        assert_eq!(pace.take("a", &limit, 1_101), Ok(()));
        assert_eq!(pace.take("a", &limit, 50), Ok(()), "the clock went back");
    }
}
