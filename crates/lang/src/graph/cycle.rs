//! Cycles: that each can be left, and that one token goes round in it.

use cairn_core::plan::cycle::{self, OutcomeOf, TakenOn};
use cairn_core::text::Slug;

use super::edges::Link;
use super::ways::Ways;
use super::{Build, Draft};
use crate::diagnostic::Code;
use crate::read::quoted;

/// How often a step may be allowed to be visited.
const VISITS_MAX: u32 = 1_000_000;
/// What may hold what a cycle must not.
const WAY_OUT: &str = "put it into the body of a `loop`, or into a workflow of its own";

impl Build<'_> {
    /// The names of the steps of a cycle.
    pub(super) fn cycle_names(&self, ways: &Ways<'_>, place: usize) -> String {
        let members = ways.members(ways.unit(place));
        let names: Vec<&str> =
            members.iter().filter_map(|place| self.id(*place)).map(Slug::as_str).collect();
        quoted(&names)
    }

    /// Says what is wrong with a cycle, if the step is the first of one.
    pub(super) fn cycle(&self, ways: &Ways<'_>, unit: usize) {
        if ways.cycle(unit).is_none() {
            return self.visits_of_one(unit);
        }
        let members = ways.members(unit);
        let names = self.cycle_names(ways, unit);
        let mut is_sound = true;
        for (place, draft) in members.iter().filter_map(|at| Some((*at, self.drafts.get(*at)?))) {
            is_sound &= self.one_token(ways, place, draft, &names);
        }
        let leaves = |place: &usize| {
            let outs = taken_on(ways.out(*place));
            let stays = |to: usize| ways.unit(to) == unit;
            self.torn.contains(place)
                || cycle::leaves(&outs, stays, self.drafts.get(*place).is_some_and(may_be_skipped))
        };
        if is_sound && !self.astray.get() && !members.iter().any(leaves) {
            let Some(draft) = self.drafts.get(unit) else { return };
            let message = format!("the cycle of {names} has no way out");
            let hint = "lead a case of one of them to another step, or to `end`";
            draft.spot.error_hint(Code::Cycle, message, hint);
        }
    }

    /// Holds a step of a cycle to having one token; says whether it has.
    fn one_token(&self, ways: &Ways<'_>, place: usize, draft: &Draft<'_>, names: &str) -> bool {
        if draft.is("parallel") {
            let message = format!("`{}` would divide the cycle of {names}", draft.id);
            draft.spot.error_hint(Code::Cycle, message, WAY_OUT);
            return false;
        }
        if draft.is("merge") && ways.into(place).count() > 1 {
            let message = format!(
                "`{}` would wait for several inputs in the cycle of {names}, which has one at a time",
                draft.id
            );
            draft.spot.error_hint(Code::Cycle, message, WAY_OUT);
            return false;
        }
        let unit = ways.unit(place);
        let outs = taken_on(ways.out(place));
        let Some((outcome, to)) = cycle::divided(&outs, |to| ways.unit(to) == unit) else {
            return true;
        };
        let targets: Vec<&str> =
            to.iter().filter_map(|place| self.id(*place)).map(Slug::as_str).collect();
        let on = match outcome {
            OutcomeOf::Case(case) => format!("on `{case}` "),
            OutcomeOf::Other => String::new(),
            OutcomeOf::Failed => "on failure ".to_owned(),
        };
        let message = format!(
            "`{}` leads {on}to {} at once, and the cycle of {names} has one token",
            draft.id,
            quoted(&targets)
        );
        let link = ways.out(place).find(|link| to.contains(&link.to));
        let spot = link.map_or(&draft.spot, |link| &link.spot);
        let hint = "lead each outcome to one step of the cycle, or only out of it; a loop body or a workflow of its own may do several things at once";
        spot.error_hint(Code::Cycle, message, hint);
        false
    }

    /// A step that is in no cycle is visited once.
    fn visits_of_one(&self, place: usize) {
        let fields = self.drafts.get(place).and_then(|draft| draft.fields.as_ref());
        let Some(spot) = fields.and_then(|fields| fields.get("max_visits")) else { return };
        if self.astray.get() || !self.torn.is_empty() {
            return;
        }
        let message = "the step is in no cycle, so that `max_visits` limits nothing";
        spot.error_hint(Code::Conflict, message, "leave it out");
    }

    /// How often a step may be visited, when it says so.
    pub(super) fn visits_max(&self, draft: &Draft<'_>) -> Option<u32> {
        draft.fields.as_ref()?.get("max_visits")?.whole(1, VISITS_MAX)
    }
}

/// Whether a step can be over without an outcome of its own.
fn may_be_skipped(draft: &Draft<'_>) -> bool {
    let field = |name: &str| draft.fields.as_ref().and_then(|fields| fields.get(name));
    field("when").is_some()
        || field("on_failure").is_some_and(|spot| spot.node.as_text() == Some("skip"))
}

fn taken_on<'l>(links: impl Iterator<Item = &'l Link<'l>>) -> Vec<(usize, TakenOn<'l>)> {
    let on = |link: &'l Link<'l>| match (&link.case, link.fails) {
        (_, true) => TakenOn::Failure,
        (Some(case), false) => TakenOn::Case(case),
        (None, false) => TakenOn::Always,
    };
    links.map(|link| (link.to, on(link))).collect()
}
