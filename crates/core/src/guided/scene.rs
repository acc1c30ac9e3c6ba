//! What conditions and prompts see: the context, and the turns of the loops around.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::condition::lookup;
use crate::plan::{Loop, Plan, Repeat};
use crate::snapshot::LoopFrame;

/// The names that a loop's turns go by when its author gave none.
const ITERATION: &str = "currentIteration";
const ITEM: &str = "currentItem";
const INDEX: &str = "currentIndex";

/// A context with the names of some turns over it.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    context: &'a Map<String, Value>,
    turns: Map<String, Value>,
}

impl Scene<'_> {
    /// What goes by a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.turns.get(name).or_else(|| self.context.get(name))
    }
}

impl<'a> From<&'a Map<String, Value>> for Scene<'a> {
    fn from(context: &'a Map<String, Value>) -> Self {
        Self { context, turns: Map::new() }
    }
}

/// The context as the steps inside these loops see it, inner turns over outer ones.
#[must_use]
pub fn scene<'a>(
    plan: &Plan,
    context: &'a Map<String, Value>,
    loop_stack: &[LoopFrame],
) -> Scene<'a> {
    let mut seen = Scene::from(context);
    for frame in loop_stack {
        if let Some(found) = plan.find_loop(&frame.loop_id) {
            enter(&mut seen, found, frame.iteration);
        }
    }
    seen
}

/// Puts the names of one turn over what is known.
fn enter(seen: &mut Scene<'_>, found: &Loop, iteration: u32) {
    let names = &found.variables;
    let name = |given: &Option<String>, otherwise: &str| given.clone().unwrap_or(otherwise.into());
    if let Repeat::Each { items } = &found.repeat {
        let place = usize::try_from(iteration).unwrap_or(usize::MAX);
        let item = source(seen, &items.0).and_then(|list| list.get(place).cloned());
        seen.turns.insert(name(&names.item, ITEM), item.unwrap_or(Value::Null));
        seen.turns.insert(name(&names.index, INDEX), iteration.into());
    } else if let Some(index) = &names.index {
        seen.turns.insert(index.clone(), iteration.into());
    }
    seen.turns.insert(name(&names.iteration, ITERATION), (iteration + 1).into());
}

/// What a loop's source gives: itself, or what its path leads to.
#[must_use]
pub fn source<'s>(seen: &'s Scene<'_>, source: &'s Value) -> Option<Cow<'s, Value>> {
    match source.get("var").and_then(Value::as_str) {
        Some(path) => lookup(seen, path),
        None => Some(Cow::Borrowed(source)),
    }
}
