//! The ways that lead through the steps of a workflow.

use std::collections::BTreeSet;

use cairn_core::plan::cycle;

use super::edges::Link;

/// The edges of each step, so that looking does not take the square of them.
pub(super) struct Ways<'l> {
    out: Vec<Vec<&'l Link<'l>>>,
    into: Vec<Vec<&'l Link<'l>>>,
    /// The first step of the cycle that each step is in.
    cycles: Vec<Option<usize>>,
}

impl<'l> Ways<'l> {
    /// The ways of so many steps. Cycles are made of edges that stay in the level of a step.
    pub(super) fn new(
        steps: usize,
        links: &'l [Link<'l>],
        is_level: impl Fn(&Link<'_>) -> bool,
    ) -> Self {
        let (out, into) = (vec![Vec::new(); steps], vec![Vec::new(); steps]);
        let edges: Vec<(usize, usize)> =
            links.iter().filter(|link| is_level(link)).map(|link| (link.from, link.to)).collect();
        let mut ways = Self { out, into, cycles: cycle::cycles(steps, &edges) };
        for link in links {
            ways.out.get_mut(link.from).into_iter().for_each(|out| out.push(link));
            ways.into.get_mut(link.to).into_iter().for_each(|into| into.push(link));
        }
        ways
    }

    /// The edges of a step.
    pub(super) fn out(&self, place: usize) -> impl Iterator<Item = &'l Link<'l>> {
        self.out.get(place).into_iter().flatten().copied()
    }

    /// The step that stands for another: itself, or the first of its cycle.
    pub(super) fn unit(&self, place: usize) -> usize {
        self.cycle(place).unwrap_or(place)
    }

    /// The first step of the cycle that a step is in.
    pub(super) fn cycle(&self, place: usize) -> Option<usize> {
        self.cycles.get(place).copied().flatten()
    }

    /// The steps that one stands for.
    pub(super) fn members(&self, unit: usize) -> Vec<usize> {
        match self.cycle(unit) {
            None => vec![unit],
            first => {
                let places = self.cycles.iter().enumerate();
                places.filter(|(_, other)| **other == first).map(|(place, _)| place).collect()
            }
        }
    }

    /// The edges that lead to a step from others, or into a cycle.
    pub(super) fn entering(&self, unit: usize) -> Vec<&'l Link<'l>> {
        let into = self.members(unit).into_iter().flat_map(|place| self.into(place));
        into.filter(|link| self.unit(link.from) != unit).collect()
    }

    /// The edges that lead on from a step, or out of a cycle.
    fn leaving(&self, unit: usize) -> Vec<&'l Link<'l>> {
        let out = self.members(unit).into_iter().flat_map(|place| self.out(place));
        out.filter(|link| self.unit(link.to) != unit).collect()
    }

    /// The edges that lead to a step.
    pub(super) fn into(&self, place: usize) -> impl Iterator<Item = &'l Link<'l>> {
        self.into.get(place).into_iter().flatten().copied()
    }

    /// Everything that can be reached.
    pub(super) fn reached(&self, entries: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<usize> = entries.iter().copied().collect();
        while let Some(place) = open.pop() {
            if seen.insert(place) {
                open.extend(self.out(place).map(|link| link.to));
            }
        }
        seen
    }

    /// Everything from which a step can be reached.
    pub(super) fn earlier(&self, place: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            let before = self.into(place).map(|link| link.from);
            open.extend(before.filter(|before| seen.insert(*before)));
        }
        seen
    }

    /// Steps, each behind all that lead to it. The first of a cycle stands for all of it.
    pub(super) fn order(&self, steps: &[usize]) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::new();
        let mut waits: Vec<usize> = vec![0; self.out.len()];
        let mut open: Vec<usize> = Vec::new();
        for unit in steps.iter().copied().filter(|place| self.unit(*place) == *place) {
            let into = self.entering(unit).len();
            waits.get_mut(unit).into_iter().for_each(|count| *count = into);
            if into == 0 {
                open.push(unit);
            }
        }
        while let Some(unit) = open.pop() {
            order.push(unit);
            for link in self.leaving(unit) {
                let to = self.unit(link.to);
                let Some(count) = waits.get_mut(to).filter(|count| **count > 0) else { continue };
                *count -= 1;
                if *count == 0 {
                    open.push(to);
                }
            }
        }
        order
    }

    /// The steps that two paths of one run reach, each by a way of its own. A cycle counts as
    /// one step: a run leaves it by the edges of one of its steps.
    ///
    /// Two paths are walked at once, always the one that is further behind, so that they
    /// meet in every step that both go through; there they must agree on the case. The
    /// flag says whether a run begins at all entries at once.
    pub(super) fn doubled(
        &self,
        order: &[usize],
        starts: (&BTreeSet<usize>, bool),
    ) -> BTreeSet<usize> {
        let steps = self.out.len();
        let mut rank = vec![0; steps];
        for (place, step) in order.iter().enumerate() {
            rank.get_mut(*step).into_iter().for_each(|rank| *rank = place);
        }
        let ranked = |place: usize| rank.get(place).copied().unwrap_or_default();
        let sorted = |(a, b): (usize, usize)| if ranked(a) <= ranked(b) { (a, b) } else { (b, a) };
        let (entries, together) = starts;
        let entries: BTreeSet<usize> = entries.iter().map(|entry| self.unit(*entry)).collect();
        let pairs = entries.iter().flat_map(|one| entries.iter().map(|other| (*one, *other)));
        let mut open: Vec<(usize, usize)> =
            pairs.filter(|(one, other)| together || one == other).map(sorted).collect();
        let mut seen = vec![false; steps * steps];
        let mut doubled = BTreeSet::new();
        while let Some((behind, ahead)) = open.pop() {
            match seen.get_mut(behind * steps + ahead) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            let out = self.leaving(behind);
            for one in &out {
                let to = self.unit(one.to);
                if behind == ahead {
                    for other in out.iter().filter(|other| agree(one, other)) {
                        // Two steps of one cycle are reached at once.
                        if self.unit(other.to) == to && other.to != one.to {
                            doubled.insert(to);
                        }
                        open.push(sorted((to, self.unit(other.to))));
                    }
                    continue;
                }
                if to == ahead {
                    doubled.insert(ahead);
                }
                open.push(sorted((to, ahead)));
            }
        }
        doubled
    }
}

/// Whether two edges can both be taken. Those of two steps are of one cycle, which is left once.
fn agree(one: &Link<'_>, other: &Link<'_>) -> bool {
    one == other
        || (one.from == other.from
            && !one.fails
            && !other.fails
            && (one.case.is_none() || other.case.is_none() || one.case == other.case))
}
