//! Whoever wants to know how runs go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cairn_core::event::Event;
use cairn_core::event::engine::{EndStatus, Failure};
use cairn_core::id::{RunId, SessionId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::text::Slug;
use serde_json::{Value, json};
use tokio::sync::{broadcast, oneshot};

use crate::error::Error;

/// How many commits somebody may be behind.
const BEHIND_MAX: usize = 1_024;

/// What was recorded together.
#[derive(Clone, Debug)]
pub struct Told {
    /// In which session.
    pub session: SessionId,
    /// What.
    pub events: Arc<[Event]>,
}

/// Is told of everything that is recorded, and misses nothing.
pub trait Observer: Send + Sync {
    /// Takes something in. Runs wait for it, so it never waits itself.
    fn told(&self, told: &Told);

    /// Hears that a trigger was refused, for a reason that it was not refused for lately.
    fn refused(&self, _: &Refusal<'_>) {}
}

/// A firing of a trigger that was refused.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// The workflow.
    pub workflow: &'a str,
    /// Its trigger.
    pub trigger: &'a Slug,
    /// Why.
    pub why: &'a Error,
}

/// Gives what is recorded, as it is.
pub struct Watch(broadcast::Receiver<Told>);

impl Watch {
    /// What was recorded next; none when the engine is gone. Whoever is too slow misses some.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            match self.0.recv().await {
                Ok(told) => return Some(told),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Ended {
    /// How.
    pub status: EndStatus,
    /// What came out, or what went wrong.
    pub result: Value,
    /// What whoever called the webhook is to be answered, if the run said so.
    pub response: Option<Value>,
}

/// What is told of a failure as the result of a run.
pub(super) fn failure(error: &Failure, instance: Option<&StepInstanceKey>) -> Value {
    let step = instance.map(ToString::to_string);
    json!({"code": error.code, "message": error.message, "step": step})
}

pub(super) struct Watchers {
    all: broadcast::Sender<Told>,
    observers: RwLock<Vec<Arc<dyn Observer>>>,
    ends: Mutex<BTreeMap<RunId, Vec<Awaited>>>,
    responses: Mutex<BTreeMap<RunId, Vec<oneshot::Sender<Value>>>>,
}

/// Somebody who waits for the end of a run.
struct Awaited {
    tell: oneshot::Sender<Ended>,
    /// Whether the run was there when it was asked for. Such a one that is not there any more was
    /// let go of; any other may be about to begin.
    was_there: bool,
}

impl Default for Watchers {
    fn default() -> Self {
        let (all, _) = broadcast::channel(BEHIND_MAX);
        Self {
            all,
            observers: RwLock::default(),
            ends: Mutex::default(),
            responses: Mutex::default(),
        }
    }
}

impl Watchers {
    pub(super) fn watch(&self) -> Watch {
        Watch(self.all.subscribe())
    }

    pub(super) fn observe(&self, observer: Arc<dyn Observer>) {
        self.observers.write().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    pub(super) fn is_watched(&self) -> bool {
        let observers = self.observers.read().unwrap_or_else(PoisonError::into_inner);
        !observers.is_empty() || self.all.receiver_count() > 0
    }

    pub(super) fn tell(&self, told: &Told) {
        let observers = self.observers.read().unwrap_or_else(PoisonError::into_inner);
        observers.iter().for_each(|observer| observer.told(told));
        // Nobody listening is fine.
        let _ = self.all.send(told.clone());
    }

    pub(super) fn refused(&self, refusal: &Refusal<'_>) {
        let observers = self.observers.read().unwrap_or_else(PoisonError::into_inner);
        observers.iter().for_each(|observer| observer.refused(refusal));
    }

    /// Is told when a run is over that is there. Ask before looking whether it is over.
    pub(super) fn until_end(&self, run: RunId) -> oneshot::Receiver<Ended> {
        self.wait(run, true)
    }

    /// Is told when a run is over that may have to begin first.
    pub(super) fn until_end_of_new(&self, run: RunId) -> oneshot::Receiver<Ended> {
        self.wait(run, false)
    }

    fn wait(&self, run: RunId, was_there: bool) -> oneshot::Receiver<Ended> {
        let (tell, told) = oneshot::channel();
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = ends.entry(run).or_default();
        waiting.retain(|awaited| !awaited.tell.is_closed());
        waiting.push(Awaited { tell, was_there });
        told
    }

    /// The runs whose end somebody waits for.
    pub(super) fn awaited(&self) -> Vec<RunId> {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let is_awaited = |waiting: &Vec<Awaited>| waiting.iter().any(|one| !one.tell.is_closed());
        ends.iter().filter(|(_, tells)| is_awaited(tells)).map(|(run, _)| *run).collect()
    }

    pub(super) fn ended(&self, run: RunId, end: &Ended) {
        let waiting = self.ends.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
        for Awaited { tell, .. } in waiting.into_iter().flatten() {
            let _ = tell.send(end.clone());
        }
        self.responses.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    /// A run is not there: nobody can tell any more how one ended that was.
    pub(super) fn gone(&self, run: RunId) {
        forget_gone(&self.ends, run, |awaited| awaited.was_there || awaited.tell.is_closed());
    }

    /// Is told what the run answers to whoever called.
    pub(super) fn until_response(&self, run: RunId) -> oneshot::Receiver<Value> {
        let (tell, told) = oneshot::channel();
        let mut responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        responses.entry(run).or_default().push(tell);
        told
    }

    /// Forgets those who do not wait for a run any more.
    pub(super) fn tidy(&self, run: RunId) {
        forget_gone(&self.ends, run, |awaited| awaited.tell.is_closed());
        forget_gone(&self.responses, run, oneshot::Sender::is_closed);
    }

    pub(super) fn responded(&self, run: RunId, response: Value) {
        let waiting = self.responses.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
        for tell in waiting.into_iter().flatten() {
            let _ = tell.send(response.clone());
        }
    }
}

fn forget_gone<T>(
    waiting: &Mutex<BTreeMap<RunId, Vec<T>>>,
    run: RunId,
    is_gone: impl Fn(&T) -> bool,
) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(tells) = waiting.get_mut(&run) else { return };
    tells.retain(|one| !is_gone(one));
    if tells.is_empty() {
        waiting.remove(&run);
    }
}
