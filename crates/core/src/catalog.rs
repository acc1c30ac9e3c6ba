//! What a compiler knows of the types of steps and triggers that there are.
//!
//! A step type is described here and performed elsewhere. Whoever performs steps makes the
//! catalog, and hands it to the compiler, which knows no type by name.

mod trigger;

pub use trigger::{SECRET_NAME, SettingFault, TriggerType};

pub mod input;
pub mod interpreted;
pub mod schema;

use std::collections::BTreeMap;

use serde_json::Value;

/// The types of steps and triggers that a workflow may use, by name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Catalog {
    types: BTreeMap<String, StepType>,
    triggers: BTreeMap<String, TriggerType>,
}

/// A kind of step.
#[derive(Clone, Debug)]
pub struct StepType {
    /// What workflows call it.
    pub name: String,
    /// The JSON schema of its settings, an object that takes no other fields than it lists.
    /// It says what the step does, and has an example.
    pub input: Value,
    /// The JSON schema of its output.
    pub output: Value,
    /// What performing it needs.
    pub class: Class,
    /// Fields of its settings that do not take any template.
    pub sinks: Vec<Sink>,
    /// The outcomes that edges are picked by.
    pub cases: Cases,
    /// Says what is wrong with settings that fit the schema.
    pub check: fn(&StepSettings<'_>) -> Vec<SettingFault>,
}

/// The settings of a step as a plan has them, for its type to look at. Text with an expression in
/// it may become anything.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct StepSettings<'s> {
    /// The settings.
    pub config: &'s Value,
    /// The bytes of a file beside the workflow, by its path from there.
    pub file: &'s dyn Fn(&str) -> Option<&'s [u8]>,
}

/// Two descriptions are the same when they tell a reader the same.
impl PartialEq for StepType {
    fn eq(&self, other: &Self) -> bool {
        let told = |kind: &Self| (kind.name.clone(), kind.class, kind.cases.clone());
        told(self) == told(other)
            && self.input == other.input
            && self.output == other.output
            && self.sinks == other.sinks
    }
}

/// What performing a step needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Nothing: it is decided in memory, and again after a crash with the same result.
    Pure,
    /// A worker process, and no barrier: it is computed again after a crash.
    Evaluated,
    /// The world: what it is about to do is recorded first.
    Effectful,
}

/// The outcomes that edges are picked by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cases {
    /// There is one, which has no name.
    None,
    /// These.
    Of(Vec<String>),
    /// Those that the workflow names.
    Any,
    /// Those that the list in this setting names, or else those that the edges do. There is
    /// always a `default` beside them.
    Listed(&'static str),
}

/// A field of a step's settings, and what may flow into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sink {
    /// Its path: names with dots between, `*` for any one name, `**` at the end for whatever
    /// follows.
    pub path: String,
    /// What may flow into it.
    pub takes: Takes,
}

/// What may flow into a field. A field without a sink takes [`Takes::Values`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Templates without secrets.
    Values,
    /// Templates, secrets among them.
    Secrets,
    /// Templates, and secrets that are bound to hosts.
    BoundSecrets,
    /// One expression without secrets, which fills the field.
    Expression,
    /// A program and its arguments: data is no program, and no program text.
    Command,
    /// The arguments of a program that the step itself names: data is none of its options.
    Arguments,
    /// An address: data is not its host, and neither is a secret. Behind that, secrets that are
    /// bound to hosts may stand.
    Address,
    /// The path of a file beside the workflow.
    Asset,
    /// The path of a file beside the workflow whose text stands for another field.
    AssetFor(&'static str),
    /// Text of a program: no template at all.
    Literal,
    /// Who does something, and what they may do: templates without secrets, of what the workflow
    /// or its operator says. What somebody sent has to be validated.
    Own,
    /// What a model is told: templates without secrets, with what somebody sent marked as such.
    Prompt,
    /// A JSON schema, written out: no template at all.
    Schema,
    /// The names of steps.
    Steps,
}

impl Catalog {
    /// The catalog of these types. Of two with one name the later counts.
    #[must_use]
    pub fn new(types: impl IntoIterator<Item = StepType>) -> Self {
        let types = types.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
        Self { types, triggers: BTreeMap::new() }
    }

