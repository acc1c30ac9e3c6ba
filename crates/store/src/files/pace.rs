//! Work that blocks, among tasks that must not be held up.
//!
//! To make way for others costs a task its thread, and the change of threads takes as long as
//! half a commit. So while the disk is quick, one commit at a time is waited for in place;
//! there is another thread for everybody else.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

/// How long a commit may usually take to be waited for in place.
const QUICK: Duration = Duration::from_millis(1);
/// How many commits the usual time is of.
const RECENT: u64 = 8;

/// Runs what blocks, without holding up other tasks where there are threads for them.
pub(super) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// How long commits take, and whether one is waited for in place.
pub(super) struct Pace {
    usual_us: AtomicU64,
    in_place: AtomicBool,
}

impl Default for Pace {
    /// A disk that nobody has tried is a slow one.
    fn default() -> Self {
        let slow = u64::try_from(QUICK.as_micros()).unwrap_or(u64::MAX).saturating_mul(2);
        Self { usual_us: AtomicU64::new(slow), in_place: AtomicBool::new(false) }
    }
}

impl Pace {
    /// Runs a commit, in place when that holds nobody up for long.
    pub(super) fn keeping<T>(&self, commit: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = if self.is_quick() && has_other_threads() && !self.enter() {
            let done = commit();
            self.in_place.store(false, Ordering::Release);
            done
        } else {
            blocking(commit)
        };
        self.took(begun.elapsed());
        done
    }

    /// Takes the one place; whether somebody has it already.
    fn enter(&self) -> bool {
        self.in_place.swap(true, Ordering::Acquire)
    }

    fn is_quick(&self) -> bool {
        Duration::from_micros(self.usual_us.load(Ordering::Relaxed)) <= QUICK
    }

    fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let usual = self.usual_us.load(Ordering::Relaxed);
        // Two at once may lose one of them, which does not matter.
        let usual = (usual.saturating_mul(RECENT - 1).saturating_add(time)) / RECENT;
        self.usual_us.store(usual, Ordering::Relaxed);
    }
}

fn has_other_threads() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.metrics().num_workers() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_counts_as_quick_while_its_commits_are() {
        let pace = Pace::default();
        assert!(!pace.is_quick(), "nothing is known of it yet");
        (0..20).for_each(|_| pace.took(Duration::from_micros(100)));
        assert!(pace.is_quick());
        pace.took(Duration::from_millis(5));
        assert!(pace.is_quick(), "one slow commit is no slow disk");
        (0..4).for_each(|_| pace.took(Duration::from_millis(5)));
        assert!(!pace.is_quick());
    }

    #[test]
    fn one_commit_at_a_time_is_waited_for_in_place() {
        let pace = Pace::default();
        assert!(!pace.enter());
        assert!(pace.enter());
    }
}
