//! How far the server is on its way to the end.

use tokio::sync::watch;

/// How urgently the server is to stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Stopping {
    /// Not at all.
    #[default]
    No,
    /// When the steps under way are over, or their time is.
    Gently,
    /// Now: the steps under way are parked.
    AtOnce,
}

/// How far the server is on its way to the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Phase {
    /// It takes work.
    Serving,
    /// It takes no work, and what is under way may end.
    Draining,
    /// It answers what it has taken, and no more.
    Closing,
}

/// Tells how far it is.
#[derive(Clone)]
pub(crate) struct Phases(watch::Receiver<Phase>);

impl Phases {
    pub(crate) fn new() -> (watch::Sender<Phase>, Self) {
        let (to, phase) = watch::channel(Phase::Serving);
        (to, Self(phase))
    }

    /// Whether work is taken.
    pub(crate) fn takes_work(&self) -> bool {
        *self.0.borrow() == Phase::Serving
    }

    /// Waits until no work is taken any more.
    pub(crate) async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    /// Waits until the server closes.
    pub(crate) async fn closing(&self) {
        self.reached(Phase::Closing).await;
    }

    async fn reached(&self, wanted: Phase) {
        // A server that is gone is closed, too.
        let _ = self.0.clone().wait_for(|phase| *phase >= wanted).await;
    }
}
