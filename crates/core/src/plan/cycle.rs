//! Steps that come back to themselves.
//!
//! A cycle is a strongly connected component of the edges of one level. It holds one token:
//! every outcome of a step in it leads to one step of the cycle, or only out of it, or nowhere.

use std::collections::BTreeSet;

/// How often a step in a cycle may be visited, unless it says so.
pub const VISITS_MAX: u32 = 1_000;

/// When an edge is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenOn<'a> {
    /// Whatever comes of the step, unless it fails.
    Always,
    /// On this case.
    Case(&'a str),
    /// The step failed for good, and another takes its place.
    Failure,
}

/// An outcome of a step, as its edges see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutcomeOf<'a> {
    /// This case.
    Case(&'a str),
    /// No case that has an edge; a step that is skipped has none either.
    Other,
    /// It failed, and another takes its place.
    Failed,
}

/// Finds the cycles among edges between so many places.
///
/// Gives for each place the first place of the cycle that it is in, and none when it is in
/// none. An edge from a place to itself is a cycle of one.
#[must_use]
pub fn cycles(places: usize, edges: &[(usize, usize)]) -> Vec<Option<usize>> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); places];
    for (from, to) in edges {
        if let (Some(out), true) = (next.get_mut(*from), *to < places) {
            out.push(*to);
        }
    }
    let mut search = Search { next, marks: vec![None; places], ..Search::default() };
    search.found = vec![None; places];
    for place in 0..places {
        if search.marks.get(place).is_some_and(Option::is_none) {
            search.from(place);
        }
    }
    search.found
}

/// Tarjan's algorithm, with a stack of its own: a workflow may be a thousand steps long.
#[derive(Default)]
struct Search {
    next: Vec<Vec<usize>>,
    marks: Vec<Option<Mark>>,
    /// Places that are in no finished component.
    open: Vec<usize>,
    found: Vec<Option<usize>>,
    count: usize,
}

#[derive(Clone, Copy)]
struct Mark {
    number: usize,
    lowest: usize,
    is_open: bool,
}

impl Search {
    fn from(&mut self, start: usize) {
        let mut walk: Vec<(usize, usize)> = Vec::new();
        self.enter(start, &mut walk);
        while let Some((place, edge)) = walk.last_mut() {
            let place = *place;
            let to = self.next.get(place).and_then(|out| out.get(*edge)).copied();
            *edge += 1;
            match to {
                Some(to) => match self.marks.get(to).copied().flatten() {
                    None => self.enter(to, &mut walk),
                    Some(mark) if mark.is_open => self.lower(place, mark.number),
                    Some(_) => {}
                },
                None => {
                    walk.pop();
                    let lowest = self.leave(place);
                    if let Some((before, _)) = walk.last() {
                        self.lower(*before, lowest);
                    }
                }
            }
        }
    }

    fn enter(&mut self, place: usize, walk: &mut Vec<(usize, usize)>) {
        let number = self.count;
        self.count += 1;
        if let Some(mark) = self.marks.get_mut(place) {
            *mark = Some(Mark { number, lowest: number, is_open: true });
        }
        self.open.push(place);
        walk.push((place, 0));
    }

    fn lower(&mut self, place: usize, to: usize) {
        if let Some(Some(mark)) = self.marks.get_mut(place) {
            mark.lowest = mark.lowest.min(to);
        }
    }

    /// Everything behind a place was looked at; gives how far back it leads.
    fn leave(&mut self, place: usize) -> usize {
        let Some(Some(mark)) = self.marks.get(place).copied() else { return usize::MAX };
        if mark.lowest < mark.number {
            return mark.lowest;
        }
        let start = self.open.iter().rposition(|other| *other == place).unwrap_or_default();
        let members = self.open.split_off(start);
        let is_cycle = match members.as_slice() {
            [one] => self.next.get(*one).is_some_and(|out| out.contains(one)),
            _ => true,
        };
        let first = members.iter().min().copied().filter(|_| is_cycle);
        for member in members {
            if let Some(Some(mark)) = self.marks.get_mut(member) {
                mark.is_open = false;
            }
            if let Some(found) = self.found.get_mut(member) {
                *found = first;
            }
        }
        mark.lowest
    }
}

/// Whether an edge is taken on an outcome, among the edges of its step.
pub(crate) fn is_taken(on: TakenOn<'_>, outcome: OutcomeOf<'_>) -> bool {
    match (on, outcome) {
        (TakenOn::Failure, outcome) => outcome == OutcomeOf::Failed,
        (_, OutcomeOf::Failed) => false,
        (TakenOn::Always, _) => true,
        (TakenOn::Case(wanted), OutcomeOf::Case(case)) => wanted == case,
        (TakenOn::Case(wanted), OutcomeOf::Other) => wanted == "default",
    }
}

