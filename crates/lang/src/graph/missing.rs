//! What may not be there when it is read: steps that were not done, fields that need not be given.

use cairn_core::expression::{self, Reference};
use cairn_core::flow::ERROR;

use super::fault::Wrong;
use super::reference::{Look, Written};
use super::{Build, schema};
use crate::diagnostic::Code;
use crate::read::meant;

/// What is told of a step that failed.
const TOLD: [&str; 2] = ["code", "message"];
const HINT: &str = "put `| default(…)` behind it, or look with `is defined` whether it is there";

impl Build<'_> {
    /// Warns of what is read and may be missing, unless it is looked at under the condition that
    /// it is there.
    pub(super) fn missing(
        &self,
        look: &Look<'_>,
        written: &Written<'_, '_>,
        reference: &Reference,
    ) {
        match reference.root.as_str() {
            "steps" => self.step_missing(look, written, reference),
            "event" if is_payload(reference) => {
                let place = self.payload_optional(look, &reference.members);
                let Some((Some(name), at)) = place.and_then(|place| reference.members.get(place))
                else {
                    return;
                };
                if !is_guarded(look, reference, place.unwrap_or_default()) {
                    let message = format!("a run may begin without `{name}`");
                    let hint = format!(
                        "{HINT}; or say `required: true` or `default` in the trigger's `input`"
                    );
                    let at = self.position(written, *at);
                    written.spot.warn_at(at, Code::MayBeMissing, message, &hint);
                }
            }
            _ => {}
        }
    }

    /// Warns of a step that has not run on each way that leads here, may have been skipped, or
    /// need not have what is read of it.
    fn step_missing(&self, look: &Look<'_>, written: &Written<'_, '_>, reference: &Reference) {
        let Some((Some(name), at)) = reference.members.first() else { return };
        let Some(place) = self.places.get(name).copied() else { return };
        if is_guarded(look, reference, 0) {
            return;
        }
        let warn = |code, message: String| {
            written.spot.warn_at(self.position(written, *at), code, message, HINT);
        };
        if self.is_of_turn(look, place) {
            let message = format!("`{name}` has not run before the first turn");
            return warn(Code::StepNotAlways, message);
        }
        let here = self.id(look.here).map(ToString::to_string).unwrap_or_default();
        if !self.always_has_run(look.flow, place, look.here) {
            let message = format!("`{name}` has run on some of the ways to `{here}` only");
            return warn(Code::StepNotAlways, message);
        }
        if self.may_be_skipped(look, place) {
            let message =
                format!("`{name}` is skipped when its `when` is false, and `{here}` runs");
            return warn(Code::MayBeMissing, message);
        }
        if self.may_have_failed(look, place)
            && let Some((Some(field), at)) = reference.members.get(1)
            && field != ERROR
            && !is_guarded(look, reference, 1)
        {
            let message = format!(
                "`{here}` runs after a failure of `{name}`, too, which may leave no `{field}`"
            );
            let at = self.position(written, *at);
            return written.spot.warn_at(at, Code::MayBeMissing, message, HINT);
        }
        self.field_missing(look, written, reference, place);
    }

    /// Warns of a field that a form or a contract does not ask for, and of the error of a step
    /// that need not have failed.
    fn field_missing(
        &self,
        look: &Look<'_>,
        written: &Written<'_, '_>,
        reference: &Reference,
        place: usize,
    ) {
        let Some(draft) = self.drafts.get(place) else { return };
        let (Some(kind), Some(fields)) = (draft.kind, &draft.fields) else { return };
        let path: Vec<Option<&str>> =
            reference.members.iter().skip(1).map(|(name, _)| name.as_deref()).collect();
        let output = self.output(place, kind);
        let is_error = path.first() == Some(&Some(ERROR))
            && matches!(schema::follow(&output, &path), schema::Output::Missing { place: 0, .. });
        let found = match is_error {
            true => (!self.has_failed(look, place)).then_some(0),
            // What an author asks for is known; what a step type gives is for its page to say.
            false if fields.get("output_contract").is_some() => schema::optional(&output, &path),
            false if fields.get("form").is_some() && path.first() == Some(&Some("answer")) => {
                let inner = output.pointer("/properties/answer");
                let rest = path.get(1..).unwrap_or_default();
                inner.and_then(|inner| schema::optional(inner, rest)).map(|at| at + 1)
            }
            false => None,
        };
        let Some(found) = found.map(|found| found + 1) else { return };
        let Some((Some(name), at)) = reference.members.get(found) else { return };
        if is_guarded(look, reference, found) {
            return;
        }
        let message = match is_error {
            true => format!("`{}` has no `{name}` unless it failed", draft.id),
            false => format!("`{}` may give no `{name}`: it is not `required`", draft.id),
        };
        let at = self.position(written, *at);
        written.spot.warn_at(at, Code::MayBeMissing, message, HINT);
    }

    /// Says what is wrong with a look at the error of a step.
    pub(super) fn error_read(
        &self,
        place: usize,
        members: &[(Option<String>, usize)],
    ) -> Result<(), Wrong> {
        let at = members.get(1).map(|(_, at)| *at).unwrap_or_default();
        let name = self.id(place).map(ToString::to_string).unwrap_or_default();
        let then = self.drafts.get(place).and_then(|draft| draft.fields.as_ref());
        let then = then.and_then(|fields| fields.get("on_failure"));
        if !then.is_some_and(|spot| matches!(spot.node.as_text(), Some("fallback" | "skip"))) {
            let message = format!("a run goes no further when `{name}` fails");
            let hint = "say `on_failure: skip` or `on_failure: fallback` at that step".to_owned();
            return Err((at, Code::UnknownField, message, Some(hint)));
        }
        match members.get(2) {
            Some((Some(field), at)) if !TOLD.contains(&field.as_str()) => {
                let hint = meant(field, &TOLD).or_else(|| schema::known_are(&TOLD));
                Err((*at, Code::UnknownField, format!("an error has no `{field}`"), hint))
            }
            _ => Ok(()),
        }
    }

    /// Whether this step is done although one that comes before it may have failed: the run passes
    /// over the failure, or goes on with what stands in.
    fn may_have_failed(&self, look: &Look<'_>, place: usize) -> bool {
        let fields = self.drafts.get(place).and_then(|draft| draft.fields.as_ref());
        let then = fields.and_then(|fields| fields.get("on_failure"));
        match then.as_ref().and_then(|spot| spot.node.as_text()) {
            Some("skip") => self.leads_on_without_case(look, place),
            Some("fallback") => {
                let mut instead = self.links.iter().filter(|link| link.from == place && link.fails);
                instead.any(|link| link.to == look.here || look.flow.precedes(link.to, look.here))
            }
            _ => false,
        }
    }

    /// Whether a step that always comes before this one may have been skipped, while this one is
    /// done.
    fn may_be_skipped(&self, look: &Look<'_>, place: usize) -> bool {
        let when = |place: usize| {
            let fields = self.drafts.get(place)?.fields.as_ref()?;
            fields.get("when")?.node.as_text().map(str::to_owned)
        };
        let Some(condition) = when(place) else { return false };
        // Under the same condition both are skipped.
        let mut here = std::iter::once(look.here).chain(self.around(look.here));
        if here.any(|here| when(here).as_ref() == Some(&condition)) {
            return false;
        }
        self.leads_on_without_case(look, place)
    }

    /// Whether this step follows one that was passed over: such a one has no case, so only the
    /// edges of any outcome lead on.
    fn leads_on_without_case(&self, look: &Look<'_>, place: usize) -> bool {
        let leads_on = |link: &&super::Link<'_>| {
            link.from == place
                && !link.fails
                && link.case.as_deref().is_none_or(|case| case == "default")
        };
        let level = self.drafts.get(place).and_then(|draft| draft.around);
        let of_level = |at: &usize| self.drafts.get(*at).is_some_and(|draft| draft.around == level);
        let here = std::iter::once(look.here).chain(self.around(look.here)).find(of_level);
        let Some(here) = here else { return true };
        let mut leading = self.links.iter().filter(leads_on);
        leading.any(|link| link.to == here || look.flow.precedes(link.to, here))
    }

    /// What the condition of a step looks at under the condition that it is there: the step is not
    /// done without.
    pub(super) fn guarded_by_when(&self, here: usize) -> Vec<Reference> {
        let fields = self.drafts.get(here).and_then(|draft| draft.fields.as_ref());
        let when = fields.and_then(|fields| fields.get("when"));
        let text = when.as_ref().and_then(|spot| spot.node.as_text());
        let read = |text| expression::expression(text, &|name| self.places.contains_key(name));
        text.and_then(|text| read(text).ok()).map(|when| when.guarded()).unwrap_or_default()
    }

    /// Whether a step has failed whenever this one is done: this one is its fallback, or comes
    /// behind that.
    fn has_failed(&self, look: &Look<'_>, place: usize) -> bool {
        let mut instead = self.links.iter().filter(|link| link.from == place && link.fails);
        instead
            .any(|link| link.to == look.here || self.always_has_run(look.flow, link.to, look.here))
    }
}

/// Whether a reference looks into what the run was given.
fn is_payload(reference: &Reference) -> bool {
    matches!(reference.members.first(), Some((Some(name), _)) if name == "payload")
}

/// Whether what stands at a place of a path, or something before it, is looked at under the
/// condition that it is there.
fn is_guarded(look: &Look<'_>, reference: &Reference, place: usize) -> bool {
    let names = |reference: &Reference| -> Vec<Option<String>> {
        reference.members.iter().map(|(name, _)| name.clone()).collect()
    };
    let (path, count) = (names(reference), place + 1);
    look.guarded.iter().any(|guarded| {
        let guarded_path = names(guarded);
        guarded.root == reference.root
            && guarded_path.len() >= count
            && path.get(..count) == guarded_path.get(..count)
    })
}
