//! Runs that came from elsewhere: what they bring is history to be read.
//!
//! Whatever is still to be done is decided here, from the plan, the settings of this place and
//! fresh questions. What is over stays as it is told, as long as it is what the plan could have led
//! to: the compiler lets a number or a fixed word go where a text may not, so it has to be one.

use serde_json::Value;

use super::begin::case_of;
use super::command::Rejection;
use super::decide::{Run, evaluate};
use super::graph::{Does, Graph, Place};
use super::scope::{Hidden, Seen, value};
use crate::event::engine::Payload;
use crate::instance::StepInstanceKey;
use crate::plan::Repeat;
use crate::projection::run::{Loop, RunState, StepState, StepStatus};
use crate::schema;

/// How often a step can have been tried.
const ATTEMPTS_MAX: u32 = 1_000_000;
/// How many faults are told.
const FAULTS_MAX: usize = 20;

/// Whether a run that came from elsewhere can go on with its history, and with what it is given
/// here.
pub(super) fn check(
    graph: &Graph,
    state: &RunState,
    input: Option<&Payload>,
) -> Result<(), Rejection> {
    let Some(input) = input else {
        return Err(Rejection::OutOfPlace("come from elsewhere, and is given nothing here"));
    };
    let mut here = state.clone();
    if let Some(queued) = &mut here.queued {
        queued.input.clone_from(input);
    }
    let faults = unfit(graph, &here).map(|(_, fault)| fault).chain(unreached(graph, &here));
    let faults: Vec<String> = faults.take(FAULTS_MAX).collect();
    if faults.is_empty() { Ok(()) } else { Err(Rejection::Foreign(faults)) }
}

/// What a plan cannot have led to, in a state that has what it is given here.
pub(super) fn unfit<'s>(
    graph: &'s Graph,
    state: &'s RunState,
) -> impl Iterator<Item = (&'s StepInstanceKey, String)> {
    let tried = state.steps.iter().filter(|(_, step)| step.attempts > ATTEMPTS_MAX);
    let tried = tried.map(|(key, step)| {
        (key, format!("`{key}` says that it was tried {} times", step.attempts))
    });
    let outputs = state.steps.iter().filter_map(|(key, step)| {
        let output = step.output.as_ref().and_then(value)?;
        Some((key, unfit_output(graph, key, output).into_iter().next()?))
    });
    let loops = state.loops.iter();
    let loops = loops.filter_map(|(key, looped)| Some((key, turns(graph, state, key, looped)?)));
    let ways = state.steps.iter();
    let ways = ways.filter_map(|(key, step)| Some((key, way(graph, state, key, step)?)));
    tried.chain(outputs).chain(loops).chain(ways)
}

/// Steps that are under way although nothing that is recorded leads to them. Somebody could say
/// what became of them, and so have them tried before what stands before them.
fn unreached(graph: &Graph, state: &RunState) -> impl Iterator<Item = String> {
    let walked = Run::walked(graph, state.clone());
    let open = state.steps.iter().filter(|(_, step)| !step.status.is_final());
    let lost: Vec<_> = open.map(|(key, _)| key).filter(|key| !walked.contains(key)).collect();
    let told = lost
        .into_iter()
        .map(|key| format!("`{key}` was begun, and nothing that is recorded leads to it"));
    told.collect::<Vec<_>>().into_iter()
}

/// Why a branch cannot have led where it did: a question may stand on the other way.
fn way(graph: &Graph, state: &RunState, key: &StepInstanceKey, step: &StepState) -> Option<String> {
    let place = graph.place(graph.find(&key.step)?)?;
    // What a cycle has changed since is not known, and its questions are asked anyway.
    if place.does != Does::Branch || step.status != StepStatus::Succeeded || key.visit > 0 {
        return None;
    }
    match now(graph, state, key, place) {
        None if graph.asks_anybody() => {
            Some(format!("where `{key}` leads cannot be looked up here before it is resumed"))
        }
        Some(now) if Some(case_of(&now)) != step.case => {
            Some(format!("`{key}` led another way than the plan says"))
        }
        _ => None,
    }
}

/// Why something cannot be the output of a step.
pub(super) fn unfit_output(graph: &Graph, key: &StepInstanceKey, output: &Value) -> Vec<String> {
    let place = graph.find(&key.step).and_then(|at| graph.place(at));
    let faults = place.map(|place| schema::forms(&place.output, output, "its output"));
    faults.into_iter().flatten().map(|fault| format!("`{key}`: {fault}")).collect()
}

/// Why a loop cannot make the turns that are left: they follow from the plan, and not from what
/// was recorded elsewhere.
fn turns(graph: &Graph, here: &RunState, key: &StepInstanceKey, looped: &Loop) -> Option<String> {
    let at = graph.find(&key.step)?;
    let (place, plan) = (graph.place(at)?, graph.looped(at)?);
    if !matches!(plan.repeat, Repeat::Each { .. } | Repeat::Count { .. }) {
        return None;
    }
    let recorded = looped.items.as_ref().and_then(value);
    match now(graph, here, key, place) {
        None => Some(format!("what `{key}` goes over cannot be looked up here before it begins")),
        Some(now) if Some(&now) != recorded => {
            Some(format!("`{key}` goes over something else than the plan says"))
        }
        Some(_) => None,
    }
}

/// What a loop goes over as it would begin now, if that is known without a worker.
fn now(graph: &Graph, state: &RunState, key: &StepInstanceKey, place: &Place) -> Option<Value> {
    if place.settings.needs_worker() {
        return None;
    }
    let seen = Seen { graph, state, path: &key.loop_path, attempt: 0, secrets: &Hidden };
    evaluate(&place.settings, &seen).ok()
}
