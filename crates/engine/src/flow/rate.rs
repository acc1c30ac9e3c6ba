//! How many runs of a workflow may begin in a span of time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cairn_core::plan::RateLimit;

/// When runs of a workflow began, as far as it still counts.
#[derive(Debug, Default)]
pub(super) struct RateLimiter(Mutex<VecDeque<u64>>);

impl RateLimiter {
    /// Counts what began as the list of runs says, and nothing else.
    pub(super) fn learn(&self, mut times: Vec<u64>) {
        times.sort_unstable();
        *self.times() = times.into();
    }

    fn times(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a run, or says how long to wait.
    pub(super) fn take(&self, limit: &RateLimit, now_ms: u64) -> Result<(), u64> {
        let mut times = self.times();
        // What lies ahead was counted before the clock went back, and counts as of now: a clock
        // that is put back lets nobody in.
        times.iter_mut().for_each(|at| *at = (*at).min(now_ms));
        while times.pop_front_if(|at| now_ms - *at >= limit.per_ms).is_some() {}
        if times.len() < usize::try_from(limit.runs_max).unwrap_or(usize::MAX) {
            times.push_back(now_ms);
            return Ok(());
        }
        let first = times.front().copied().unwrap_or(now_ms);
        Err((first.saturating_add(limit.per_ms)).saturating_sub(now_ms).max(1))
    }

    /// Takes back a run that was counted at an instant, and that did not begin.
    pub(super) fn give_back(&self, at_ms: u64) {
        let mut times = self.times();
        if let Some(place) = times.iter().rposition(|at| *at == at_ms) {
            times.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_begin_as_may_and_then_the_first_has_to_be_past() {
        let (rate, limit) = (RateLimiter::default(), RateLimit { per_ms: 1_000, runs_max: 2 });
        assert_eq!(rate.take(&limit, 100), Ok(()));
        assert_eq!(rate.take(&limit, 400), Ok(()));
        assert_eq!(rate.take(&limit, 500), Err(600));
        assert_eq!(rate.take(&limit, 1_099), Err(1));
        assert_eq!(rate.take(&limit, 1_100), Ok(()));
        rate.give_back(1_100);
        assert_eq!(rate.take(&limit, 1_101), Ok(()));
        assert_eq!(rate.take(&limit, 50), Err(1_000), "the clock went back");
    }

    #[test]
    fn what_began_before_counts() {
        let limit = RateLimit { per_ms: 1_000, runs_max: 2 };
        let rate = RateLimiter::default();
        rate.learn(vec![900, 300]);
        assert_eq!(rate.take(&limit, 1_000), Err(300));
    }
}
