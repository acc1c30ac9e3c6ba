//! Going on from an earlier step, in a run of its own.
//!
//! What a person decided is kept only as far as [`super::approvals`] lets it count.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::approvals::{Asker, asked_again, is_decided, vouch};
use super::command::inline;
use super::graph::{Does, Graph};
use super::imported::{unfit, unfit_output};
use crate::catalog::Class;
use crate::event::{Event, EventData};
use crate::id::RunId;
use crate::instance::{LoopTurn, StepInstanceKey};
use crate::projection::run::{RunState, StepState, StepStatus};
use crate::text::Slug;

/// What a fork goes on from.
#[derive(Clone, PartialEq, Debug)]
pub struct Fork {
    /// The state that the new run begins with.
    pub state: RunState,
    /// What was done before and will be done again, in the order of the plan.
    pub again: Vec<Repeated>,
    /// What is kept.
    pub kept: Vec<StepInstanceKey>,
    /// What a person decided and is kept, as decided by whoever asks for the fork.
    pub vouched: Vec<StepInstanceKey>,
}

/// What is taken back, and from where on.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    /// The first step that is done again.
    pub step: &'a StepInstanceKey,
    /// Earlier outputs that are changed.
    pub changes: &'a [Change],
    /// The graph that the run followed, when the fork is to follow another.
    pub was: Option<&'a Graph>,
}

/// A step that will be done again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repeated {
    /// Which.
    pub instance: StepInstanceKey,
    /// Whether the world may notice.
    pub has_effects: bool,
}

/// An earlier output that is put in the place of the recorded one.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Whose output.
    pub instance: StepInstanceKey,
    /// What it is to be.
    pub output: Value,
}

/// Why there is nothing to go on from.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotThere {
    /// The run never came there.
    #[error("the run never reached `{0}`")]
    Unreached(StepInstanceKey),
    /// The plan that the fork is to follow has no such step.
    #[error("the plan has no step `{0}`")]
    NotInPlan(StepInstanceKey),
    /// The output that is to be changed is not kept.
    #[error("`{0}` has no output that is kept")]
    NotKept(StepInstanceKey),
    /// The output that is to be changed is that of a step which is done again.
    #[error("`{}` comes after `{}`, so the fork does it again and its output cannot be set", .0.0, .0.1)]
    Again(Box<(StepInstanceKey, StepInstanceKey)>),
    /// The output that is to be changed is what a person decided.
    #[error("`{0}` is what a person decides, and nobody can supply it")]
    Decided(StepInstanceKey),
    /// What was recorded in a cycle cannot be read by a plan with another one.
    #[error("the plan changes the cycle that `{0}` is in")]
    Changed(StepInstanceKey),
    /// An output that is kept or given is none that such a step can have.
    #[error("{}", .0.1)]
    Unfit(Box<(StepInstanceKey, String)>),
}

/// Every step that a run ever began, with its place in the order in which they began.
pub type Begun = BTreeMap<StepInstanceKey, usize>;

/// Every step that a run ever began, by what is recorded of it.
pub fn begun<'e>(events: impl IntoIterator<Item = &'e Event>) -> Begun {
    let mut begun = Begun::new();
    for key in events.into_iter().filter_map(|event| begins(&event.data)) {
        let place = begun.len();
        begun.entry(key.clone()).or_insert(place);
    }
    begun
}

/// The step that an event begins, or ends when nothing else said that it began.
#[must_use]
pub const fn begins(data: &EventData) -> Option<&StepInstanceKey> {
    match data {
        EventData::StepStarted(step) => Some(&step.instance),
        EventData::StepCompleted(step) => Some(&step.instance),
        EventData::StepFailed(step) => Some(&step.instance),
        EventData::StepSkipped(step) => Some(&step.instance),
        EventData::StepWaiting(step) => Some(&step.instance),
        EventData::LoopEntered(entered) => Some(&entered.instance),
        _ => None,
    }
}

