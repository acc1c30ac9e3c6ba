//! Going on from an earlier step, in a run of its own.

use std::collections::BTreeSet;

use serde_json::Value;

use super::command::inline;
use super::graph::{Does, Graph};
use crate::catalog::Class;
use crate::event::{Event, EventData};
use crate::id::RunId;
use crate::instance::{LoopTurn, StepInstanceKey};
use crate::projection::run::{RunState, StepStatus};

/// What a fork goes on from.
#[derive(Clone, PartialEq, Debug)]
pub struct Fork {
    /// The state that the new run begins with.
    pub state: RunState,
    /// What was done before and will be done again, in the order of the plan.
    pub again: Vec<Repeated>,
    /// What is kept.
    pub kept: Vec<StepInstanceKey>,
}

/// A step that will be done again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repeated {
    /// Which.
    pub instance: StepInstanceKey,
    /// Whether the world may notice.
    pub has_effects: bool,
}

/// An earlier output that is put in the place of the recorded one.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Whose output.
    pub instance: StepInstanceKey,
    /// What it is to be.
    pub output: Value,
}

/// Why there is nothing to go on from.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotThere {
    /// The run never came there.
    #[error("the run never reached `{0}`")]
    Unreached(StepInstanceKey),
    /// The plan that the fork is to follow has no such step.
    #[error("the plan has no step `{0}`")]
    NotInPlan(StepInstanceKey),
    /// The output that is to be changed is not kept.
    #[error("`{0}` has no output that is kept")]
    NotKept(StepInstanceKey),
}

/// Every step that a run ever began, by what is recorded of it.
pub fn begun<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeSet<StepInstanceKey> {
    events.into_iter().filter_map(|event| begins(&event.data)).cloned().collect()
}

/// The step that an event begins, or ends when nothing else said that it began.
#[must_use]
pub const fn begins(data: &EventData) -> Option<&StepInstanceKey> {
    match data {
        EventData::StepStarted(step) => Some(&step.instance),
        EventData::StepCompleted(step) => Some(&step.instance),
        EventData::StepFailed(step) => Some(&step.instance),
        EventData::StepSkipped(step) => Some(&step.instance),
        EventData::StepWaiting(step) => Some(&step.instance),
        EventData::LoopEntered(entered) => Some(&entered.instance),
        _ => None,
    }
}

impl Fork {
    /// What is left of a run when a step and all that follows it are taken back.
    ///
    /// `state` is the run as it was when the step was reached or later, `done` every step that
    /// it ever began; the graph may be that of a newer plan.
    pub fn new(
        graph: &Graph,
        state: &RunState,
        done: &BTreeSet<StepInstanceKey>,
        from: &StepInstanceKey,
        changes: &[Change],
        run_id: RunId,
    ) -> Result<Self, NotThere> {
        let at = graph.find(&from.step).ok_or_else(|| NotThere::NotInPlan(from.clone()))?;
        if !state.steps.contains_key(from) && !state.loops.contains_key(from) {
            return Err(NotThere::Unreached(from.clone()));
        }
        let gone = behind(graph, at, from);
        let mut left = RunState { end: None, run_id, paused: false, ..state.clone() };
        (left.cancel_requested, left.retired, left.started) = (false, false, None);
        (left.children, left.tasks, left.timers) = Default::default();
        left.steps.retain(|key, step| {
            let known = graph.find(&key.step).is_some();
            let over = matches!(step.status, StepStatus::Succeeded | StepStatus::Skipped)
                || (step.status == StepStatus::Failed && is_replaced(graph, key));
            known && over && !is_gone(graph, &gone, key)
        });
        left.loops.retain(|key, _| graph.find(&key.step).is_some() && !is_gone(graph, &gone, key));
        left.reached = u32::try_from(left.steps.len()).unwrap_or(u32::MAX);
        left.events = 0;
        left.ended_by = left.ended_by.filter(|key| left.steps.contains_key(key));
        for change in changes {
            let step = left.steps.get_mut(&change.instance);
            let step = step.filter(|step| step.output.is_some());
            let step = step.ok_or_else(|| NotThere::NotKept(change.instance.clone()))?;
            step.output = Some(inline(change.output.clone()));
        }
        // A loop around the step goes on, and is neither done again nor over.
        let known = |key: &&StepInstanceKey| {
            graph.find(&key.step).is_some() && !left.loops.contains_key(key)
        };
        let is_kept = |key: &StepInstanceKey| match state.steps.contains_key(key) {
            true => left.steps.contains_key(key),
            // It left the state with its turn, or with the whole loop.
            false => !is_gone(graph, &gone, key) && !is_later(key, from),
        };
        let (kept, again): (Vec<_>, Vec<_>) = done.iter().filter(known).cloned().partition(is_kept);
        let mut again: Vec<Repeated> =
            again.into_iter().map(|instance| repeated(graph, instance)).collect();
        again.sort_by_key(|step| graph.find(&step.instance.step));
        Ok(Self { state: left, again, kept })
    }
}

/// A level, and the places in it that are taken back.
struct Gone<'k> {
    path: &'k [LoopTurn],
    places: BTreeSet<usize>,
}

/// What follows a step, in its own level and behind the loops around it.
fn behind<'k>(graph: &Graph, at: usize, from: &'k StepInstanceKey) -> Vec<Gone<'k>> {
    let mut levels = vec![Gone { path: &from.loop_path, places: following(graph, vec![at]) }];
    for (depth, turn) in from.loop_path.iter().enumerate() {
        let Some(place) = graph.find(&turn.loop_id).and_then(|at| graph.place(at)) else {
            continue;
        };
        let next = place.outs.iter().map(|out| out.to).collect();
        let path = from.loop_path.get(..depth).unwrap_or_default();
        levels.push(Gone { path, places: following(graph, next) });
    }
    levels
}

fn following(graph: &Graph, mut open: Vec<usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    while let Some(at) = open.pop() {
        if found.insert(at) {
            open.extend(graph.place(at).into_iter().flat_map(|p| p.outs.iter().map(|o| o.to)));
        }
    }
    found
}

/// Whether an instance, or a loop that it is in, is among those that are taken back.
fn is_gone(graph: &Graph, gone: &[Gone<'_>], key: &StepInstanceKey) -> bool {
    gone.iter().any(|level| {
        let Some(rest) = key.loop_path.strip_prefix(level.path) else { return false };
        let inner = rest.first().map_or(&key.step, |turn| &turn.loop_id);
        graph.find(inner).is_some_and(|at| level.places.contains(&at))
    })
}

/// Whether an instance is of a later turn than another, in a loop around both.
fn is_later(key: &StepInstanceKey, than: &StepInstanceKey) -> bool {
    let turns = key.loop_path.iter().zip(&than.loop_path);
    let differing = turns.into_iter().find(|(turn, other)| turn != other);
    differing.is_some_and(|(turn, other)| turn.is_beside(other) && turn.iteration > other.iteration)
}

/// Whether another step took the place of a failed one.
fn is_replaced(graph: &Graph, key: &StepInstanceKey) -> bool {
    let step = graph.find(&key.step).and_then(|at| graph.step(at));
    step.is_some_and(|step| matches!(step.on_failure, crate::plan::OnFailure::Fallback { .. }))
}

fn repeated(graph: &Graph, instance: StepInstanceKey) -> Repeated {
    let does = graph.find(&instance.step).and_then(|at| graph.place(at)).map(|place| place.does);
    let has_effects = matches!(
        does,
        Some(Does::Perform(Class::Effectful) | Does::Child | Does::Human | Does::Respond)
    );
    Repeated { instance, has_effects }
}
