//! What the log of a run says to an agent: which steps are handed to it, and what became of
//! them.

use cairn_core::event::engine::{TaskAnswered, TaskOpened, WaitingFor};
use cairn_core::event::{Door, Event, EventData};
use cairn_core::id::{EventIndex, TaskId};
use cairn_core::instance::StepInstanceKey;

/// Something that a run asks, of an agent or of a person.
#[derive(Clone, Debug)]
pub(super) struct Open<'e> {
    /// Where it was recorded.
    pub(super) at: EventIndex,
    pub(super) task: &'e TaskOpened,
    /// Who is asked; not known before the step is said to wait.
    of: Option<WaitingFor>,
}

/// A moment at which an agent can act, or at which the run is over.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop<'e> {
    open: Vec<Open<'e>>,
    /// What ended the run.
    pub(super) end: Option<&'e EventData>,
}

impl<'e> Stop<'e> {
    /// What is asked of agents, longest open first.
    pub(super) fn handed(&self) -> impl Iterator<Item = &Open<'e>> {
        self.open.iter().filter(|open| open.of == Some(WaitingFor::Caller))
    }

    /// What is asked of people.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Open<'e>> {
        self.open.iter().filter(|open| open.of == Some(WaitingFor::Person))
    }

    fn is_one(&self) -> bool {
        self.end.is_some() || self.handed().next().is_some()
    }

    fn take(&mut self, event: &'e Event) {
        match &event.data {
            EventData::TaskOpened(task) => {
                self.open.retain(|open| open.task.task_id != task.task_id);
                self.open.push(Open { at: event.index, task, of: None });
            }
            EventData::StepWaiting(step) => {
                let asks = |open: &&mut Open<'_>| open.task.instance == step.instance;
                self.open.iter_mut().filter(asks).for_each(|open| open.of = Some(step.waiting_for));
            }
            EventData::TaskAnswered(task) => {
                self.open.retain(|open| open.task.task_id != task.task_id);
            }
            EventData::StepFailed(step) => self.close(&step.instance),
            // What was asked elsewhere is not asked here.
            EventData::RunPaused(paused) if paused.imported => self.open.clear(),
            EventData::RunCompleted(_) | EventData::RunFailed(_) | EventData::RunCancelled(_) => {
                self.open.clear();
                self.end = Some(&event.data);
            }
            _ => {}
        }
    }

    fn close(&mut self, instance: &StepInstanceKey) {
        self.open.retain(|open| open.task.instance != *instance);
    }
}

/// The first stop at an event or behind it. The same whenever it is asked for: what was
/// decided together, and so has one time, belongs to it as a whole.
pub(super) fn first_stop(events: &[Event], from: EventIndex) -> Option<Stop<'_>> {
    let mut stop = Stop::default();
    let mut rest = events.iter().peekable();
    loop {
        let event = rest.next()?;
        stop.take(event);
        if event.index < from || !stop.is_one() {
            continue;
        }
        let decided_ms = event.id.minted_ms();
        let together = |next: &&Event| {
            next.id.minted_ms() == decided_ms && !matches!(next.data, EventData::TaskAnswered(_))
        };
        while let Some(next) = rest.next_if(together) {
            stop.take(next);
        }
        return Some(stop);
    }
}

/// Where a run stands now.
pub(super) fn last_stop(events: &[Event]) -> Stop<'_> {
    let mut stop = Stop::default();
    events.iter().for_each(|event| stop.take(event));
    stop
}

/// Whether a stop is one at which an agent has something to do or to tell.
pub(super) fn is_stop(stop: &Stop<'_>) -> bool {
    stop.is_one()
}

/// What was answered to a question, and where that is recorded.
pub(super) fn answered(events: &[Event], task: TaskId) -> Option<(EventIndex, &TaskAnswered)> {
    events.iter().find_map(|event| match &event.data {
        EventData::TaskAnswered(answered) if answered.task_id == task => {
            Some((event.index, answered))
        }
        _ => None,
    })
}

/// When the step that waits longest was handed to an agent by the answer that led to it, in
/// milliseconds since 1970: the agent started the run, or did the step before. None when no step
/// waits for an agent, or nobody was told of it.
pub(super) fn handed_directly(events: &[Event]) -> Option<u64> {
    let stop = last_stop(events);
    let open = stop.handed().next()?;
    let opened = events.iter().find(|event| event.index == open.at)?;
    let by_agent =
        events.iter().take_while(|event| event.index < open.at).any(|event| match &event.data {
            EventData::RunQueued(run) => run.via.as_ref().is_some_and(|via| via.door == Door::Mcp),
            EventData::TaskAnswered(task) => was_handed(events, task.task_id),
            _ => false,
        });
    by_agent.then(|| opened.id.minted_ms())
}

/// Who holds a step that was handed out directly: whoever did a step before, or started the run.
pub(super) fn agent(events: &[Event]) -> String {
    let mut names = events.iter().rev().filter_map(|event| match &event.data {
        EventData::TaskAnswered(task) if was_handed(events, task.task_id) => Some(task.by.clone()),
        EventData::RunQueued(run) => run.by.clone(),
        _ => None,
    });
    names.next().unwrap_or_else(|| "agent".to_owned())
}

/// Whether a question was for an agent.
fn was_handed(events: &[Event], task: TaskId) -> bool {
    let asks = events.iter().find_map(|event| match &event.data {
        EventData::TaskOpened(opened) if opened.task_id == task => Some(&opened.instance),
        _ => None,
    });
    events.iter().any(|event| match &event.data {
        EventData::StepWaiting(step) => {
            Some(&step.instance) == asks && step.waiting_for == WaitingFor::Caller
        }
        _ => false,
    })
}

/// Whether an event may bring a run to a stop, or to rest.
pub(in crate::flow) const fn is_telling(data: &EventData) -> bool {
    matches!(
        data,
        EventData::StepWaiting(_)
            | EventData::StepInterrupted(_)
            | EventData::RunPaused(_)
            | EventData::RunCompleted(_)
            | EventData::RunFailed(_)
            | EventData::RunCancelled(_)
    )
}