/// The outcomes that the edges of a step tell apart.
fn outcomes<'a>(outs: &[(usize, TakenOn<'a>)]) -> Vec<OutcomeOf<'a>> {
    let cases = outs.iter().filter_map(|(_, on)| match on {
        TakenOn::Case(case) if *case != "default" => Some(*case),
        _ => None,
    });
    let cases: BTreeSet<&str> = cases.collect();
    let cases = cases.into_iter().map(OutcomeOf::Case);
    cases.chain([OutcomeOf::Other, OutcomeOf::Failed]).collect()
}

/// The places that an outcome leads to, without repetition.
fn targets(outs: &[(usize, TakenOn<'_>)], outcome: OutcomeOf<'_>) -> BTreeSet<usize> {
    outs.iter().filter(|(_, on)| is_taken(*on, outcome)).map(|(to, _)| *to).collect()
}

/// The first outcome of a step in a cycle on which there would be more than one token: it leads
/// to two steps of the cycle, or to one of them and out of it as well.
pub fn divided<'a>(
    outs: &[(usize, TakenOn<'a>)],
    stays: impl Fn(usize) -> bool,
) -> Option<(OutcomeOf<'a>, BTreeSet<usize>)> {
    let taken = outcomes(outs).into_iter().map(|outcome| (outcome, targets(outs, outcome)));
    let mut divided = taken.filter(|(_, to)| to.len() > 1 && to.iter().any(|to| stays(*to)));
    divided.next()
}

/// Whether a step of a cycle can end it: by an edge that leaves, or on an outcome without an
/// edge. The last counts for a step that may be skipped, which has no case then.
pub fn leaves(
    outs: &[(usize, TakenOn<'_>)],
    stays: impl Fn(usize) -> bool,
    may_be_skipped: bool,
) -> bool {
    outs.iter().any(|(to, _)| !stays(*to))
        || (may_be_skipped && targets(outs, OutcomeOf::Other).is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cycles_are_found_and_nothing_else() {
        let found = cycles(7, &[(0, 1), (1, 2), (2, 1), (2, 3), (4, 4), (3, 5), (5, 6), (6, 5)]);
        assert_eq!(found, [None, Some(1), Some(1), None, Some(4), Some(5), Some(5)]);
    }

    #[test]
    fn a_long_cycle_takes_no_stack() {
        let edges: Vec<(usize, usize)> = (0..100_000).map(|at| (at, (at + 1) % 100_000)).collect();
        assert!(cycles(100_000, &edges).iter().all(|first| *first == Some(0)));
    }

    #[test]
    fn an_outcome_has_one_way_within_a_cycle() {
        let on = TakenOn::Case;
        let stays = |to: usize| to < 5;
        for (outs, expected) in [
            (vec![(1, TakenOn::Always)], None),
            (vec![(1, on("a")), (2, on("b")), (9, on("default"))], None),
            (vec![(8, on("a")), (9, on("a")), (1, on("default"))], None),
            (vec![(1, on("a")), (1, TakenOn::Always)], None),
            (vec![(1, on("a")), (9, on("a"))], Some(OutcomeOf::Case("a"))),
            (vec![(1, on("default")), (9, TakenOn::Always)], Some(OutcomeOf::Other)),
            (vec![(1, TakenOn::Failure), (9, TakenOn::Always)], None),
        ] {
            assert_eq!(divided(&outs, stays).map(|(outcome, _)| outcome), expected, "{outs:?}");
        }
    }

    proptest! {
        /// Two places are in one cycle when each can be reached from the other.
        #[test]
        fn cycles_are_what_can_be_reached_both_ways(
            edges in vec((0_usize..9, 0_usize..9), 0..20)
        ) {
            let mut reach = [[false; 9]; 9];
            for (from, to) in &edges {
                reach[*from][*to] = true;
            }
            for k in 0..9 {
                for i in 0..9 {
                    for j in 0..9 {
                        reach[i][j] |= reach[i][k] && reach[k][j];
                    }
                }
            }
            let wanted: Vec<Option<usize>> =
                (0..9).map(|i| (0..9).find(|j| reach[i][*j] && reach[*j][i])).collect();
            prop_assert_eq!(cycles(9, &edges), wanted);
        }
    }
}
