//! What the engine asks of the machine it runs on: the time, entropy, tasks and pauses.
//!
//! The engine reads no clock, asks for no randomness and starts no task by itself. It is handed
//! a [`Host`], so that the same engine runs on a real machine ([`SystemHost`]) and in a simulated
//! one, where a seed decides what happens next.

mod system;

pub use system::SystemHost;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use cairn_core::id::{ChangeId, EventId, RunId, SessionId};

use crate::error::{Error, Result};

/// A future that may be handed to another thread.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A machine.
pub trait Host: Send + Sync {
    /// The time in milliseconds since 1970. It may jump, in either direction.
    fn now_ms(&self) -> u64;

    /// The time since some moment before anything was asked of this host. It never goes back.
    fn uptime(&self) -> Duration;

    /// Random bits. Without any there is an error, never a default.
    fn entropy(&self) -> Result<u128>;

    /// Runs a task beside everything else.
    fn spawn(&self, task: BoxFuture<()>) -> Task;

    /// Completes after a pause.
    fn sleep(&self, pause: Duration) -> BoxFuture<()>;

    /// Runs a job that waits for disks where it holds nobody up.
    fn blocking(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<()>;
}

/// A task under way. Dropping it leaves the task alone.
pub struct Task(Box<dyn Fn() + Send + Sync>);

impl Task {
    /// A task that this ends.
    #[must_use]
    pub fn new(abort: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(abort))
    }

    /// Ends the task wherever it waits.
    pub fn abort(&self) {
        (self.0)();
    }
}

/// What came of two futures of which one was waited for.
pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}

/// Waits for whichever is over first; of two that are over, the first counts. The second is not
/// made before the first has to be waited for.
pub(crate) async fn either<A, B: Future>(
    first: impl Future<Output = A>,
    second: impl FnOnce() -> B,
) -> Either<A, B::Output> {
    let mut first = pin!(first);
    let polled = poll_fn(|ctx| Poll::Ready(first.as_mut().poll(ctx))).await;
    if let Poll::Ready(done) = polled {
        return Either::First(done);
    }
    let mut second = pin!(second());
    poll_fn(|ctx| match first.as_mut().poll(ctx) {
        Poll::Ready(done) => Poll::Ready(Either::First(done)),
        Poll::Pending => second.as_mut().poll(ctx).map(Either::Second),
    })
    .await
}

/// What comes of something; none when it panics.
pub(crate) async fn unpanicked<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|ctx| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(ctx)));
        match polled {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

impl dyn Host + '_ {
    /// A fresh id for a run.
    pub(crate) fn run_id(&self) -> Result<RunId> {
        Ok(RunId::mint(self.now_ms(), self.entropy()?))
    }

    /// A fresh id for a session.
    pub(crate) fn session_id(&self) -> Result<SessionId> {
        Ok(SessionId::mint(self.now_ms(), self.entropy()?))
    }

    /// A fresh id for an event.
    pub(crate) fn event_id(&self) -> Result<EventId> {
        Ok(EventId::mint(self.now_ms(), self.entropy()?))
    }

    /// A fresh id for a change that somebody makes to a run.
    pub(crate) fn change_id(&self) -> Result<ChangeId> {
        Ok(ChangeId::mint(self.now_ms(), self.entropy()?))
    }

    /// What comes of something within a span of time; none when it takes longer.
    pub async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        match either(work, || self.sleep(limit)).await {
            Either::First(done) => Some(done),
            Either::Second(()) => None,
        }
    }

    /// What comes of a job that waits for disks.
    pub async fn wait_for<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let result = Arc::new(Mutex::new(None));
        let put = Arc::clone(&result);
        self.blocking(Box::new(move || {
            *put.lock().unwrap_or_else(PoisonError::into_inner) = Some(job());
        }))
        .await;
        let done = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        done.ok_or_else(|| Error::Broken("a job on the disk was cut off".to_owned()))
    }
}
