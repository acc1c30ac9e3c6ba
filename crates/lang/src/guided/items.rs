//! Lists of steps: what stands in them, and in which order it is done.

use std::collections::BTreeMap;

use cairn_core::plan::Action;
use cairn_core::text::Slug;

use super::{Build, Scope};
use crate::diagnostic::Code;
use crate::ids;
use crate::read::{Fields, Spot};

/// A loop whose body is a step of the list that the loop stands in.
pub(super) struct ByName<'a> {
    pub(super) looped: Slug,
    pub(super) body: Spot<'a>,
    /// What holds for the steps of the loop.
    pub(super) inside: Scope,
}

impl<'a> Build<'a> {
    /// Compiles a list of steps, and says what is done in which order.
    pub(super) fn items(&mut self, list: &Spot<'a>, scope: &Scope) -> Vec<Slug> {
        let mut order: Vec<Slug> = Vec::new();
        let mut made: BTreeMap<String, Vec<Slug>> = BTreeMap::new();
        let mut by_name = Vec::new();
        for item in list.items() {
            let ids = self.item(&item, scope, &mut by_name);
            let id = item.node.get("id").or_else(|| item.node.get("loopId"));
            if let Some(name) = id.and_then(|id| id.as_text()) {
                made.entry(name.to_owned()).or_insert_with(|| ids.clone());
            }
            order.extend(ids);
        }
        for ByName { looped, body, inside } in by_name {
            self.borrow_body(&looped, &body, &made, &mut order);
            self.inherit(&looped, &inside);
        }
        order
    }

    fn item(&mut self, item: &Spot<'a>, scope: &Scope, by_name: &mut Vec<ByName<'a>>) -> Vec<Slug> {
        let kind = item.node.get("type").and_then(|kind| kind.as_text());
        match kind {
            Some("loop") => self.looped(item, scope, by_name).into_iter().collect(),
            Some("parallel") => self.parallel(item, scope),
            _ if item.node.get("templateCall").is_some() => self.template(item, scope),
            _ => self.step(item, scope),
        }
    }

    /// Gives a loop the step that its body names; the step is then done only there.
    fn borrow_body(
        &mut self,
        looped: &Slug,
        body: &Spot<'a>,
        made: &BTreeMap<String, Vec<Slug>>,
        order: &mut Vec<Slug>,
    ) {
        let Some(name) = body.text() else { return };
        let Some(ids) = made.get(name).filter(|ids| !ids.contains(looped)) else {
            let others = made.iter().filter(|(_, ids)| !ids.contains(looped));
            body.unknown("other step", name, others.map(|(name, _)| name.as_str()));
            return;
        };
        let before = order.len();
        order.retain(|id| !ids.contains(id));
        if before == order.len() && !ids.is_empty() {
            let message = format!("the step `{name}` is already the body of another loop");
            body.error_hint(Code::Conflict, message, "give each loop a step of its own");
            return;
        }
        if let Some(found) = self.loops.iter_mut().find(|known| known.id == *looped) {
            found.body.clone_from(ids);
        }
        self.check_decision(looped, body);
    }

    /// Hands down to the steps of a loop what they do not say themselves.
    fn inherit(&mut self, looped: &Slug, inside: &Scope) {
        let body = self.loops.iter().find(|known| known.id == *looped).map(|l| l.body.clone());
        let body = body.unwrap_or_default();
        for step in self.steps.iter_mut().filter(|step| body.contains(&step.id)) {
            let Action::Prompt(prompt) = &mut step.action else { continue };
            prompt.notes_optional |= inside.notes_optional;
            if step.require_confirmation.is_none() {
                step.require_confirmation.clone_from(&inside.confirmation);
            }
        }
    }

    /// The id of a step or loop, which nothing else has.
    pub(super) fn id(&mut self, fields: &Fields<'a>, scope: &Scope) -> Option<(String, Slug)> {
        let id = fields.get("id").or_else(|| fields.get("loopId"));
        let spot = id.or_else(|| fields.need("id"))?;
        let name = spot.filled()?;
        if !ids::is_step_id(name) {
            spot.error_hint(
                Code::InvalidId,
                format!("`{name}` cannot be the id of a step: use a-z, 0-9, `_` and `-`"),
                format!("such as `{}`", ids::suggest_step_id(name)),
            );
            return None;
        }
        let id = format!("{}{name}", scope.prefix);
        if let Some(line) = self.names.get(&id) {
            let message = format!("`{name}` is already the id of the step in line {line}");
            spot.error_hint(Code::DuplicateId, message, "give each step an id of its own");
            return None;
        }
        self.names.insert(id.clone(), spot.node.at.line);
        match id.parse() {
            Ok(slug) => Some((id, slug)),
            Err(_) => {
                spot.error(Code::TooLong, format!("the id `{id}` is too long"));
                None
            }
        }
    }
}
