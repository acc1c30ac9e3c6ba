//! What the triggers say of `event.payload`.

use std::collections::BTreeSet;

use cairn_core::catalog::input;
use cairn_core::expression::Reference;
use cairn_core::plan::Trigger;
use cairn_core::text::Slug;
use serde_json::Value;

use super::Build;
use super::fault::Wrong;
use super::reference::Look;
use super::schema::{self, Output};
use crate::diagnostic::Code;
use crate::read::meant;

/// What runs begin with.
#[derive(Default)]
pub(super) struct Payloads {
    triggers: Vec<Payload>,
    /// The first steps of a run that no trigger starts.
    entry: Vec<usize>,
}

/// What one trigger brings.
#[derive(Default)]
struct Payload {
    /// The schema of it, if the trigger declares one or its type fixes it. A run that the trigger
    /// starts has nothing that is not in it.
    schema: Option<Value>,
    /// Whether no run begins without being held to it, whoever starts it.
    is_enforced: bool,
    /// The first steps of its runs.
    entry: Vec<usize>,
}

impl Build<'_> {
    /// What the triggers declare. Of those that are too wrong to be read, nothing is known.
    pub(super) fn payloads(
        &self,
        triggers: &[Trigger],
        entry: &[Slug],
        written: usize,
    ) -> Payloads {
        let place = |id: &Slug| self.places.get(id.as_str()).copied();
        let usual: Vec<usize> = entry.iter().filter_map(place).collect();
        let payload = |trigger: &Trigger| {
            let fields = trigger.config.0.get("input").and_then(Value::as_object);
            let entry = match &trigger.entry {
                Some(id) => place(id).into_iter().collect(),
                None => usual.clone(),
            };
            // What a trigger asks for is listed by field. Without any it takes everything.
            let declared = fields.filter(|fields| !fields.is_empty()).map(input::schema);
            let kind = self.catalog.trigger(trigger.r#type.as_str());
            let is_enforced = declared.is_some();
            let schema = declared.or_else(|| kind?.payload.clone());
            Payload { schema, is_enforced, entry }
        };
        let mut payloads: Vec<Payload> = triggers.iter().map(payload).collect();
        if triggers.len() < written {
            let entry = (0..self.drafts.len()).collect();
            payloads.push(Payload { schema: None, is_enforced: false, entry });
        }
        Payloads { triggers: payloads, entry: usual }
    }

    /// Says when no run that gets here can have this part of the payload.
    pub(super) fn payload_read(
        &self,
        look: &Look<'_>,
        members: &[(Option<String>, usize)],
    ) -> Result<(), Wrong> {
        let path: Vec<Option<&str>> =
            members.iter().skip(1).map(|(name, _)| name.as_deref()).collect();
        let Some(schemas) = self.leading_here(look) else { return Ok(()) };
        let (mut deepest, mut known) = (0, BTreeSet::new());
        for schema in schemas {
            match schema::follow(schema, &path) {
                Output::Known(_) | Output::Open => return Ok(()),
                Output::Missing { place, known: more } => {
                    deepest = deepest.max(place);
                    known.extend(more);
                }
            }
        }
        let Some((Some(name), at)) = members.get(deepest + 1) else { return Ok(()) };
        let known: Vec<&str> = known.into_iter().collect();
        let hint = meant(name, &known).or_else(|| schema::known_are(&known));
        let message = format!("no trigger that leads here gives a run `{name}`");
        Err((*at, Code::UnknownField, message, hint))
    }

    /// The name of the first part of a path into the payload that a run need not have.
    pub(super) fn payload_optional(
        &self,
        look: &Look<'_>,
        members: &[(Option<String>, usize)],
    ) -> Option<usize> {
        let path: Vec<Option<&str>> =
            members.iter().skip(1).map(|(name, _)| name.as_deref()).collect();
        let absent = |schema| match schema::follow(schema, &path) {
            Output::Missing { place, .. } => Some(place),
            Output::Known(_) | Output::Open => schema::optional(schema, &path),
        };
        let places = self.leading_here(look)?.into_iter().filter_map(absent);
        // The first part of a path is `payload` itself.
        places.min().map(|place| place + 1)
    }

    /// What is declared by each trigger whose runs get here; none if one of them, or a run
    /// that no trigger starts, may bring anything.
    fn leading_here<'b>(&'b self, look: &Look<'_>) -> Option<Vec<&'b Value>> {
        let here = self.around(look.here).last().unwrap_or(look.here);
        let leads =
            |entry: &[usize]| entry.iter().any(|e| *e == here || look.flow.precedes(*e, here));
        let Payloads { triggers, entry } = &self.payloads;
        if self.astray.get() {
            return None;
        }
        // Such a run is held to what is declared only when every trigger declares something.
        if leads(entry) && triggers.iter().any(|trigger| trigger.schema.is_none()) {
            return None;
        }
        let leading = triggers.iter().filter(|trigger| leads(&trigger.entry));
        let schemas: Option<Vec<&Value>> = leading.map(|trigger| trigger.schema.as_ref()).collect();
        schemas.filter(|schemas| !schemas.is_empty())
    }

    /// Whether every trigger declares a harmless form for this part of the event.
    pub(super) fn is_declared(&self, reference: &Reference) -> bool {
        let schemas = self.declared(reference);
        !schemas.is_empty() && schemas.into_iter().all(cairn_core::schema::is_harmless)
    }

    /// What each trigger declares for this part of the event; nothing when one of them does not.
    pub(super) fn declared<'p>(&'p self, reference: &Reference) -> Vec<&'p Value> {
        let mut members = reference.members.iter().map(|(name, _)| name.as_deref());
        if members.next() != Some(Some("payload")) {
            return Vec::new();
        }
        let path: Vec<Option<&str>> = members.collect();
        let declared = |payload: &'p Payload| {
            let Payload { schema: Some(schema), is_enforced: true, .. } = payload else {
                return None;
            };
            match schema::follow(schema, &path) {
                Output::Known(schema) => Some(schema),
                _ => None,
            }
        };
        let all: Option<Vec<&Value>> = self.payloads.triggers.iter().map(declared).collect();
        all.unwrap_or_default()
    }
}
