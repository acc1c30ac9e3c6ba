//! What the templates of a step can look at.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::graph::Graph;
use crate::event::engine::Payload;
use crate::expression::Scope;
use crate::instance::LoopTurn;
use crate::plan::Repeat;
use crate::projection::run::RunState;

/// What later steps read of one that failed: `steps.x.error.code` and `steps.x.error.message`.
pub const ERROR: &str = "error";

/// Gives the values of secrets.
pub trait Secrets {
    /// The value of a secret, or what stands for it.
    fn reveal(&self, name: &str) -> Option<String>;
}

/// What stands for a secret in everything that is recorded.
pub struct Hidden;

impl Secrets for Hidden {
    fn reveal(&self, name: &str) -> Option<String> {
        Some(format!("[secret:{name}]"))
    }
}

/// What the templates of a step can look at.
pub(super) struct Seen<'a> {
    pub(super) graph: &'a Graph,
    pub(super) state: &'a RunState,
    pub(super) path: &'a [LoopTurn],
    pub(super) attempt: u32,
    pub(super) secrets: &'a dyn Secrets,
}

impl Scope for Seen<'_> {
    fn root(&self, name: &str) -> Option<Cow<'_, Value>> {
        match name {
            "event" | "env" => self.given(name).map(Cow::Borrowed),
            "run" => {
                let names = ["attempt", "id", "started_at", "trigger_id", "workflow_id"];
                let member = |name: &str| Some((name.to_owned(), self.run(name)?));
                Some(Cow::Owned(names.into_iter().filter_map(member).collect()))
            }
            "steps" | "secret" => None,
            name => self.variable(name),
        }
    }

    fn member(&self, root: &str, name: &str) -> Option<Cow<'_, Value>> {
        match root {
            "steps" => self.outcome(name),
            "secret" => self.secrets.reveal(name).map(|value| Cow::Owned(Value::String(value))),
            "run" => self.run(name).map(Cow::Owned),
            "event" | "env" => self.given(root)?.get(name).map(Cow::Borrowed),
            root => match self.variable(root)? {
                Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
                Cow::Owned(value) => value.get(name).cloned().map(Cow::Owned),
            },
        }
    }
}

impl<'a> Seen<'a> {
    /// What the run was given.
    fn given(&self, name: &str) -> Option<&'a Value> {
        value(&self.state.queued.as_ref()?.input)?.get(name)
    }

    /// What came of a step, in the same turns as far as it stands in the same loops: of its last
    /// visit that is over. Of one that failed it is what came out, as far as that is an object or
    /// nothing, with `error` beside it.
    fn outcome(&self, id: &str) -> Option<Cow<'a, Value>> {
        let place = self.graph.named(id)?;
        let path = self.path.get(..self.graph.depth(place))?;
        let step = self.state.last_over(path, &self.graph.place(place)?.id)?;
        let output = step.output.as_ref().and_then(value);
        let Some(error) = step.error.as_ref().filter(|_| step.status.is_final()) else {
            return output.map(Cow::Borrowed);
        };
        let mut members = match output {
            Some(Value::Object(members)) => members.clone(),
            Some(other) => return Some(Cow::Borrowed(other)),
            None => Map::new(),
        };
        let told = json!({"code": error.code, "message": error.message});
        members.entry(ERROR).or_insert(told);
        Some(Cow::Owned(Value::Object(members)))
    }

    fn run(&self, name: &str) -> Option<Value> {
        Some(match name {
            "attempt" => json!(self.attempt),
            "id" => json!(self.state.run_id.to_string()),
            "started_at" => self.given("event")?.get("at")?.clone(),
            "trigger_id" => json!(self.state.queued.as_ref()?.trigger_id.as_ref()?.as_str()),
            "workflow_id" => json!(self.graph.plan.workflow_id),
            _ => return None,
        })
    }

    /// The item or the place of a turn, innermost first.
    fn variable(&self, name: &str) -> Option<Cow<'a, Value>> {
        for (depth, turn) in self.path.iter().enumerate().rev() {
            let place = self.graph.find(&turn.loop_id)?;
            let looped = self.graph.looped(place)?;
            let names = &looped.variables;
            if names.index.as_deref() == Some(name) {
                return Some(Cow::Owned(json!(turn.iteration)));
            }
            if names.iteration.as_deref() == Some(name) {
                return Some(Cow::Owned(json!(turn.iteration.saturating_add(1))));
            }
            if names.item.as_deref() == Some(name) {
                if !matches!(looped.repeat, Repeat::Each { .. }) {
                    return Some(Cow::Owned(json!(turn.iteration)));
                }
                let key = turn.of(self.path.get(..depth)?);
                let items = value(self.state.loops.get(&key)?.items.as_ref()?)?;
                let place = usize::try_from(turn.iteration).ok()?;
                return items.get(place).map(Cow::Borrowed);
            }
        }
        None
    }
}

/// The value of a payload. Those of a run that is under way are all inline.
pub(super) const fn value(payload: &Payload) -> Option<&Value> {
    match payload {
        Payload::Inline(value) => Some(&value.0),
        Payload::Blob(_) => None,
    }
}
