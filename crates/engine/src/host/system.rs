//! The machine that the program runs on. The one place in the engine that reads clocks, asks the
//! system for entropy and starts tasks.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{BoxFuture, Host, Task};
use crate::error::{Error, Result};

/// The system's clock and entropy, and the tokio runtime that a call comes from.
#[derive(Debug)]
pub struct SystemHost {
    started: Instant,
}

impl SystemHost {
    /// This machine.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where the engine's clock comes from")]
    pub fn shared() -> Arc<dyn Host> {
        Arc::new(Self { started: Instant::now() })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where time, entropy and tasks come from")]
impl Host for SystemHost {
    fn now_ms(&self) -> u64 {
        // A clock before 1970 is at its beginning.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    fn entropy(&self) -> Result<u128> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| Error::NoEntropy(error.to_string()))?;
        Ok(u128::from_le_bytes(bytes))
    }

    fn spawn(&self, task: BoxFuture<()>) -> Task {
        let task = tokio::spawn(task).abort_handle();
        Task::new(move || task.abort())
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn blocking(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<()> {
        let job = tokio::task::spawn_blocking(job);
        // What a job that panicked left is missed by whoever waits for it.
        Box::pin(async move { drop(job.await) })
    }
}
