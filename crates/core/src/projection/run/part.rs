//! Parts of a run's state: what an earlier snapshot does not hold.
//!
//! What came of the turns of a loop only ever grows, and it is most of a long run's state.
//! So a snapshot holds what came since the one before, and a long loop is stored once, not
//! once for each snapshot.

use std::collections::BTreeMap;

use super::{Loop, RunState};
use crate::instance::StepInstanceKey;

/// How much of a run's state is stored already: for each loop, the turns whose results are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Held(BTreeMap<StepInstanceKey, usize>);

impl RunState {
    /// What a snapshot of this state holds.
    #[must_use]
    pub fn held(&self) -> Held {
        let loops = self.loops.iter();
        Held(loops.map(|(key, looped)| (key.clone(), looped.results.len())).collect())
    }

    /// A copy without the results that are stored already.
    #[must_use]
    pub fn since(&self, held: &Held) -> Self {
        let part = |(key, looped): (&StepInstanceKey, &Loop)| {
            let stored = held.0.get(key).copied().unwrap_or_default();
            let Loop { items, iteration, last, results } = looped;
            let results = results.get(stored..).unwrap_or_default().to_vec();
            // What a loop goes over does not change.
            let items = items.clone().filter(|_| !held.0.contains_key(key));
            (key.clone(), Loop { items, iteration: *iteration, last: last.clone(), results })
        };
        Self {
            cancel_requested: self.cancel_requested,
            children: self.children.clone(),
            elsewhere: self.elsewhere.clone(),
            end: self.end.clone(),
            ended_by: self.ended_by.clone(),
            events: self.events,
            imported: self.imported,
            last_node_id: self.last_node_id,
            loops: self.loops.iter().map(part).collect(),
            paused: self.paused,
            queued: self.queued.clone(),
            reached: self.reached,
            rebegun: self.rebegun,
            retired: self.retired,
            revisits: self.revisits,
            run_id: self.run_id,
            started: self.started.clone(),
            steps: self.steps.clone(),
            tasks: self.tasks.clone(),
            timers: self.timers.clone(),
        }
    }

    /// The whole state, of a part and the state that it came after.
    #[must_use]
    pub fn onto(mut self, mut base: Self) -> Self {
        for (key, looped) in &mut self.loops {
            let Some(Loop { items, mut results, .. }) = base.loops.remove(key) else { continue };
            results.append(&mut looped.results);
            looped.results = results;
            looped.items = items;
        }
        self
    }

    /// Whether a step is still to come: neither it nor anything after it has been reached.
    #[must_use]
    pub fn is_before(&self, step: &StepInstanceKey) -> bool {
        for (depth, turn) in step.loop_path.iter().enumerate() {
            let key = turn.of(step.loop_path.get(..depth).unwrap_or_default());
            match self.loops.get(&key) {
                None => return !self.has_come_to(&key),
                Some(looped) if looped.iteration != turn.iteration => {
                    return looped.iteration < turn.iteration;
                }
                Some(_) => {}
            }
        }
        !self.has_come_to(step)
    }

    /// Whether a visit was reached, or a later one of the same step.
    fn has_come_to(&self, visit: &StepInstanceKey) -> bool {
        let last = StepInstanceKey { visit: u32::MAX, ..visit.clone() };
        let visits = visit..=&last;
        self.steps.range(visits.clone()).next().is_some()
            || self.loops.range(visits).next().is_some()
    }
}
