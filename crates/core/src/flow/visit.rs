//! Cycles: coming in, coming back, and where a run stands in one.

use super::command::Fault;
use super::decide::{Deciding, Todo};
use super::frontier::Path;
use crate::instance::StepInstanceKey;

impl Deciding<'_, '_> {
    /// The token comes into a cycle, at this place. In a run that was loaded it goes on from the
    /// step that was reached last.
    pub(super) fn enter_cycle(&mut self, place: usize, cycle: &[usize], path: &Path) {
        let Some(instance) = self.token(cycle, path) else { return self.visit(place, path) };
        for member in cycle {
            let visits = self.visits_to(*member, path);
            if let (Some(visits), Some(level)) = (visits, self.run.frontier.levels.get_mut(path)) {
                level.visited(*member, visits);
            }
        }
        self.todo.push_back(Todo::Begin(instance));
    }

    /// The token comes to a place of its cycle.
    pub(super) fn visit(&mut self, place: usize, path: &Path) {
        let Some(level) = self.run.frontier.levels.get_mut(path) else { return };
        let visit = level.visit(place);
        let max = self.graph.visits_max(place);
        if visit < max {
            return self.come_to(place, path, visit);
        }
        let Some(found) = self.graph.place(place) else { return };
        let instance = StepInstanceKey { loop_path: path.clone(), step: found.id.clone(), visit };
        let message = format!(
            "`{}` was visited {max} times, which is the limit; raise its `max_visits`, or lead the cycle out earlier",
            found.id
        );
        self.fail_run(Fault::new("MAX_VISITS", message), Some(&instance));
    }

    /// Where the token of a cycle is, when that is recorded. As long as no cycle came back to a
    /// step, it is found by going the way from the first.
    fn token(&self, cycle: &[usize], path: &Path) -> Option<StepInstanceKey> {
        let state = &self.run.state;
        let places = || cycle.iter().filter_map(|at| self.graph.place(*at));
        let key = |step: &crate::text::Slug, visit| StepInstanceKey {
            loop_path: path.clone(),
            step: step.clone(),
            visit,
        };
        let turning = places().find_map(|place| {
            let (first, last) = (key(&place.id, 0), key(&place.id, u32::MAX));
            state.loops.range(first..=last).next_back().map(|(key, _)| key.clone())
        });
        let latest = || {
            let visits = places()
                .filter_map(|place| Some((state.last_visit(path, &place.id)?, &place.id)))
                .filter(|((_, step), _)| step.order > 0);
            let ((visit, _), id) = visits.max_by_key(|((_, step), _)| step.order)?;
            Some(key(id, visit))
        };
        turning.filter(|_| state.revisits).or_else(latest)
    }

    /// How often a place of a cycle was visited, as far as it is recorded.
    fn visits_to(&self, place: usize, path: &Path) -> Option<u32> {
        let (state, id) = (&self.run.state, &self.graph.place(place)?.id);
        let over = state.last_visit(path, id).map(|(visit, _)| visit);
        let key = |visit| StepInstanceKey { loop_path: path.clone(), step: id.clone(), visit };
        let turning = state.loops.range(key(0)..=key(u32::MAX)).next_back();
        let turning = turning.map(|(key, _)| key.visit);
        over.max(turning).map(|visit| visit.saturating_add(1))
    }
}
