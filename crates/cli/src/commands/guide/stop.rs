//! Ending when a signal says so.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Does something until it is done or a signal asks to stop. Then it is dropped where it is,
/// and whatever it has started ends with it.
pub(crate) async fn by_signal(work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => Ok(Exit::Interrupted),
        _ = terminate.recv() => Ok(Exit::Terminated),
    }
}

fn listen(kind: SignalKind) -> Result<Signal> {
    signal(kind).map_err(|error| Error::Internal(error.to_string()))
}