impl Fork {
    /// What is left of a run when a step and all that follows it are taken back.
    ///
    /// `state` is the run as it was when the step was reached or later, and no later when the
    /// step is in a cycle or a loop; `done` is every step that it ever began; the graph may be
    /// that of a newer plan.
    pub fn new(
        graph: &Graph,
        (state, done): (&RunState, &Begun),
        cut: Cut<'_>,
        asker: Asker<'_>,
        run_id: RunId,
    ) -> Result<Self, NotThere> {
        let Cut { step: from, changes, was } = cut;
        let at = graph.find(&from.step).ok_or_else(|| NotThere::NotInPlan(from.clone()))?;
        if !state.steps.contains_key(from) && !state.loops.contains_key(from) {
            return Err(NotThere::Unreached(from.clone()));
        }
        let asked = changes.iter().find(|change| is_decided(graph, asker, &change.instance));
        if let Some(change) = asked {
            return Err(NotThere::Decided(change.instance.clone()));
        }
        let mut gone = from_visit_on(graph, at, from);
        gone.extend(asked_again(graph, state, cut, asker));
        let mut left = RunState { end: None, run_id, paused: false, ..state.clone() };
        let is_foreign = !left.elsewhere.is_empty();
        left.elsewhere.clear();
        (left.imported, left.rebegun) = (false, None);
        (left.cancel_requested, left.retired, left.started) = (false, false, None);
        (left.children, left.tasks, left.timers) = Default::default();
        left.steps.retain(|key, step| {
            let known = graph.find(&key.step).is_some();
            known && key != from && is_over(graph, key, step) && !is_gone(graph, &gone, key)
        });
        left.loops.retain(|key, _| {
            graph.find(&key.step).is_some() && key != from && !is_gone(graph, &gone, key)
        });
        let kept = left.steps.keys().chain(left.loops.keys()).chain([from]);
        if let Some(changed) = was.and_then(|was| changed_cycle(was, graph, kept)) {
            return Err(NotThere::Changed(changed));
        }
        count_anew(&mut left);
        left.reached = u32::try_from(left.steps.len()).unwrap_or(u32::MAX);
        left.events = 0;
        left.ended_by = left.ended_by.filter(|key| left.steps.contains_key(key));
        let vouched = vouch(graph, &mut left, asker);
        for change in changes {
            let step = left.steps.get_mut(&change.instance);
            let step = step.filter(|step| step.output.is_some());
            let step = step.ok_or_else(|| {
                let given = change.instance.clone();
                match done.contains_key(&given) && &given != from {
                    true => NotThere::Again(Box::new((given, from.clone()))),
                    false => NotThere::NotKept(given),
                }
            })?;
            step.output = Some(inline(change.output.clone()));
            let unfit = unfit_output(graph, &change.instance, &change.output);
            if !unfit.is_empty() {
                return Err(NotThere::Unfit(Box::new((change.instance.clone(), unfit.join("; ")))));
            }
        }
        if let Some((key, fault)) = unfit(graph, &left).next().filter(|_| is_foreign) {
            return Err(NotThere::Unfit(Box::new((key.clone(), fault))));
        }
        // A loop around the step goes on, and is neither done again nor over.
        let known = |key: &&StepInstanceKey| {
            graph.find(&key.step).is_some() && !left.loops.contains_key(key)
        };
        let is_kept = |key: &StepInstanceKey| match state.steps.contains_key(key) {
            true => left.steps.contains_key(key),
            // It left the state with its turn, or with the whole loop.
            false if shares_cycle(graph, key, from) => {
                !is_gone(graph, &gone, key) && done.get(key) < done.get(from)
            }
            false => !is_gone(graph, &gone, key) && !is_later(key, from),
        };
        let (kept, again): (Vec<_>, Vec<_>) = done.keys().filter(known).cloned().partition(is_kept);
        let mut again: Vec<Repeated> =
            again.into_iter().map(|instance| repeated(graph, instance)).collect();
        again.sort_by_key(|step| graph.find(&step.instance.step));
        Ok(Self { state: left, again, kept, vouched })
    }
}

/// Whether a step is over in a way that another run can go on from.
fn is_over(graph: &Graph, key: &StepInstanceKey, step: &StepState) -> bool {
    matches!(step.status, StepStatus::Succeeded | StepStatus::Skipped)
        || (step.status == StepStatus::Failed && is_replaced(graph, key))
}

/// A level, and the places in it that are taken back.
pub(super) struct Gone<'k> {
    path: &'k [LoopTurn],
    places: BTreeSet<usize>,
}

/// What follows a visit of a step. What was done in its cycle before is kept.
fn from_visit_on<'k>(graph: &Graph, at: usize, from: &'k StepInstanceKey) -> Vec<Gone<'k>> {
    let mut levels = behind(graph, at, from);
    for level in &mut levels {
        let cycle = member_of(graph, level.path, from).and_then(|member| graph.cycle(member));
        level.places.retain(|place| !cycle.is_some_and(|cycle| cycle.contains(place)));
    }
    levels
}

/// The step or loop of a level that an instance is, or is in.
fn member_of(graph: &Graph, level: &[LoopTurn], key: &StepInstanceKey) -> Option<usize> {
    let rest = key.loop_path.strip_prefix(level)?;
    graph.find(rest.first().map_or(&key.step, |turn| &turn.loop_id))
}

