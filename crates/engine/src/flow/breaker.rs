//! Steps whose other side is down.
//!
//! When a step of a workflow has failed some times in a row, in whichever runs, because the
//! other side was not there or could not cope, it is not asked by all runs at once any more:
//! one tries, at growing intervals, and the others wait until a try comes through. No step
//! fails because of that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_core::flow::Fault;
use cairn_core::plan::FailureKind;
use cairn_core::text::Slug;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// After how many failures in a row a step is tried by one run at a time.
const FAILURES_MAX: u32 = 10;
/// How long it is left alone first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// The steps that failed lately.
#[derive(Default)]
pub(super) struct Breaker {
    /// By workflow, and then by step.
    steps: Mutex<HashMap<String, HashMap<Slug, Failing>>>,
    moved: Notify,
}

/// A step that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Failing {
    in_a_row: u32,
    pause: Duration,
    /// When it may be tried again.
    next: Instant,
    /// Whether somebody does.
    tried: bool,
}

/// Whether a step may be tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum May {
    /// Whenever somebody wants to.
    Go,
    /// By one, for all.
    Try,
    /// Not before this, nor before somebody is through.
    Wait(Instant),
}

impl Failing {
    fn new(now: Instant) -> Self {
        Self { in_a_row: 0, pause: Duration::ZERO, next: now, tried: false }
    }

    fn may(&mut self, now: Instant) -> May {
        let [_, longest] = PAUSES;
        if self.in_a_row < FAILURES_MAX {
            return May::Go;
        }
        if self.tried {
            return May::Wait(now + longest);
        }
        if now < self.next {
            return May::Wait(self.next);
        }
        self.tried = true;
        May::Try
    }

    fn failed(&mut self, was_tried: bool, now: Instant) {
        let [first, longest] = PAUSES;
        self.in_a_row = self.in_a_row.saturating_add(1);
        // Those that were under way when it began to be left alone say nothing new.
        if was_tried || self.in_a_row == FAILURES_MAX {
            self.pause = (self.pause * 2).clamp(first, longest);
            self.next = now + self.pause;
        }
    }
}

/// Leave to try a step.
pub(super) struct Leave<'b> {
    breaker: &'b Breaker,
    workflow: &'b str,
    step: &'b Slug,
    is_try: bool,
}

impl Breaker {
    fn steps(&self) -> MutexGuard<'_, HashMap<String, HashMap<Slug, Failing>>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a step may be tried.
    pub(super) async fn leave<'b>(&'b self, workflow: &'b str, step: &'b Slug) -> Leave<'b> {
        loop {
            let moved = self.moved.notified();
            let may = match self.steps().get_mut(workflow).and_then(|steps| steps.get_mut(step)) {
                Some(failing) => failing.may(Instant::now()),
                None => May::Go,
            };
            let May::Wait(until) = may else {
                return Leave { breaker: self, workflow, step, is_try: may == May::Try };
            };
            // Whoever is told looks again, as does whoever has waited long enough.
            let _ = timeout_at(until, moved).await;
        }
    }
}

impl Leave<'_> {
    /// Notes what came of it.
    pub(super) fn done<T>(self, done: &Result<T, Fault>) {
        let is_down = done.as_ref().is_err_and(|fault| is_about_the_other_side(fault.kind));
        let mut steps = self.breaker.steps();
        if is_down {
            let now = Instant::now();
            let steps = steps.entry(self.workflow.to_owned()).or_default();
            let failing = steps.entry(self.step.clone()).or_insert_with(|| Failing::new(now));
            failing.failed(self.is_try, now);
        } else if let Some(steps) = steps.get_mut(self.workflow) {
            steps.remove(self.step);
        }
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut steps = self.breaker.steps();
        let failing = steps.get_mut(self.workflow).and_then(|steps| steps.get_mut(self.step));
        if let Some(failing) = failing.filter(|_| self.is_try) {
            failing.tried = false;
        }
        drop(steps);
        self.breaker.moved.notify_waiters();
    }
}

const fn is_about_the_other_side(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Connection
            | FailureKind::RateLimited
            | FailureKind::ServerError
            | FailureKind::Timeout
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> Result<(), Fault> {
        Err(Fault { kind: FailureKind::Connection, ..Fault::new("HTTP_CONNECT", "refused") })
    }

    async fn fail(breaker: &Breaker, step: &Slug, times: u32) {
        for _ in 0..times {
            breaker.leave("w", step).await.done(&down());
        }
    }

    #[test]
    fn the_pause_doubles_with_every_try_and_has_an_end() {
        let start = Instant::now();
        let mut step = Failing::new(start);
        (0..FAILURES_MAX - 1).for_each(|_| step.failed(false, start));
        assert_eq!(step.may(start), May::Go);
        step.failed(false, start);
        // What was under way then says nothing new.
        (0..50).for_each(|_| step.failed(false, start));
        let mut now = start;
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            let next = now + Duration::from_secs(seconds);
            assert_eq!(step.may(now), May::Wait(next), "{seconds}");
            now = next;
            assert_eq!(step.may(now), May::Try);
            assert_eq!(step.may(now), May::Wait(now + Duration::from_secs(30)), "one at a time");
            step.failed(true, now);
            step.tried = false;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_goes_on_when_a_try_comes_through() {
        let (breaker, step) = (Breaker::default(), "a".parse::<Slug>().unwrap());
        fail(&breaker, &step, FAILURES_MAX).await;
        let begun = Instant::now();
        let tried = breaker.leave("w", &step).await;
        assert_eq!(begun.elapsed().as_secs(), 1);
        let others = async {
            let (one, other) = tokio::join!(breaker.leave("w", &step), breaker.leave("w", &step));
            assert!(!one.is_try && !other.is_try);
            begun.elapsed()
        };
        let through = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            tried.done(&Ok(()));
        };
        let (waited, ()) = tokio::join!(others, through);
        assert_eq!(waited.as_secs(), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_is_called_off_is_made_by_the_next() {
        let (breaker, step) = (Breaker::default(), "a".parse::<Slug>().unwrap());
        fail(&breaker, &step, FAILURES_MAX).await;
        drop(breaker.leave("w", &step).await);
        assert!(breaker.leave("w", &step).await.is_try);
    }

    #[tokio::test(start_paused = true)]
    async fn other_steps_and_other_failures_do_not_count() {
        let (breaker, step) = (Breaker::default(), "a".parse::<Slug>().unwrap());
        fail(&breaker, &step, FAILURES_MAX - 1).await;
        let exit = Fault { kind: FailureKind::ExitCode, ..Fault::new("SHELL_EXIT", "1") };
        breaker.leave("w", &step).await.done(&Err::<(), _>(exit));
        fail(&breaker, &step, FAILURES_MAX - 1).await;
        assert!(!breaker.leave("w", &step).await.is_try);
        fail(&breaker, &step, 1).await;
        let begun = Instant::now();
        drop(breaker.leave("w", &"b".parse().unwrap()).await);
        drop(breaker.leave("v", &step).await);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
