//! What later steps read of a step that is handed out, as the plan says.
//!
//! A template that reads what nobody sent fails the run, long after the agent could have sent it.
//! So what is read and not looked at under the condition that it is there, the step asks for.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::expression::{self, Expr, Reference};
use cairn_core::flow::ERROR;
use cairn_core::plan::{Action, Plan, Repeat};
use cairn_core::text::Slug;
use serde_json::Value;

/// The fields of a step's output that templates name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Reads {
    /// Those that must be there, each with the steps that read it.
    needed: BTreeMap<String, BTreeSet<String>>,
    /// All of them.
    named: BTreeSet<String>,
    /// Whether the output is read as a whole.
    is_whole: bool,
}

impl Reads {
    /// What the plan reads of a step.
    pub(super) fn of(plan: &Plan, step: &Slug) -> Self {
        let mut reads = Self::default();
        for reader in &plan.steps {
            let mut all = Vec::new();
            if let Action::Typed { config, r#type } = &reader.action {
                let whole = config.0.get("expr").filter(|_| r#type.as_str() == "branch");
                all.extend(whole.and_then(Value::as_str).and_then(one));
                templates(&config.0, &mut all);
            }
            all.extend(condition(plan, reader.condition.as_ref()));
            reads.take(&all, step, reader.id.as_str());
        }
        for reader in &plan.loops {
            let mut all = Vec::new();
            match &reader.repeat {
                Repeat::Count { count } => templates(&count.0, &mut all),
                Repeat::Each { items } => templates(&items.0, &mut all),
                Repeat::While { condition_id } => all.extend(condition(plan, Some(condition_id))),
                Repeat::UntilDecision { .. } => {}
            }
            all.extend(condition(plan, reader.condition.as_ref()));
            reads.take(&all, step, reader.id.as_str());
        }
        reads
    }

    /// The fields that must be there.
    pub(super) fn needed(&self) -> impl Iterator<Item = &str> {
        self.needed.keys().map(String::as_str)
    }

    /// Whether a field must be there.
    pub(super) fn needs(&self, field: &str) -> bool {
        self.needed.contains_key(field)
    }

    /// The steps that need a field, for people.
    pub(super) fn readers(&self, field: &str) -> String {
        let readers = self.needed.get(field).into_iter().flatten();
        readers.map(|step| format!("`{step}`")).collect::<Vec<_>>().join(", ")
    }

    /// Whether a field is read by its name, or may be, as a part of the whole.
    pub(super) fn may_read(&self, field: &str) -> bool {
        self.is_whole || self.named.contains(field)
    }

    /// Whether any field is read by its name.
    pub(super) fn names_any(&self) -> bool {
        !self.named.is_empty()
    }

    /// What is read by its name, for people.
    pub(super) fn told(&self, step: &Slug) -> String {
        let paths = self.named.iter().map(|field| format!("`steps.{step}.{field}`"));
        paths.collect::<Vec<_>>().join(", ")
    }

    /// Takes in what the expressions of one reader look at. What one of them looks at under the
    /// condition that it is there, such as its `when`, guards the others.
    fn take(&mut self, all: &[Expr], step: &Slug, reader: &str) {
        let guarded: Vec<Reference> = all.iter().flat_map(Expr::guarded).collect();
        let is_guarded =
            |field: &str| guarded.iter().any(|known| field_of(known, step) == Some(Some(field)));
        for reference in all.iter().flat_map(Expr::references) {
            match field_of(&reference, step) {
                None | Some(Some(ERROR)) => {}
                Some(None) => self.is_whole = true,
                Some(Some(field)) => {
                    self.named.insert(field.to_owned());
                    if !is_guarded(field) {
                        let readers = self.needed.entry(field.to_owned()).or_default();
                        readers.insert(reader.to_owned());
                    }
                }
            }
        }
    }
}

/// The expressions of the templates in a step's settings.
fn templates(settings: &Value, all: &mut Vec<Expr>) {
    match settings {
        // The compiler has read them, so one that cannot be read here reads nothing.
        Value::String(text) if text.contains("{{") || text.contains("{%") => {
            let found = expression::template(text, &|_| false).ok();
            all.extend(found.iter().flat_map(|found| found.values().cloned()));
        }
        Value::Array(items) => items.iter().for_each(|item| templates(item, all)),
        Value::Object(members) => members.values().for_each(|member| templates(member, all)),
        _ => {}
    }
}

fn condition(plan: &Plan, id: Option<&Slug>) -> Option<Expr> {
    let found = plan.conditions.iter().find(|known| Some(&known.id) == id)?;
    one(found.config.0.get("expression")?.as_str()?)
}

fn one(text: &str) -> Option<Expr> {
    expression::expression(text, &|_| false).ok()
}

/// The field of a step that a path leads to: none when it leads elsewhere, and no name when it
/// takes the whole output.
fn field_of<'r>(reference: &'r Reference, step: &Slug) -> Option<Option<&'r str>> {
    if reference.root != "steps" {
        return None;
    }
    let mut members = reference.members.iter().map(|(name, _)| name.as_deref());
    match members.next() {
        Some(Some(name)) if name == step.as_str() => Some(members.next().flatten()),
        // All of them, or one that is computed.
        None | Some(None) => Some(None),
        Some(Some(_)) => None,
    }
}
