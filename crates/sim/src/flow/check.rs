//! Holds what a run did against what the reference says.

use std::collections::BTreeMap;

use cairn_core::event::EventData;
use cairn_core::event::engine::{AfterFailure, InterruptDecision, Payload};
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::End;
use serde_json::{Value, json};

use super::Violation;
use super::reference::{Fate, Left, Order, Reference};
use super::world::{RUN, World};

/// Holds a run that is over against the reference.
pub(super) fn check(world: &World) -> Result<(), Violation> {
    let (found, order) = recorded(world);
    let left = left(world);
    let queued = world.folded.queued.as_ref();
    let trigger = queued.and_then(|queued| queued.trigger_id.as_ref());
    let given = (RUN, trigger, &world.input);
    let reference =
        Reference::new(&world.graph.plan, given, world.chance, &world.notes, (&order, &left));
    let wanted = reference.all();
    for (key, fate) in &found {
        let expected = wanted.get(key).unwrap_or(&Fate::Never);
        if expected != fate {
            return wrong(format!("{key} came to {fate:?}, and must come to {expected:?}"));
        }
    }
    match &world.folded.end {
        None => wrong("the run is not over".to_owned()),
        Some(End::Succeeded { result }) => succeeded(&found, &wanted, result, &reference),
        Some(End::Failed { error, instance }) => {
            failed(world, &wanted, &error.code, instance.as_ref())
        }
        Some(End::Cancelled {}) if world.folded.cancel_requested => Ok(()),
        Some(End::Cancelled {}) => wrong("the run is cancelled, and nobody asked".to_owned()),
    }
}

fn wrong(what: String) -> Result<(), Violation> {
    Err(Violation(what))
}

/// Everything that must happen in a run that ends well did.
fn succeeded(
    found: &BTreeMap<StepInstanceKey, Fate>,
    wanted: &BTreeMap<StepInstanceKey, Fate>,
    result: &Payload,
    reference: &Reference<'_>,
) -> Result<(), Violation> {
    for (key, fate) in wanted {
        match fate {
            Fate::Never => {}
            Fate::Done(..) | Fate::Skipped | Fate::Replaced if found.contains_key(key) => {}
            fate => {
                return wrong(format!("the run ended well, and {key} must come to {fate:?}"));
            }
        }
    }
    let given = match result {
        Payload::Inline(value) => Some(&value.0),
        Payload::Blob(_) => None,
    };
    match reference.result() {
        Some(wanted) if given == Some(&wanted) => Ok(()),
        wanted => wrong(format!("the result is {given:?}, and must be {wanted:?}")),
    }
}

/// A run fails because of a step that must, or because of its limits.
fn failed(
    world: &World,
    wanted: &BTreeMap<StepInstanceKey, Fate>,
    code: &str,
    instance: Option<&StepInstanceKey>,
) -> Result<(), Violation> {
    let Some(instance) = instance else {
        let limited = world.graph.plan.policy.duration_max_ms.is_some();
        return match limited && code == "RUN_TIMEOUT" {
            true => Ok(()),
            false => wrong(format!("the run failed with {code}, at no step")),
        };
    };
    if code == "MAX_STEPS" {
        let max = world.run.limits.steps_max;
        return match world.folded.reached >= max && !world.folded.steps.contains_key(instance) {
            true => Ok(()),
            false => wrong(format!(
                "MAX_STEPS at {instance} with {} of {max} steps begun",
                world.folded.reached
            )),
        };
    }
    match wanted.get(instance) {
        Some(Fate::Stopped(expected)) if expected == code => Ok(()),
        other => {
            wrong(format!("the run failed with {code} at {instance}, which comes to {other:?}"))
        }
    }
}

/// What came of each step as the log has it, and the order in which they were done.
fn recorded(world: &World) -> (BTreeMap<StepInstanceKey, Fate>, Order) {
    let mut found = BTreeMap::new();
    let mut order = Order::new();
    let value = |payload: &Payload| match payload {
        Payload::Inline(value) => value.0.clone(),
        Payload::Blob(_) => Value::Null,
    };
    for (place, event) in world.log.iter().enumerate() {
        match &event.data {
            EventData::StepCompleted(e) => {
                order.insert(e.instance.clone(), place);
                found.insert(e.instance.clone(), Fate::Done(value(&e.output), e.case.clone()));
            }
            EventData::StepSkipped(e) => drop(found.insert(e.instance.clone(), Fate::Skipped)),
            EventData::StepFailed(e) => {
                let fate = match e.then {
                    AfterFailure::Retry => continue,
                    AfterFailure::Skip => Fate::Skipped,
                    AfterFailure::Fallback => Fate::Replaced,
                    AfterFailure::Stop => Fate::Stopped(e.error.code.clone()),
                };
                found.insert(e.instance.clone(), fate);
            }
            EventData::StepResolved(e) if e.decision == InterruptDecision::Skip => {
                found.insert(e.instance.clone(), Fate::Skipped);
            }
            EventData::LoopExited(e) => {
                order.insert(e.instance.clone(), place);
                let output = world.loops.get(&e.instance).cloned().unwrap_or_default();
                found.insert(e.instance.clone(), Fate::Done(output, None));
            }
            _ => {}
        }
    }
    (found, order)
}

/// What steps that failed left to be read, as it is recorded.
fn left(world: &World) -> Left {
    let mut left = Left::new();
    for event in &world.log {
        match &event.data {
            EventData::StepFailed(e) => {
                let output = e.output.as_ref().filter(|_| e.then != AfterFailure::Retry);
                let output = output.and_then(|output| match output {
                    Payload::Inline(value) => Some(value.0.clone()),
                    Payload::Blob(_) => None,
                });
                let error = json!({"code": e.error.code, "message": e.error.message});
                let read = match output {
                    None => json!({"error": error}),
                    Some(Value::Object(mut members)) => {
                        members.entry("error").or_insert(error);
                        Value::Object(members)
                    }
                    Some(other) => other,
                };
                left.insert(e.instance.clone(), read);
            }
            EventData::StepCompleted(e) => drop(left.remove(&e.instance)),
            _ => {}
        }
    }
    left
}
