//! What must hold of a plan as a whole: orders, names and references.

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Confirmation, FunctionScope, OnFailure, Plan, Prompt, Repeat, VERSION};
use crate::text::Slug;

/// Budgets of a plan.
pub mod limits {
    /// How deep loops may nest.
    pub const LOOP_DEPTH: usize = 16;
}

/// Which rule a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It says that it is of another version.
    #[error("schemaVersion is {0}, and only {VERSION} can be written")]
    Version(u64),
    /// A list is not in order, or something stands in it twice.
    #[error("`{list}` must be in order without repetition, and item {place} is not")]
    Unsorted {
        /// Which list.
        list: &'static str,
        /// Which item of it; counts from 0.
        place: usize,
    },
    /// Two steps or loops have one name.
    #[error("`{0}` is the name of two steps or loops")]
    DuplicateId(Slug),
    /// Something that is referred to is not there.
    #[error("{what} refers to `{name}`, which the plan does not have")]
    Unknown {
        /// Who refers to it.
        what: &'static str,
        /// What is not there.
        name: String,
    },
    /// A step or loop stands in two loops, or a loop in itself.
    #[error("`{0}` stands in more than one loop, or in itself")]
    LoopedTwice(Slug),
    /// A loop may make no turn.
    #[error("the loop `{0}` must be allowed at least one turn")]
    NoTurns(Slug),
    /// Loops nest too deep.
    #[error("loops nest deeper than {max} levels at `{0}`", max = limits::LOOP_DEPTH)]
    TooDeep(Slug),
    /// Something that must not be empty is.
    #[error("{0} must not be empty")]
    Empty(&'static str),
}

