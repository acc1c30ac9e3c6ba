//! Loops: which steps a turn consists of, and what keeps it going.

use cairn_core::canonical::StrictValue;
use cairn_core::plan::{Loop, LoopVariables, Repeat};
use cairn_core::text::Slug;
use serde_json::Value;

use super::Build;
use super::flow::Flow;
use crate::diagnostic::Code;
use crate::read::Fields;

/// How many turns a loop may make that does not say so.
const TURNS: u32 = 1_000;
/// How many turns a loop may be allowed.
const TURNS_MAX: u32 = 1_000_000;

impl Build<'_> {
    /// Notes which steps are in which loop.
    pub(super) fn bodies(&mut self) {
        for place in 0..self.drafts.len() {
            let Some(draft) = self.drafts.get(place).filter(|draft| draft.is("loop")) else {
                continue;
            };
            let body = draft.fields.as_ref().and_then(|fields| fields.get("body"));
            for item in
                body.filter(|body| body.is_list()).map(|body| body.items()).unwrap_or_default()
            {
                let Some(inner) =
                    self.target(&item).and_then(|id| self.places.get(id.as_str()).copied())
                else {
                    continue;
                };
                if self.is_inside(place, inner) {
                    item.error(Code::Conflict, "a loop cannot stand in itself");
                    continue;
                }
                let Some(draft) = self.drafts.get_mut(inner) else { continue };
                if draft.around.is_some_and(|around| around != place) {
                    item.error(Code::Conflict, format!("`{}` stands in two loops", draft.id));
                }
                draft.around = Some(place);
            }
        }
    }

    /// The loops around a step, innermost first.
    pub(super) fn around(&self, place: usize) -> impl Iterator<Item = usize> {
        let outer = |place: &usize| self.drafts.get(*place).and_then(|draft| draft.around);
        std::iter::successors(outer(&place), outer)
    }

    /// Whether a step is a loop, or in it.
    pub(super) fn is_inside(&self, place: usize, outer: usize) -> bool {
        place == outer || self.around(place).any(|around| around == outer)
    }

    /// The names that the steps of a loop see its turns by: the item, then its place.
    pub(super) fn variables(&self, place: usize) -> (String, String) {
        let fields = self.drafts.get(place).and_then(|draft| draft.fields.as_ref());
        let name = |field: &str, usual: &str| {
            let given = fields.and_then(|fields| fields.get(field)?.node.as_text());
            given.unwrap_or(usual).to_owned()
        };
        (name("as", "item"), name("index_as", "index"))
    }

    pub(super) fn looped(
        &mut self,
        place: usize,
        flow: &Flow,
        condition: Option<Slug>,
    ) -> Option<Loop> {
        self.settings(place);
        let draft = self.drafts.get(place)?;
        let (id, fields) = (draft.id.clone(), draft.fields.as_ref()?);
        for name in ["fallback", "on_failure", "on_interrupt", "retry", "timeout_sec"] {
            if let Some(spot) = fields.get(name) {
                let message = format!("a loop has no `{name}`");
                spot.error_hint(Code::Conflict, message, "give it to the steps of its body");
            }
        }
        let title = fields.text("title").unwrap_or_else(|| id.to_string());
        let turns =
            fields.get("max_iterations").map_or(Some(TURNS), |spot| spot.whole(1, TURNS_MAX));
        let body = fields.get("body").filter(|body| body.is_list())?;
        if body.items().is_empty() {
            body.error(Code::InvalidValue, "a turn has at least one step");
        }
        let body = body.items().iter().filter_map(|spot| spot.text()?.parse().ok()).collect();
        let repeat = self.repeat(place, flow)?;
        let (item, index) = self.variables(place);
        let variables = LoopVariables { index: Some(index), item: Some(item), iteration: None };
        Some(Loop {
            body,
            condition,
            id,
            max_iterations: turns?,
            repeat,
            require_confirmation: None,
            title,
            variables,
            visits_max: self.visits_max(self.drafts.get(place)?),
        })
    }

    fn repeat(&mut self, place: usize, flow: &Flow) -> Option<Repeat> {
        let draft = self.drafts.get(place)?;
        let fields: &Fields<'_> = draft.fields.as_ref()?;
        let id = draft.id.to_string();
        match (fields.get("items"), fields.get("count"), fields.get("while")) {
            (Some(items), None, None) => {
                let items =
                    self.value(place, flow, &items, &mut vec!["items"]).unwrap_or(Value::Null);
                Some(Repeat::Each { items: StrictValue::new(items) })
            }
            (None, Some(count), None) => {
                let count =
                    self.value(place, flow, &count, &mut vec!["count"]).unwrap_or(Value::Null);
                Some(Repeat::Count { count: StrictValue::new(count) })
            }
            (None, None, Some(spot)) => {
                let expression = self.expression_after(place, flow, &spot, true)?;
                let condition_id = self.condition(&format!("{id}.while"), expression)?;
                Some(Repeat::While { condition_id })
            }
            _ => {
                fields.spot.error_hint(
                    Code::InvalidValue,
                    "a loop has exactly one of `items`, `count` and `while`",
                    "`items: \"{{ steps.fetch.json }}\"` makes a turn for each item of a list",
                );
                None
            }
        }
    }
}
