//! Keys of the context that a step sets: those that its author declares, and those that its text
//! asks for and something else of the plan reads.
//!
//! A key that nobody sets steers the run past a step without a word, so an agent is told of it,
//! shown where it goes, and told when it is missing.

use serde_json::Value;

use super::condition::lookup;
use super::render::paths;
use super::scene::Scene;
use crate::plan::{Action, ContextKey, Plan, Prompt, Step};
use crate::schema;

/// How many values that a key is compared with are named.
const COMPARED_MAX: usize = 6;

/// A key that a step sets.
#[derive(Clone, PartialEq, Debug)]
pub struct Key<'p> {
    /// Its name.
    pub name: &'p str,
    /// How the author declares it; none when only the text asks for it.
    pub declared: Option<&'p ContextKey>,
    /// What conditions compare it with.
    compared: Vec<&'p Value>,
}

impl Key<'_> {
    /// What it may be, in words.
    #[must_use]
    pub fn told(&self) -> String {
        if let Some(declared) = self.declared {
            return shape(&declared.schema.0);
        }
        let compared: Vec<String> =
            self.compared.iter().take(COMPARED_MAX).map(|value| plain(value)).collect();
        match compared.is_empty() {
            true => "as the step says".to_owned(),
            false => format!("as the step says; compared with {}", compared.join(", ")),
        }
    }

    /// Whether the run cannot go on without it.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.declared.is_some_and(|declared| declared.required)
    }

    /// What is wrong with its value in a scene; none when nothing is.
    #[must_use]
    pub fn fault(&self, scene: &Scene<'_>) -> Option<String> {
        let Some(found) = lookup(scene, self.name) else {
            return Some(format!("`{}` is not set", self.name));
        };
        if let Some(declared) = self.declared {
            let faults = schema::faults(&declared.schema.0, &found, &format!("`{}`", self.name));
            return (!faults.is_empty()).then(|| faults.join("; "));
        }
        let same_kind =
            |value: &&Value| std::mem::discriminant(*value) == std::mem::discriminant(&*found);
        let fits = self.compared.is_empty() || self.compared.iter().any(same_kind);
        (!fits).then(|| {
            let compared: Vec<String> = self.compared.iter().map(ToString::to_string).collect();
            format!("`{}` is {found}, and is compared with {}", self.name, compared.join(", "))
        })
    }
}

/// The keys that a step sets, the declared ones first.
#[must_use]
pub fn of<'p>(plan: &'p Plan, step: &'p Step) -> Vec<Key<'p>> {
    let Action::Prompt(prompt) = &step.action else { return Vec::new() };
    let mut compared: Vec<(&str, Option<&Value>)> = Vec::new();
    for condition in &plan.conditions {
        comparisons(&condition.config.0, &mut compared);
    }
    let values = |name: &str| {
        let mut values: Vec<&Value> = Vec::new();
        for value in compared.iter().filter(|(n, _)| *n == name).filter_map(|(_, v)| *v) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let declared = prompt.context_keys.iter().map(|key| Key {
        name: &key.name,
        declared: Some(key),
        compared: values(&key.name),
    });
    let mut keys: Vec<Key<'p>> = declared.collect();
    let read = compared.iter().map(|(name, _)| *name).chain(mentioned(plan, step));
    for name in read {
        if !keys.iter().any(|key| key.name == name) && is_asked_for(prompt, name) {
            keys.push(Key { name, declared: None, compared: values(name) });
        }
    }
    keys
}

/// The names that a condition looks at, each with what it is compared with.
fn comparisons<'p>(condition: &'p Value, found: &mut Vec<(&'p str, Option<&'p Value>)>) {
    let Value::Object(parts) = condition else { return };
    for (name, inner) in parts {
        match (name.as_str(), inner) {
            ("and" | "or", Value::Array(all)) => all.iter().for_each(|c| comparisons(c, found)),
            ("not", inner) => comparisons(inner, found),
            _ => {}
        }
    }
    let Some(path) = parts.get("var").and_then(Value::as_str) else { return };
    let name = path.split('.').next().unwrap_or(path);
    let mut values: Vec<Option<&Value>> = Vec::new();
    for (operator, wanted) in parts.iter().filter(|_| name == path) {
        match (operator.as_str(), wanted) {
            ("equals" | "not_equals" | "gt" | "gte" | "lt" | "lte", Value::Null) => {}
            ("equals" | "not_equals" | "gt" | "gte" | "lt" | "lte", wanted) => {
                values.push(Some(wanted));
            }
            ("in", Value::Array(all)) => values.extend(all.iter().map(Some)),
            _ => {}
        }
    }
    if values.is_empty() {
        values.push(None);
    }
    found.extend(values.into_iter().map(|value| (name, value)));
}

/// The names that the prompts of other steps take in.
fn mentioned<'p>(plan: &'p Plan, step: &Step) -> impl Iterator<Item = &'p str> {
    let others = plan.steps.iter().filter(|other| other.id != step.id);
    let texts = others.filter_map(|other| match &other.action {
        Action::Prompt(prompt) => Some(prompt),
        Action::Typed { .. } => None,
    });
    let texts = texts.flat_map(|prompt| {
        std::iter::once(prompt.text.as_str())
            .chain(prompt.fragments.iter().map(|fragment| fragment.text.as_str()))
    });
    texts.flat_map(paths).map(|path| path.split('.').next().unwrap_or(path))
}

/// Whether a line of the prompt speaks of the context and names a key of it.
fn is_asked_for(prompt: &Prompt, name: &str) -> bool {
    let quoted = format!("`{name}`");
    let fragments = prompt.fragments.iter().map(|fragment| fragment.text.as_str());
    let texts = std::iter::once(prompt.text.as_str()).chain(fragments);
    let mut lines = texts.flat_map(str::lines);
    lines.any(|line| line.contains(&quoted) && line.to_lowercase().contains("context"))
}

/// What a schema allows, in words.
fn shape(schema: &Value) -> String {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().map(plain).collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "text",
        Some("boolean") => "true | false",
        Some("array") => "list",
        Some("object") => "map",
        Some("integer") => "whole number",
        Some("number") => "number",
        _ => "any value",
    }
    .to_owned()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