impl Plan {
    /// Whether the plan's lists are in order and its names and references meet.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.schema_version != VERSION {
            return Err(Invalid::Version(self.schema_version));
        }
        if self.workflow_id.is_empty() {
            return Err(Invalid::Empty("workflowId"));
        }
        if self.steps.is_empty() {
            return Err(Invalid::Empty("steps"));
        }
        self.orders()?;
        let names = self.names()?;
        self.references(&names)?;
        self.nesting()
    }

    fn orders(&self) -> Result<(), Invalid> {
        sorted("assets", self.assets.iter().map(|a| &a.path))?;
        sorted("capabilities", self.capabilities.iter().map(|c| c.capability))?;
        sorted("conditions", self.conditions.iter().map(|c| &c.id))?;
        sorted("contracts", self.contracts.iter().map(|c| &c.r#ref))?;
        sorted("dataTables", self.data_tables.iter().map(|t| &t.name))?;
        sorted("env", self.env.iter().map(|e| &e.name))?;
        sorted("features", self.features.iter().map(|f| &f.id))?;
        sorted("functions", self.functions.iter().map(|f| (&f.scope, &f.name)))?;
        sorted("loops", self.loops.iter().map(|l| &l.id))?;
        sorted("tags", self.tags.iter())?;
        sorted("triggers", self.triggers.iter().map(|t| &t.id))?;
        let guide = self.guide.iter();
        sorted("assessments", guide.flat_map(|g| &g.assessments).map(|a| &a.id))?;
        for step in &self.steps {
            sorted("errors", step.retry.iter().flat_map(|retry| &retry.errors))?;
            sorted("outputContracts", step.output_contracts.iter().map(|c| &c.r#ref))?;
            if let Action::Prompt(prompt) = &step.action {
                sorted("nonAssumableChoices", prompt.non_assumable_choices.iter())?;
            }
        }
        Ok(())
    }

    /// The names of steps and loops, which share one namespace: both stand in instance keys.
    fn names(&self) -> Result<BTreeSet<&Slug>, Invalid> {
        let mut names = BTreeSet::new();
        let ids = self.steps.iter().map(|step| &step.id);
        for id in ids.chain(self.loops.iter().map(|body| &body.id)) {
            if !names.insert(id) {
                return Err(Invalid::DuplicateId(id.clone()));
            }
        }
        Ok(names)
    }

    fn references(&self, names: &BTreeSet<&Slug>) -> Result<(), Invalid> {
        let conditions: BTreeSet<&Slug> = self.conditions.iter().map(|c| &c.id).collect();
        let contracts: BTreeSet<&String> = self.contracts.iter().map(|c| &c.r#ref).collect();
        known("entry", &self.entry, names)?;
        for edge in &self.edges {
            known("an edge", [&edge.from, &edge.to], names)?;
            known("an edge", &edge.condition, &conditions)?;
        }
        for trigger in &self.triggers {
            known("a trigger", &trigger.entry, names)?;
        }
        for step in &self.steps {
            known("a step", &step.condition, &conditions)?;
            known("a step", step.output_contracts.iter().map(|c| &c.r#ref), &contracts)?;
            known("a step", agreed(step.require_confirmation.as_ref()), &conditions)?;
            if let Action::Prompt(prompt) = &step.action {
                self.prompt(prompt, &conditions)?;
            }
            if let OnFailure::Fallback { step_id } = &step.on_failure {
                known("onFailure", [step_id], names)?;
            }
        }
        for looped in &self.loops {
            known("a loop", &looped.body, names)?;
            known("a loop", &looped.condition, &conditions)?;
            known("a loop", agreed(looped.require_confirmation.as_ref()), &conditions)?;
            match &looped.repeat {
                Repeat::Count { .. } | Repeat::Each { .. } => {}
                Repeat::While { condition_id } => known("a loop", [condition_id], &conditions)?,
                Repeat::UntilDecision { contract_ref, .. } => {
                    known("a loop", [contract_ref], &contracts)?;
                }
            }
        }
        for function in &self.functions {
            match &function.scope {
                FunctionScope::Step { step_id: id } | FunctionScope::Loop { loop_id: id } => {
                    known("a function", [id], names)?;
                }
                FunctionScope::Workflow {} => {}
            }
        }
        Ok(())
    }

    fn prompt(&self, prompt: &Prompt, conditions: &BTreeSet<&Slug>) -> Result<(), Invalid> {
        let fragments = prompt.fragments.iter().filter_map(|f| f.condition.as_ref());
        known("a fragment", fragments, conditions)?;
        let checked = prompt.check.iter().flat_map(|check| check.conditions());
        known("a check", checked, conditions)?;
        let there: BTreeSet<&String> =
            self.guide.iter().flat_map(|guide| &guide.assessments).map(|a| &a.id).collect();
        known("a step", &prompt.assessments, &there)?;
        known("a consequence", prompt.consequences.iter().flat_map(|c| &c.assessment), &there)
    }

    /// Whether loops form a forest: everything is in one loop at most, and in no circle.
    fn nesting(&self) -> Result<(), Invalid> {
        let mut around: BTreeMap<&Slug, &Slug> = BTreeMap::new();
        for looped in &self.loops {
            if looped.max_iterations == 0 {
                return Err(Invalid::NoTurns(looped.id.clone()));
            }
            for inner in &looped.body {
                if around.insert(inner, &looped.id).is_some() {
                    return Err(Invalid::LoopedTwice(inner.clone()));
                }
            }
        }
        for looped in &self.loops {
            let outer = |id: &&Slug| around.get(*id).copied();
            let path = std::iter::successors(Some(&looped.id), outer).take(limits::LOOP_DEPTH + 1);
            let mut depth = 0;
            for (place, id) in path.enumerate() {
                if place > 0 && *id == looped.id {
                    return Err(Invalid::LoopedTwice(id.clone()));
                }
                depth += 1;
            }
            if depth > limits::LOOP_DEPTH {
                return Err(Invalid::TooDeep(looped.id.clone()));
            }
        }
        Ok(())
    }
}

fn agreed(confirmation: Option<&Confirmation>) -> Option<&Slug> {
    confirmation.and_then(|confirmation| confirmation.condition.as_ref())
}

fn sorted<T: PartialOrd>(
    list: &'static str,
    names: impl Iterator<Item = T>,
) -> Result<(), Invalid> {
    let mut last = None;
    for (place, name) in names.enumerate() {
        if last.as_ref().is_some_and(|last| *last >= name) {
            return Err(Invalid::Unsorted { list, place });
        }
        last = Some(name);
    }
    Ok(())
}

fn known<'a, T: Ord + ToString + 'a>(
    what: &'static str,
    wanted: impl IntoIterator<Item = &'a T>,
    there: &BTreeSet<&'a T>,
) -> Result<(), Invalid> {
    match wanted.into_iter().find(|name| !there.contains(*name)) {
        None => Ok(()),
        Some(name) => Err(Invalid::Unknown { what, name: name.to_string() }),
    }
}