    /// The same catalog with these types of triggers.
    #[must_use]
    pub fn with_triggers(self, triggers: impl IntoIterator<Item = TriggerType>) -> Self {
        let triggers = triggers.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
        Self { triggers, ..self }
    }

    /// The step type with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&StepType> {
        self.types.get(name)
    }

    /// The step types, by name.
    pub fn types(&self) -> impl Iterator<Item = &StepType> {
        self.types.values()
    }

    /// The type of trigger with this name.
    #[must_use]
    pub fn trigger(&self, name: &str) -> Option<&TriggerType> {
        self.triggers.get(name)
    }

    /// The types of triggers, by name.
    pub fn triggers(&self) -> impl Iterator<Item = &TriggerType> {
        self.triggers.values()
    }
}

impl StepType {
    /// A step type whose outcome has no name, and whose settings take any value.
    #[must_use]
    pub fn new(name: &str, class: Class, input: Value, output: Value) -> Self {
        let (name, sinks, cases) = (name.to_owned(), Vec::new(), Cases::None);
        Self { name, input, output, class, sinks, cases, check: |_| Vec::new() }
    }

    /// The same, with what can be wrong with settings that fit the schema.
    #[must_use]
    pub fn checked(self, check: fn(&StepSettings<'_>) -> Vec<SettingFault>) -> Self {
        Self { check, ..self }
    }

    /// The same, with what may flow into some of its fields.
    #[must_use]
    pub fn taking(self, sinks: &[(&str, Takes)]) -> Self {
        let sink = |(path, takes): &(&str, Takes)| Sink { path: (*path).to_owned(), takes: *takes };
        Self { sinks: sinks.iter().map(sink).collect(), ..self }
    }

    /// What may flow into the field at a path. The first sink that fits counts.
    #[must_use]
    pub fn takes(&self, path: &[&str]) -> Takes {
        let found = self.sinks.iter().find(|sink| fits(&sink.path, path));
        found.map_or(Takes::Values, |sink| sink.takes)
    }

    /// What may flow into the members of the field at a path, if its own sinks say so and it
    /// has none itself.
    #[must_use]
    pub fn members_take(&self, path: &[&str]) -> Option<Takes> {
        if self.sinks.iter().any(|sink| fits(&sink.path, path)) {
            return None;
        }
        let below: Vec<&str> = path.iter().copied().chain(["*"]).collect();
        self.sinks.iter().find(|sink| fits(&sink.path, &below)).map(|sink| sink.takes)
    }
}

fn fits(pattern: &str, path: &[&str]) -> bool {
    let mut rest = path.iter();
    for part in pattern.split('.') {
        if part == "**" {
            return true;
        }
        if !rest.next().is_some_and(|name| part == "*" || part == *name) {
            return false;
        }
    }
    rest.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_fits_its_path_only() {
        assert!(fits("url", &["url"]));
        assert!(fits("headers.*", &["headers", "accept"]));
        assert!(fits("body.**", &["body", "items", "0"]) && fits("body.**", &["body"]));
        for (pattern, path) in
            [("url", &["url", "x"][..]), ("headers.*", &["headers"]), ("a.b", &["a"])]
        {
            assert!(!fits(pattern, path), "{pattern}");
        }
    }

    #[test]
    fn a_field_without_a_sink_takes_values() {
        let sinks = [("url", Takes::Address), ("headers.*", Takes::Secrets)];
        let http = StepType::new("http", Class::Effectful, Value::Null, Value::Null).taking(&sinks);
        assert_eq!(http.takes(&["headers", "authorization"]), Takes::Secrets);
        assert_eq!(http.takes(&["method"]), Takes::Values);
        assert_eq!(http.members_take(&["headers"]), Some(Takes::Secrets));
        assert_eq!(http.members_take(&["url"]), None);
        let catalog = Catalog::new([http]);
        assert!(catalog.get("http").is_some() && catalog.get("ftp").is_none());
        assert_eq!(catalog.types().count(), 1);
    }
}
