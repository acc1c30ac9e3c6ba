//! The ways that lead through the steps of a workflow.

use std::collections::BTreeSet;

use super::edges::Link;

/// The edges of each step, so that looking does not take the square of them.
pub(super) struct Ways<'l> {
    out: Vec<Vec<&'l Link<'l>>>,
    into: Vec<Vec<&'l Link<'l>>>,
}

impl<'l> Ways<'l> {
    pub(super) fn new(steps: usize, links: &'l [Link<'l>]) -> Self {
        let mut ways = Self { out: vec![Vec::new(); steps], into: vec![Vec::new(); steps] };
        for link in links {
            ways.out.get_mut(link.from).into_iter().for_each(|out| out.push(link));
            ways.into.get_mut(link.to).into_iter().for_each(|into| into.push(link));
        }
        ways
    }

    fn out(&self, place: usize) -> impl Iterator<Item = &'l Link<'l>> {
        self.out.get(place).into_iter().flatten().copied()
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

    /// Steps, each behind all that lead to it. What is in a circle is left out.
    pub(super) fn order(&self, steps: &[usize]) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::new();
        let mut waits: Vec<usize> = vec![0; self.out.len()];
        for place in steps {
            waits.get_mut(*place).into_iter().for_each(|count| *count = self.into(*place).count());
        }
        let mut open: Vec<usize> =
            steps.iter().copied().filter(|place| self.into(*place).next().is_none()).collect();
        while let Some(place) = open.pop() {
            order.push(place);
            for link in self.out(place) {
                let Some(count) = waits.get_mut(link.to).filter(|count| **count > 0) else {
                    continue;
                };
                *count -= 1;
                if *count == 0 {
                    open.push(link.to);
                }
            }
        }
        order
    }

    /// The steps that two paths of one run reach, each by a way of its own.
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
        let pairs = entries.iter().flat_map(|one| entries.iter().map(move |other| (*one, *other)));
        let mut open: Vec<(usize, usize)> =
            pairs.filter(|(one, other)| together || one == other).map(sorted).collect();
        let mut seen = vec![false; steps * steps];
        let mut doubled = BTreeSet::new();
        while let Some((behind, ahead)) = open.pop() {
            match seen.get_mut(behind * steps + ahead) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            for one in self.out(behind) {
                if behind == ahead {
                    let other = self.out(ahead).filter(|other| agree(one, other));
                    open.extend(other.map(|other| sorted((one.to, other.to))));
                    continue;
                }
                if one.to == ahead {
                    doubled.insert(ahead);
                }
                open.push(sorted((one.to, ahead)));
            }
        }
        doubled
    }
}

/// Whether two edges of one step can both be taken.
fn agree(one: &Link<'_>, other: &Link<'_>) -> bool {
    one == other
        || (!one.fails
            && !other.fails
            && (one.case.is_none() || other.case.is_none() || one.case == other.case))
}
