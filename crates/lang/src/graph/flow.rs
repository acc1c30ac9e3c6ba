//! How runs can go: what is reached, what has run before, and what would run twice.
//!
//! The steps of one loop, and those outside of all, are looked at on their own; a loop is
//! one step of the level that it stands in.

use std::collections::BTreeSet;

use cairn_core::plan::Trigger;
use cairn_core::text::Slug;

use super::ways::Ways;
use super::{Build, Draft};
use crate::diagnostic::Code;
use crate::read::{Fields, quoted};

/// What can have run before each step.
pub(super) struct Flow {
    before: Vec<BTreeSet<usize>>,
    /// What has run before each step whichever way led to it.
    always: Vec<Option<BTreeSet<usize>>>,
}

impl Flow {
    /// Whether one step can have run before another of the same level.
    pub(super) fn precedes(&self, earlier: usize, later: usize) -> bool {
        self.before.get(later).is_some_and(|before| before.contains(&earlier))
    }
}

impl Build<'_> {
    /// The step that stands before one in the file, when it leads nowhere.
    fn forgot_next(&self, draft: &Draft<'_>) -> Option<String> {
        let place = self.places.get(draft.id.as_str())?;
        let before = place.checked_sub(1)?;
        let earlier = self.drafts.get(before).filter(|other| other.around == draft.around)?;
        let leads = self.links.iter().any(|link| link.from == before);
        (!leads && !earlier.is("end")).then(|| earlier.id.to_string())
    }

    /// The steps at which a run begins, unless its trigger names another.
    pub(super) fn entry(&self, graph: &Fields<'_>, triggers: &[Trigger]) -> Vec<Slug> {
        if let Some(spot) = graph.get("entry") {
            return self.target(&spot).into_iter().collect();
        }
        let ways = self.ways();
        let first = self.firsts(&ways, None);
        match first.as_slice() {
            [one] if ways.cycle(*one).is_none() => self.id(*one).cloned().into_iter().collect(),
            _ if !triggers.is_empty() && triggers.iter().all(|trigger| trigger.entry.is_some()) => {
                Vec::new()
            }
            [] => Vec::new(),
            [one] => {
                if !self.astray.get() {
                    let names = self.cycle_names(&ways, *one);
                    let message = format!("the run begins in the cycle of {names}");
                    let hint = "say `entry: <step>` in `graph`, or `entry_node` in each trigger";
                    graph.spot.error_hint(Code::MissingField, message, hint);
                }
                self.id(*one).cloned().into_iter().collect()
            }
            several => {
                let names: Vec<&str> =
                    several.iter().filter_map(|p| self.id(*p)).map(Slug::as_str).collect();
                if !self.astray.get() {
                    let message = format!("{} could all be the first step", quoted(&names));
                    let hint = "say `entry: <step>` in `graph`, or `entry_node` in each trigger";
                    graph.spot.error_hint(Code::MissingField, message, hint);
                }
                // What is reached from any of them has been told enough about.
                several.iter().filter_map(|place| self.id(*place)).cloned().collect()
            }
        }
    }

    /// The ways between all steps.
    pub(super) fn ways(&self) -> Ways<'_> {
        let around = |place: usize| self.drafts.get(place).and_then(|draft| draft.around);
        Ways::new(self.drafts.len(), &self.links, |link| around(link.from) == around(link.to))
    }

    /// The steps of a level that nothing leads to. Of a cycle that nothing leads into, it is the
    /// first step of the loop's body, or the first that is written.
    fn firsts(&self, ways: &Ways<'_>, level: Option<usize>) -> Vec<usize> {
        let fields = level.and_then(|looped| self.drafts.get(looped)?.fields.as_ref());
        let body = fields.and_then(|fields| fields.get("body")).filter(|body| body.is_list());
        let body: Vec<usize> = body
            .map(|body| body.items())
            .into_iter()
            .flatten()
            .filter_map(|item| self.places.get(item.node.as_text()?).copied())
            .collect();
        let units = self.level(level).into_iter().filter(|place| ways.unit(*place) == *place);
        let free = units.filter(|unit| ways.entering(*unit).is_empty());
        free.map(|unit| body.iter().copied().find(|at| ways.unit(*at) == unit).unwrap_or(unit))
            .collect()
    }

    fn level(&self, level: Option<usize>) -> Vec<usize> {
        let drafts = self.drafts.iter().enumerate();
        drafts.filter(|(_, draft)| draft.around == level).map(|(place, _)| place).collect()
    }

    /// Looks at how runs can go, and says what cannot be right.
    pub(super) fn flow(&self, entry: &[Slug], triggers: &[Trigger]) -> Flow {
        let named =
            entry.iter().chain(triggers.iter().filter_map(|trigger| trigger.entry.as_ref()));
        let entries: BTreeSet<usize> =
            named.filter_map(|id| self.places.get(id.as_str()).copied()).collect();
        let steps = self.drafts.len();
        let mut flow = Flow { before: vec![BTreeSet::new(); steps], always: vec![None; steps] };
        let ways = self.ways();
        let loops =
            (0..self.drafts.len()).filter(|p| self.drafts.get(*p).is_some_and(|d| d.is("loop")));
        for level in std::iter::once(None).chain(loops.map(Some)) {
            // A run begins at one entry, a turn at all of them.
            let (entries, together) = match level {
                None => (entries.clone(), false),
                Some(_) => (self.firsts(&ways, level).into_iter().collect(), true),
            };
            self.look(&ways, &self.level(level), (&entries, together), &mut flow);
        }
        flow
    }

    fn look(
        &self,
        ways: &Ways<'_>,
        level: &[usize],
        starts: (&BTreeSet<usize>, bool),
        flow: &mut Flow,
    ) {
        let (entries, _) = starts;
        let reached = ways.reached(entries);
        let order = ways.order(level);
        for place in level {
            let before = ways.earlier(*place);
            if let Some(found) = flow.before.get_mut(*place) {
                *found = before;
            }
        }
        self.never_firing(ways, level, &reached);
        order.iter().for_each(|unit| self.cycle(ways, *unit));
        if !entries.is_empty() && !self.astray.get() {
            for draft in
                level.iter().filter(|p| !reached.contains(p)).filter_map(|p| self.drafts.get(*p))
            {
                let message = format!("nothing leads to `{}`", draft.id);
                let usual =
                    "lead an edge to it, make it the `entry_node` of a trigger, or leave it out";
                let hint = match self.forgot_next(draft) {
                    Some(before) => {
                        format!("did you forget `next: {}` at `{before}`? Else {usual}", draft.id)
                    }
                    None => usual.to_owned(),
                };
                draft.spot.error_hint(Code::Unreachable, message, hint);
            }
        }
        for unit in &order {
            self.always_before(ways, &ways.members(*unit), entries, flow);
        }
        self.twice(ways, &ways.doubled(&order, starts));
    }

    /// Notes what has run before a step, or before each step of a cycle, whichever way led there.
    fn always_before(
        &self,
        ways: &Ways<'_>,
        members: &[usize],
        entries: &BTreeSet<usize>,
        flow: &mut Flow,
    ) {
        loop {
            let mut changed = false;
            for place in members {
                let always = Some(self.always(ways, *place, entries, flow));
                if let Some(known) = flow.always.get_mut(*place).filter(|known| **known != always) {
                    *known = always;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// What has run before a step whichever way led to it, when that is known of all steps
    /// before it.
    fn always(
        &self,
        ways: &Ways<'_>,
        place: usize,
        entries: &BTreeSet<usize>,
        flow: &Flow,
    ) -> BTreeSet<usize> {
        if entries.contains(&place) {
            return BTreeSet::new();
        }
        let with = |from: usize| {
            let mut steps = flow.always.get(from).cloned().flatten()?;
            steps.insert(from);
            Some(steps)
        };
        // Steps of the same cycle that were not looked at yet leave nothing out.
        let inputs: BTreeSet<usize> = ways.into(place).map(|link| link.from).collect();
        let common =
            inputs.iter().filter_map(|from| with(*from)).reduce(|one, other| &one & &other);
        let mut steps = common.unwrap_or_default();
        if self.drafts.get(place).is_some_and(|draft| draft.is("merge")) {
            // A merge waits for each input that cannot stay away.
            let certain = inputs.into_iter().filter(|input| comes(ways, *input, &steps));
            let certain: Vec<usize> = certain.collect();
            certain.into_iter().for_each(|input| steps.extend(with(input).unwrap_or_default()));
        }
        steps
    }

    /// Whether a step has run before another, whichever way led there.
    pub(super) fn always_has_run(&self, flow: &Flow, earlier: usize, later: usize) -> bool {
        let around = self.drafts.get(earlier).and_then(|draft| draft.around);
        let level =
            |place: &usize| self.drafts.get(*place).is_some_and(|draft| draft.around == around);
        let here = std::iter::once(later).chain(self.around(later)).find(level);
        self.astray.get()
            || here
                .and_then(|here| flow.always.get(here)?.as_ref())
                .is_none_or(|steps| steps.contains(&earlier))
    }

    /// A merge needs an input that is there before it.
    fn never_firing(&self, ways: &Ways<'_>, level: &[usize], reached: &BTreeSet<usize>) {
        for place in level {
            let is_merge = |draft: &&Draft<'_>| draft.is("merge") && ways.cycle(*place).is_none();
            let Some(draft) = self.drafts.get(*place).filter(is_merge) else { continue };
            let mut inputs = ways.into(*place).map(|link| link.from);
            if !self.astray.get() && !inputs.any(|input| reached.contains(&input)) {
                let message = format!("no input of `{}` can arrive", draft.id);
                draft.spot.error_hint(
                    Code::MergeNeverFires,
                    message,
                    "name steps in `inputs` that lead to it",
                );
            }
        }
    }

    /// Says which steps two paths of one run would reach, each on its own.
    fn twice(&self, ways: &Ways<'_>, doubled: &BTreeSet<usize>) {
        for place in doubled.iter().copied() {
            let Some(draft) = self.drafts.get(place) else { continue };
            let result = draft.fields.as_ref().and_then(|fields| fields.get("result"));
            let is_cycle = ways.cycle(place).is_some();
            if !is_cycle && (draft.is("merge") || (draft.is("end") && result.is_none())) {
                continue;
            }
            let from: BTreeSet<usize> =
                ways.entering(place).into_iter().map(|link| link.from).collect();
            let names: Vec<&str> =
                from.iter().filter_map(|p| self.id(*p)).map(Slug::as_str).collect();
            let what = match is_cycle {
                true => format!("the cycle of {}", self.cycle_names(ways, place)),
                false => format!("`{}`", draft.id),
            };
            let message = format!(
                "{what} would run more than once: {} lead to it in one run",
                quoted(&names)
            );
            let hint =
                format!("put a `merge` with `inputs: [{}]` in front of it", names.join(", "));
            draft.spot.error_hint(Code::RunsTwice, message, hint);
        }
    }

    /// Whether a step can have run before another, and if not, why.
    pub(super) fn has_run(&self, flow: &Flow, earlier: usize, later: usize) -> Result<(), String> {
        let name = |place: usize| self.id(place).map(ToString::to_string).unwrap_or_default();
        let comes_back = |place: usize| flow.precedes(place, place);
        if earlier == later && !comes_back(later) {
            return Err(format!("`{}` cannot read its own output", name(later)));
        }
        let around = self.drafts.get(earlier).and_then(|draft| draft.around);
        if earlier != later && self.is_inside(later, earlier) && !comes_back(earlier) {
            return Err(format!("the loop `{}` has no output before it ends", name(earlier)));
        }
        if let Some(outer) = around.filter(|outer| !self.is_inside(later, *outer)) {
            return Err(format!(
                "`{}` is inside the loop `{}`; read `steps.{}.results`",
                name(earlier),
                name(outer),
                name(outer)
            ));
        }
        // The step or loop around the later one that is of the earlier one's level.
        let level =
            |place: &usize| self.drafts.get(*place).is_some_and(|draft| draft.around == around);
        let here = std::iter::once(later).chain(self.around(later)).find(level);
        match self.astray.get() || here.is_some_and(|here| flow.precedes(earlier, here)) {
            true => Ok(()),
            false => Err(format!("`{}` cannot have run before `{}`", name(earlier), name(later))),
        }
    }
}

/// Whether a step runs whenever these have run: no case and no failure decides about it.
fn comes(ways: &Ways<'_>, place: usize, steps: &BTreeSet<usize>) -> bool {
    let mut open = vec![place];
    let mut seen = BTreeSet::new();
    while let Some(place) = open.pop() {
        if steps.contains(&place) {
            return true;
        }
        let plain = ways.into(place).filter(|link| link.case.is_none() && !link.fails);
        open.extend(plain.map(|link| link.from).filter(|from| seen.insert(*from)));
    }
    false
}