/// Whether two instances are of one cycle, themselves or by loops that they are in.
fn shares_cycle(graph: &Graph, key: &StepInstanceKey, other: &StepInstanceKey) -> bool {
    (0..=other.loop_path.len()).any(|depth| {
        let level = other.loop_path.get(..depth).unwrap_or_default();
        let one = member_of(graph, level, key);
        let cycle = member_of(graph, level, other).and_then(|at| graph.cycle(at));
        one.zip(cycle).is_some_and(|(one, cycle)| cycle.contains(&one))
    })
}

/// The first of these instances that is in a cycle of one graph, or in a loop of a cycle, which
/// is not the same in another graph.
fn changed_cycle<'k>(
    was: &Graph,
    is: &Graph,
    kept: impl Iterator<Item = &'k StepInstanceKey>,
) -> Option<StepInstanceKey> {
    let changed = |step: &Slug| {
        let (old, new) = (was.find(step), is.find(step));
        old.and_then(|at| was.cycle_edges(at)) != new.and_then(|at| is.cycle_edges(at))
    };
    let mut kept = kept.filter(|key| {
        changed(&key.step) || key.loop_path.iter().any(|turn| changed(&turn.loop_id))
    });
    kept.next().cloned()
}

/// Counts the order of what is kept from 1, so that what is reached from now on comes after it.
fn count_anew(left: &mut RunState) {
    let mut ordered: Vec<&mut StepState> =
        left.steps.values_mut().filter(|step| step.order > 0).collect();
    ordered.sort_by_key(|step| step.order);
    for (place, step) in (1..).zip(ordered) {
        step.order = place;
    }
}

/// What follows a step, in its own level and behind the loops around it. All of a cycle follows
/// each of its steps.
pub(super) fn behind<'k>(graph: &Graph, at: usize, from: &'k StepInstanceKey) -> Vec<Gone<'k>> {
    around(graph, at, &from.loop_path)
}

/// What follows a place in the turns of a path.
pub(super) fn around<'k>(graph: &Graph, at: usize, turns: &'k [LoopTurn]) -> Vec<Gone<'k>> {
    let mut levels = vec![Gone { path: turns, places: following(graph, vec![at]) }];
    for (depth, turn) in turns.iter().enumerate() {
        let Some(place) = graph.find(&turn.loop_id).and_then(|at| graph.place(at)) else {
            continue;
        };
        let next = place.outs.iter().map(|out| out.to).collect();
        let path = turns.get(..depth).unwrap_or_default();
        levels.push(Gone { path, places: following(graph, next) });
    }
    levels
}

fn following(graph: &Graph, mut open: Vec<usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    while let Some(at) = open.pop() {
        if found.insert(at) {
            open.extend(graph.place(at).into_iter().flat_map(|p| p.outs.iter().map(|o| o.to)));
        }
    }
    found
}

/// Whether an instance, or a loop that it is in, is among those that are taken back.
pub(super) fn is_gone(graph: &Graph, gone: &[Gone<'_>], key: &StepInstanceKey) -> bool {
    gone.iter().any(|level| {
        let Some(rest) = key.loop_path.strip_prefix(level.path) else { return false };
        let inner = rest.first().map_or(&key.step, |turn| &turn.loop_id);
        graph.find(inner).is_some_and(|at| level.places.contains(&at))
    })
}

/// Whether an instance is of a later turn than another, in a loop around both.
fn is_later(key: &StepInstanceKey, than: &StepInstanceKey) -> bool {
    let turns = key.loop_path.iter().zip(&than.loop_path);
    let differing = turns.into_iter().find(|(turn, other)| turn != other);
    differing.is_some_and(|(turn, other)| turn.is_beside(other) && turn.iteration > other.iteration)
}

/// Whether another step took the place of a failed one.
fn is_replaced(graph: &Graph, key: &StepInstanceKey) -> bool {
    let step = graph.find(&key.step).and_then(|at| graph.step(at));
    step.is_some_and(|step| matches!(step.on_failure, crate::plan::OnFailure::Fallback { .. }))
}

fn repeated(graph: &Graph, instance: StepInstanceKey) -> Repeated {
    let does = graph.find(&instance.step).and_then(|at| graph.place(at)).map(|place| place.does);
    let has_effects = matches!(
        does,
        Some(Does::Perform(Class::Effectful) | Does::Child | Does::Human | Does::Respond)
    );
    Repeated { instance, has_effects }
}
