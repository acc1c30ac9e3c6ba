//! How many runs of a workflow may begin in a span of time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cairn_core::plan::RateLimit;

use super::Inner;
use super::index::Filter;
use crate::catalog::Found;
use crate::error::{Error, Result};

/// How many runs of before are looked at.
const LEARNT_MAX: u32 = 1_000;

/// When runs began, by workflow.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<BTreeMap<String, VecDeque<u64>>>);

impl Pace {
    fn begun(&self) -> MutexGuard<'_, BTreeMap<String, VecDeque<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_known(&self, workflow: &str) -> bool {
        self.begun().contains_key(workflow)
    }

    /// Takes over what began before this process did.
    fn learn(&self, workflow: &str, mut times: Vec<u64>) {
        times.sort_unstable();
        self.begun().entry(workflow.to_owned()).or_insert_with(|| times.into());
    }

    /// Lets a run begin, or says how long to wait.
    fn take(&self, workflow: &str, limit: &RateLimit, now_ms: u64) -> Result<(), u64> {
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
    pub(super) fn give_back(&self, workflow: &str) {
        if let Some(times) = self.begun().get_mut(workflow) {
            times.pop_back();
        }
    }
}

impl Inner {
    /// Lets a run of a workflow begin, or says when it may.
    pub(super) async fn admit(&self, found: &Found) -> Result<()> {
        let own = found.compiled()?.plan.policy.rate_limit.clone();
        let usual = RateLimit { per_ms: 60_000, runs_max: self.options.runs_per_minute };
        let limit = own.unwrap_or(usual);
        if !self.pace.is_known(&found.id) {
            self.pace.learn(&found.id, self.begun_lately(&found.id, &limit).await?);
        }
        self.pace.take(&found.id, &limit, self.host.now_ms()).map_err(|after_ms| {
            Error::RateLimited {
                workflow: found.id.clone(),
                runs_max: limit.runs_max,
                per_ms: limit.per_ms,
                after_ms,
            }
        })
    }

    /// When runs of a workflow began that still count, as the list of runs has them: a restart
    /// does not let in what it would not have.
    async fn begun_lately(&self, workflow: &str, limit: &RateLimit) -> Result<Vec<u64>> {
        let since = self.host.now_ms().saturating_sub(limit.per_ms);
        let filter = Filter {
            workflow: Some(workflow.to_owned()),
            limit: usize::try_from(limit.runs_max.min(LEARNT_MAX)).ok(),
            ..Filter::default()
        };
        let latest = self.index.list(&filter).await?;
        let own = latest.iter().filter(|run| run.parent.is_none() && run.queued_ms >= since);
        Ok(own.map(|run| run.queued_ms).collect())
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

    #[test]
    fn what_began_before_counts_once() {
        let (pace, limit) = (Pace::default(), RateLimit { per_ms: 1_000, runs_max: 2 });
        pace.learn("a", vec![900, 300]);
        pace.learn("a", vec![900]);
        assert_eq!(pace.take("a", &limit, 1_000), Err(300));
    }
}
