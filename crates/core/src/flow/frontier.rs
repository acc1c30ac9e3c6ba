//! What follows from a run's state: which edges are settled, what is reached.

use std::collections::{BTreeSet, HashMap};

use super::graph::{Does, Graph, Strategy};
use crate::instance::{LoopTurn, StepInstanceKey};

/// The turns of the loops around a step, outermost first.
pub(super) type Path = Vec<LoopTurn>;

/// What follows from a run's state.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Frontier {
    pub(super) levels: HashMap<Path, Level>,
    /// Reached, and to be begun when the run may go on.
    pub(super) ready: BTreeSet<StepInstanceKey>,
}

/// One level of a run: one turn of a loop, or what stands outside of all.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Level {
    /// By place; a cycle is one, and goes by its first place.
    inputs: HashMap<usize, Input>,
    /// How often each place of a cycle was visited.
    visits: HashMap<usize, u32>,
    /// How many steps and cycles are reached and not over.
    pub(super) active: u32,
}

/// What is known of the edges to a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Input {
    /// Edges that are not settled.
    open: u32,
    taken: bool,
    reached: bool,
}

/// What settling an edge leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Now {
    /// The step is reached.
    Reached,
    /// Nothing leads to it any more.
    Dead,
    /// Nothing yet.
    Waits,
}

impl Level {
    pub(super) fn new(graph: &Graph, around: Option<usize>) -> Self {
        let input = |place: usize| {
            let open = graph.place(place).map_or(0, |place| place.incoming);
            (place, Input { open, taken: false, reached: false })
        };
        let units = graph.level(around).filter(|place| graph.unit(*place) == *place);
        Self { inputs: units.map(input).collect(), visits: HashMap::new(), active: 0 }
    }

    /// The number of the next visit to a place of a cycle.
    pub(super) fn visit(&mut self, place: usize) -> u32 {
        let visits = self.visits.entry(place).or_default();
        let visit = *visits;
        *visits = visit.saturating_add(1);
        visit
    }

    /// Notes that a place of a cycle was visited so often.
    pub(super) fn visited(&mut self, place: usize, visits: u32) {
        self.visits.insert(place, visits);
    }

    /// Settles one edge to a place.
    pub(super) fn settle(&mut self, graph: &Graph, to: usize, taken: bool) -> Now {
        let Some(input) = self.inputs.get_mut(&graph.unit(to)) else { return Now::Waits };
        input.open = input.open.saturating_sub(1);
        input.taken |= taken;
        if input.reached {
            return Now::Waits;
        }
        // A merge in a cycle has one input.
        let merge = graph.place(to).filter(|_| graph.cycle(to).is_none()).map(|place| place.does);
        let waits_for_all = matches!(merge, Some(Does::Merge(Strategy::Object | Strategy::List)));
        match (input.open, input.taken) {
            (1.., true) if waits_for_all => Now::Waits,
            (_, true) => Now::Reached,
            (0, false) => Now::Dead,
            (_, false) => Now::Waits,
        }
    }

    /// Notes that a place, or the cycle that it is in, is reached; says whether it was not
    /// before.
    pub(super) fn reach(&mut self, graph: &Graph, place: usize) -> bool {
        let Some(input) = self.inputs.get_mut(&graph.unit(place)) else { return false };
        let fresh = !std::mem::replace(&mut input.reached, true);
        self.active += u32::from(fresh);
        fresh
    }

    /// The places that nothing leads to and that are not reached.
    pub(super) fn untouched(&self) -> Vec<usize> {
        let nothing = |input: &Input| input.open == 0 && !input.taken && !input.reached;
        let mut found: Vec<usize> =
            self.inputs.iter().filter(|(_, input)| nothing(input)).map(|(at, _)| *at).collect();
        found.sort_unstable();
        found
    }
}
