//! Walks through cycles: one after the other, every visit in its turn.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::instance::StepInstanceKey;
use cairn_core::text::Slug;

use super::{Fate, Path, Reference, When};

/// A walk through a cycle.
#[derive(Clone, Default)]
pub(super) struct Walk {
    /// Whether it is not known if somebody comes in.
    pub(super) is_open: bool,
    pub(super) visits: Vec<(StepInstanceKey, Fate)>,
}

impl<'a> Reference<'a> {
    /// Looks from every step whether one comes back to it.
    pub(super) fn find_cycles(&self) -> BTreeMap<&'a Slug, BTreeSet<&'a Slug>> {
        let steps = self.plan.steps.iter().map(|step| &step.id);
        let all = steps.chain(self.plan.loops.iter().map(|looped| &looped.id));
        let earlier: BTreeMap<&'a Slug, BTreeSet<&'a Slug>> =
            all.map(|id| (id, self.earlier(id))).collect();
        let both = |id: &&'a Slug| {
            let known = earlier.get(id).into_iter().flatten().copied();
            known.filter(|other| earlier.get(other).is_some_and(|e| e.contains(id))).collect()
        };
        earlier.keys().map(|id| (*id, both(id))).collect()
    }

    /// Everything that leads to a step.
    pub(super) fn earlier(&self, id: &Slug) -> BTreeSet<&'a Slug> {
        let mut open: Vec<&Slug> = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            for (from, _) in self.into(id) {
                if seen.insert(from) {
                    open.push(from);
                }
            }
        }
        seen
    }

    /// The steps of the cycle that a step is in; none when it is in none.
    pub(super) fn cycle(&self, id: &Slug) -> Option<&BTreeSet<&'a Slug>> {
        self.cycles.get(id).filter(|cycle| !cycle.is_empty())
    }

    /// The edges that lead to a step, or into its cycle.
    pub(super) fn entries(&self, id: &Slug) -> Vec<(&'a Slug, &'a Slug, When<'a>)> {
        let cycle = self.cycle(id);
        let members: Vec<&Slug> = cycle.map_or_else(|| vec![id], |c| c.iter().copied().collect());
        let into = members.into_iter().flat_map(|to| {
            let to = self.named(to);
            self.into(to).into_iter().map(move |(from, when)| (from, to, when))
        });
        into.filter(|(from, _, _)| !cycle.is_some_and(|cycle| cycle.contains(from))).collect()
    }

    /// A step's name, as the plan has it.
    fn named(&self, id: &Slug) -> &'a Slug {
        let steps = self.plan.steps.iter().map(|step| &step.id);
        let mut all = steps.chain(self.plan.loops.iter().map(|looped| &looped.id));
        all.find(|known| *known == id).unwrap_or_else(|| panic!("the plan has no `{id}`"))
    }

    /// The walk through the cycle that a step is in, as far as it has come; none when it is in
    /// none.
    pub(super) fn walk(&self, path: &Path, id: &Slug) -> Option<Walk> {
        let first = *self.cycle(id)?.first()?;
        let place = (path.to_vec(), first);
        if let Some(known) = self.walks.borrow().get(&place) {
            return Some(known.clone());
        }
        self.walks.borrow_mut().insert(place.clone(), Walk::default());
        let note = |walk: &dyn Fn(&mut Walk)| {
            self.walks.borrow_mut().get_mut(&place).into_iter().for_each(walk);
        };
        let mut next = match self.comes_in(path, id) {
            Some(entry) => entry,
            None => {
                note(&|walk| walk.is_open = true);
                None
            }
        };
        let mut visits: BTreeMap<&Slug, u32> = BTreeMap::new();
        while let Some(id) = next {
            let visit = visits.entry(id).or_default();
            let key = StepInstanceKey { loop_path: path.to_vec(), step: id.clone(), visit: *visit };
            let fate = match *visit < self.visits_max(id) {
                true => self.done(&key),
                false => Fate::Stopped("MAX_VISITS".to_owned()),
            };
            *visit += 1;
            self.fates.borrow_mut().insert(key.clone(), fate.clone());
            note(&|walk| walk.visits.push((key.clone(), fate.clone())));
            next = self.stays(id, &fate);
        }
        self.walks.borrow().get(&place).cloned()
    }

    /// The step of a cycle that an outcome of another leads to.
    fn stays(&self, from: &Slug, fate: &Fate) -> Option<&'a Slug> {
        let cycle = self.cycle(from)?;
        let mut to = cycle.iter().copied().filter(|to| {
            let mut into = self.into(to).into_iter().filter(|(other, _)| *other == from);
            into.any(|(_, when)| self.leads_on(from, fate.clone(), &when) == Some(true))
        });
        to.next()
    }

    /// Where somebody comes into a cycle, if that happens; without a value it is not settled.
    fn comes_in(&self, path: &Path, id: &Slug) -> Option<Option<&'a Slug>> {
        let into = self.entries(id);
        let members = self.cycle(id)?;
        let entry = match path.last() {
            None => members.iter().copied().find(|id| self.is_entry(path, id)),
            Some(turn) if into.is_empty() => {
                let looped = self.plan.loops.iter().find(|looped| looped.id == turn.loop_id)?;
                looped.body.iter().find(|id| members.contains(id))
            }
            Some(_) => None,
        };
        if entry.is_some() {
            return Some(entry);
        }
        let taken = |(from, to, when): &(&Slug, &'a Slug, When<'_>)| {
            Some((self.is_taken(path, from, when)?, *to))
        };
        let settled: Vec<Option<(bool, &'a Slug)>> = into.iter().map(taken).collect();
        let entered = settled.iter().flatten().find(|(taken, _)| *taken).map(|(_, to)| *to);
        if entered.is_none() && settled.contains(&None) { None } else { Some(entered) }
    }

    /// How often a step may be visited.
    fn visits_max(&self, id: &Slug) -> u32 {
        let step = self.plan.steps.iter().find(|step| step.id == *id);
        let looped = self.plan.loops.iter().find(|looped| looped.id == *id);
        let given = step.and_then(|step| step.visits_max);
        given.or_else(|| looped.and_then(|looped| looped.visits_max)).unwrap_or(1_000)
    }
}
