//! Waiting until a run hands something over, is over, or rests.

use std::time::Duration;

use cairn_core::event::engine::WaitingFor;
use cairn_core::id::{EventIndex, RunId};
use cairn_core::projection::run::{RunState, StepStatus};
use cairn_store::port::mailbox::Follower;

use super::{Hand, log};
use crate::error::Result;
use crate::flow::telling::Place;
use crate::flow::{Past, Watch};
use crate::host::Host;

/// How long a run that waits for people is looked at, since something may be computed beside.
const REST: Duration = Duration::from_millis(250);
/// How long to wait before looking again when nobody tells what happens.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// From when on something counts.
#[derive(Clone, Copy)]
pub(super) enum Since {
    /// What follows this event.
    Event(EventIndex),
    /// What holds now.
    Now,
}

/// Tells that something happened to a run.
enum Follow {
    /// It is performed here.
    Here(Watch, RunId),
    /// It is performed by a process that tells.
    There(Follower),
    /// It is performed by a process that does not.
    Silent,
}

impl Follow {
    async fn next(&mut self, host: &dyn Host) {
        match self {
            Self::Here(watch, run) => {
                while let Some(told) = watch.next().await {
                    let own = |event: &&cairn_core::event::Event| event.scope.run() == Some(*run);
                    if told.events.iter().filter(own).any(|event| log::is_telling(&event.data)) {
                        return;
                    }
                }
                std::future::pending().await
            }
            Self::There(told) => {
                if !told.next().await {
                    *self = Self::Silent;
                }
            }
            Self::Silent => host.sleep(LOOK_AGAIN).await,
        }
    }
}

impl Hand {
    /// A run as soon as an agent has something to do or to be told, or after a while.
    pub(super) async fn settle(&self, past: Past, since: Since) -> Result<Past> {
        let (run, by) =
            (past.summary.run, self.flow.host.uptime() + self.flow.options.hand_patience);
        if is_settled(&past, since) {
            return self.whole(past).await;
        }
        let mut follow = self.follow(run).await?;
        loop {
            let past = self.flow.reading.past(run).await?;
            if is_settled(&past, since) {
                return self.whole(past).await;
            }
            let left = by.saturating_sub(self.flow.host.uptime());
            let left = if rests(&past.state) { left.min(REST) } else { left };
            if self.flow.host.within(left, follow.next(&*self.flow.host)).await.is_none() {
                return self.flow.reading.past(run).await;
            }
        }
    }

    /// A run with everything that was decided together with the last of it: nothing has the
    /// time of that any more.
    async fn whole(&self, past: Past) -> Result<Past> {
        let Some(last) = past.events.last().map(|event| event.id.minted_ms()) else {
            return Ok(past);
        };
        if self.flow.host.now_ms() > last {
            return Ok(past);
        }
        while self.flow.host.now_ms() == last {
            self.flow.host.sleep(Duration::from_millis(1)).await;
        }
        self.flow.reading.past(past.summary.run).await
    }

    /// Follows a run, and performs it when nobody does.
    async fn follow(&self, run: RunId) -> Result<Follow> {
        let watch = self.flow.watchers.watch();
        Ok(match self.flow.place_of(run).await? {
            Place::Here(_) | Place::Over => Follow::Here(watch, run),
            Place::There { session, .. } => {
                let follower = self.flow.store.mailbox.follow(session).await?;
                follower.map_or(Follow::Silent, Follow::There)
            }
        })
    }
}

fn is_settled(past: &Past, since: Since) -> bool {
    match since {
        Since::Event(from) => log::first_stop(&past.events, from).is_some(),
        Since::Now => log::is_stop(&log::last_stop(&past.events)),
    }
}

/// Whether nothing happens to a run before a person does something.
fn rests(state: &RunState) -> bool {
    let still = state.steps.values().filter(|step| !step.status.is_final()).all(|step| {
        step.status == StepStatus::Unknown || step.waiting_for == Some(WaitingFor::Person)
    });
    state.paused || (still && state.started.is_some() && state.steps.values().any(is_open))
}

fn is_open(step: &cairn_core::projection::run::StepState) -> bool {
    !step.status.is_final()
}
