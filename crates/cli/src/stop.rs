//! Ending when a signal says so.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask a program to stop, listened to from now on.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    pub(crate) fn new() -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|error| Error::Internal(error.to_string()));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them; gives how a program ends that does not end in its own way.
    pub(crate) async fn wait(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}

/// Does something until it is done or a signal asks to stop. Then it is dropped where it is,
/// and whatever it has started ends with it.
pub(crate) async fn by_signal(work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    let mut stop = StopSignals::new()?;
    tokio::select! {
        done = work => done,
        exit = stop.wait() => Ok(exit),
    }
}
