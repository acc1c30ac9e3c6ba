//! What conditions and prompts see: the context, and the turns of the loops around.

use serde_json::{Map, Value};

use super::condition::lookup;
use crate::plan::{Loop, Plan, Repeat};
use crate::snapshot::LoopFrame;

/// The names that a loop's turns go by when its author gave none.
const ITERATION: &str = "currentIteration";
const ITEM: &str = "currentItem";
const INDEX: &str = "currentIndex";

/// The context as the steps inside these loops see it, inner turns over outer ones.
#[must_use]
pub fn scene(
    plan: &Plan,
    context: &Map<String, Value>,
    loop_stack: &[LoopFrame],
) -> Map<String, Value> {
    let mut seen = context.clone();
    for frame in loop_stack {
        if let Some(found) = plan.loops.iter().find(|l| l.id == frame.loop_id) {
            enter(&mut seen, found, frame.iteration);
        }
    }
    seen
}

/// Puts the names of one turn over what is known.
fn enter(seen: &mut Map<String, Value>, found: &Loop, iteration: u32) {
    let names = &found.variables;
    let name = |given: &Option<String>, otherwise: &str| given.clone().unwrap_or(otherwise.into());
    if let Repeat::Each { items } = &found.repeat {
        let items = source(seen, &items.0);
        let place = usize::try_from(iteration).unwrap_or(usize::MAX);
        let item = items.as_ref().and_then(|list| list.get(place)).cloned();
        seen.insert(name(&names.item, ITEM), item.unwrap_or(Value::Null));
        seen.insert(name(&names.index, INDEX), iteration.into());
    } else if let Some(index) = &names.index {
        seen.insert(index.clone(), iteration.into());
    }
    seen.insert(name(&names.iteration, ITERATION), (iteration + 1).into());
}

/// What a loop's source gives: itself, or what its path leads to.
#[must_use]
pub fn source(seen: &Map<String, Value>, source: &Value) -> Option<Value> {
    match source.get("var").and_then(Value::as_str) {
        Some(path) => lookup(seen, path),
        None => Some(source.clone()),
    }
}
