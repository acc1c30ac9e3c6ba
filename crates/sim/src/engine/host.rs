//! The machine as one process sees it.

use std::sync::Arc;
use std::time::Duration;

use cairn_engine::Result;
use cairn_engine::host::{BoxFuture, Host, Task};

use super::executor::{Machine, Process};

/// The host of a process.
pub(super) struct SimHost {
    machine: Machine,
    process: Process,
}

impl SimHost {
    pub(super) fn shared(machine: Machine, process: Process) -> Arc<dyn Host> {
        Arc::new(Self { machine, process })
    }
}

impl Host for SimHost {
    fn now_ms(&self) -> u64 {
        self.machine.now_ms()
    }

    fn uptime(&self) -> Duration {
        self.machine.now()
    }

    fn entropy(&self) -> Result<u128> {
        Ok(self.machine.bits())
    }

    fn spawn(&self, task: BoxFuture<()>) -> Task {
        let (machine, id) = (self.machine.clone(), self.machine.spawn(self.process, task));
        Task::new(move || machine.abort(id))
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<()> {
        Box::pin(self.machine.sleep(pause))
    }

    fn blocking(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<()> {
        let pause = self.machine.sleep(Duration::from_micros(50));
        Box::pin(async move {
            pause.await;
            job();
        })
    }
}
