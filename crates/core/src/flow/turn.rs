//! Loops: entering, turning, leaving.

use serde_json::Value;

use super::begin::recordable;
use super::command::{Ask, Fault, inline};
use super::decide::{Deciding, Fate};
use super::frontier::Path;
use super::scope::value;
use crate::event::engine::{LoopEntered, LoopExited, RunCompleted};
use crate::instance::StepInstanceKey;
use crate::plan::Repeat;
use crate::projection::run::RunState;

impl Deciding<'_, '_> {
    /// A loop is begun, over these items or so many times.
    pub(super) fn enter(&mut self, instance: &StepInstanceKey, settings: &Value) {
        let Some(looped) = self.graph.find(&instance.step).and_then(|at| self.graph.looped(at))
        else {
            return;
        };
        let max = looped.max_iterations;
        let (items, turns) = match (&looped.repeat, settings) {
            (Repeat::Each { .. }, Value::Array(items)) => {
                (Some(inline(settings.clone())), Some(items.len() as u64))
            }
            (Repeat::Each { .. }, other) => {
                let message = format!("`items` gives {}, which is no list", kind(other));
                return self.failed(instance, Fault::new("LOOP_ITEMS", message), 0);
            }
            (Repeat::Count { .. }, count) => match count.as_u64() {
                // The number is kept as a list is: the turns that are left follow from it.
                Some(turns) => (Some(inline(count.clone())), Some(turns)),
                None => {
                    let message = format!("`count` gives {count}, which is no number of turns");
                    return self.failed(instance, Fault::new("LOOP_COUNT", message), 0);
                }
            },
            _ => (None, None),
        };
        if let Some(turns) = turns.filter(|turns| *turns > u64::from(max)) {
            let message = format!("{turns} turns are asked for, and `max_iterations` is {max}");
            return self.failed(instance, Fault::new("LOOP_LIMIT", message), 0);
        }
        self.emit(LoopEntered { instance: instance.clone(), items });
        self.again(instance, 0);
    }

    /// Opens the level of a turn that was under way, or makes the first.
    pub(super) fn open_turn(&mut self, instance: &StepInstanceKey, at: usize, iteration: u32) {
        if self.is_begun(instance, iteration) {
            self.open_level(instance.inside(iteration), Some(at));
        } else {
            self.again(instance, iteration);
        }
    }

    /// Whether something of a turn is recorded.
    fn is_begun(&self, instance: &StepInstanceKey, iteration: u32) -> bool {
        let (state, path) = (&self.run.state, instance.inside(iteration));
        let within = |key: &StepInstanceKey| key.loop_path.starts_with(&path);
        state.steps.keys().any(within) || state.loops.keys().any(within)
    }

    /// How many turns a loop makes that knows it from the start.
    fn turns(&self, instance: &StepInstanceKey) -> Option<u64> {
        match value(self.run.state.loops.get(instance)?.items.as_ref()?)? {
            Value::Array(items) => Some(items.len() as u64),
            count => count.as_u64(),
        }
    }

    /// Makes a turn, or leaves the loop.
    fn again(&mut self, instance: &StepInstanceKey, iteration: u32) {
        let graph = self.graph;
        let Some(at) = graph.find(&instance.step) else { return };
        let (Some(place), Some(looped)) = (graph.place(at), graph.looped(at)) else { return };
        if let Some(turns) = self.turns(instance) {
            return if u64::from(iteration) < turns {
                self.open_level(instance.inside(iteration), Some(at));
            } else {
                self.leave(instance, iteration);
            };
        }
        if iteration >= looped.max_iterations {
            let max = looped.max_iterations;
            let message = format!("`while` still holds after {max} turns, which is the limit");
            return self.failed(instance, Fault::new("LOOP_LIMIT", message), 0);
        }
        if place.settings.needs_worker() {
            return self.ask(instance, Ask::Again);
        }
        let seen = last_turn(&self.run.state, instance);
        match self.value(&place.settings, &seen) {
            Ok(holds) => self.turn_or_leave(instance, iteration, &holds),
            Err(fault) => self.failed(instance, fault, 0),
        }
    }

    /// A worker said whether a loop makes another turn.
    pub(super) fn turn(&mut self, instance: &StepInstanceKey, holds: &Value) {
        let made = self.turns_made(instance);
        self.turn_or_leave(instance, made, holds);
    }

    /// How many turns are over.
    fn turns_made(&self, instance: &StepInstanceKey) -> u32 {
        let Some(looped) = self.run.state.loops.get(instance) else { return 0 };
        looped.iteration + u32::from(self.is_begun(instance, looped.iteration))
    }

    fn turn_or_leave(&mut self, instance: &StepInstanceKey, iteration: u32, holds: &Value) {
        match (holds, self.graph.find(&instance.step)) {
            (Value::Bool(true), Some(at)) => {
                self.open_level(instance.inside(iteration), Some(at));
            }
            (Value::Bool(false), _) => self.leave(instance, iteration),
            (other, _) => {
                let message = format!("`while` gives {other}, which is neither true nor false");
                self.failed(instance, Fault::new("EXPR_TYPE", message), 0);
            }
        }
    }

    fn leave(&mut self, instance: &StepInstanceKey, iterations: u32) {
        self.emit(LoopExited { instance: instance.clone(), iterations });
        self.settle(instance, Fate::Done(None));
    }

    /// A level may be over: a turn, or the run.
    pub(super) fn over(&mut self, path: &Path) {
        if !self.is_over(path) {
            return;
        }
        self.close_level(path);
        let Some((turn, outer)) = path.split_last() else {
            let result = self.result();
            let fits = value(&result).map_or(Ok(()), |result| recordable("the result", result));
            return match fits {
                Ok(()) => self.end_with(RunCompleted { result }),
                Err(fault) => self.fail_run(fault, None),
            };
        };
        self.again(&turn.of(outer), turn.iteration.saturating_add(1));
    }
}

/// A loop as the steps of its last turn see it.
pub(super) fn last_turn(state: &RunState, instance: &StepInstanceKey) -> StepInstanceKey {
    let iteration = state.loops.get(instance).map_or(0, |looped| looped.iteration);
    let loop_path = instance.inside(iteration);
    StepInstanceKey { loop_path, step: instance.step.clone(), visit: 0 }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
