//! Going on from an earlier step, in a run of its own.
//!
//! What a person decided counts once, in the run in which it was decided. So a fork keeps no
//! outcome of a `human` step, and nothing that came after one: it asks again. Whoever could have
//! answered himself may keep it, and then it is his.

use std::collections::BTreeSet;

use serde_json::Value;

use super::command::inline;
use super::graph::{Does, Graph};
use super::scope::value;
use super::settings::Question;
use crate::catalog::Class;
use crate::event::{Event, EventData};
use crate::id::RunId;
use crate::instance::{LoopTurn, StepInstanceKey};
use crate::plan::Action;
use crate::projection::run::{RunState, StepState, StepStatus};
use crate::time;

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

/// Somebody who asks for a fork.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// Who.
    pub name: &'a str,
    /// Whether they may answer what runs ask of people.
    pub answers: bool,
    /// When, as it is told.
    pub now_ms: u64,
    /// Steps of other kinds that stand for something a person decided: in a child run, say.
    pub decided: &'a BTreeSet<StepInstanceKey>,
}

/// What is taken back, and from where on.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    /// The first step that is done again.
    pub step: &'a StepInstanceKey,
    /// Earlier outputs that are changed.
    pub changes: &'a [Change],
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
    /// The output that is to be changed is what a person decided.
    #[error("`{0}` is what a person decides, and nobody can supply it")]
    Decided(StepInstanceKey),
}

/// Every step that a run ever began, by what is recorded of it.
pub fn begun<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeSet<StepInstanceKey> {
    events.into_iter().filter_map(|event| begins(&event.data)).cloned().collect()
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
    /// `state` is the run as it was when the step was reached or later, `done` every step that
    /// it ever began; the graph may be that of a newer plan.
    pub fn new(
        graph: &Graph,
        (state, done): (&RunState, &BTreeSet<StepInstanceKey>),
        Cut { step: from, changes }: Cut<'_>,
        asker: Asker<'_>,
        run_id: RunId,
    ) -> Result<Self, NotThere> {
        let at = graph.find(&from.step).ok_or_else(|| NotThere::NotInPlan(from.clone()))?;
        if !state.steps.contains_key(from) && !state.loops.contains_key(from) {
            return Err(NotThere::Unreached(from.clone()));
        }
        let asked = changes.iter().find(|change| is_decided(graph, asker, &change.instance));
        if let Some(change) = asked {
            return Err(NotThere::Decided(change.instance.clone()));
        }
        let mut gone = behind(graph, at, from);
        gone.extend(asked_again(graph, state, from, asker));
        let mut left = RunState { end: None, run_id, paused: false, ..state.clone() };
        left.elsewhere.clear();
        (left.cancel_requested, left.retired, left.started) = (false, false, None);
        (left.children, left.tasks, left.timers) = Default::default();
        left.steps.retain(|key, step| {
            let known = graph.find(&key.step).is_some();
            known && is_over(graph, key, step) && !is_gone(graph, &gone, key)
        });
        left.loops.retain(|key, _| graph.find(&key.step).is_some() && !is_gone(graph, &gone, key));
        left.reached = u32::try_from(left.steps.len()).unwrap_or(u32::MAX);
        left.events = 0;
        left.ended_by = left.ended_by.filter(|key| left.steps.contains_key(key));
        let vouched = vouch(graph, &mut left, asker);
        for change in changes {
            let step = left.steps.get_mut(&change.instance);
            let step = step.filter(|step| step.output.is_some());
            let step = step.ok_or_else(|| NotThere::NotKept(change.instance.clone()))?;
            step.output = Some(inline(change.output.clone()));
        }
        // A loop around the step goes on, and is neither done again nor over.
        let known = |key: &&StepInstanceKey| {
            graph.find(&key.step).is_some() && !left.loops.contains_key(key)
        };
        let is_kept = |key: &StepInstanceKey| match state.steps.contains_key(key) {
            true => left.steps.contains_key(key),
            // It left the state with its turn, or with the whole loop.
            false => !is_gone(graph, &gone, key) && !is_later(key, from),
        };
        let (kept, again): (Vec<_>, Vec<_>) = done.iter().filter(known).cloned().partition(is_kept);
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

/// What follows the decisions of people that whoever asks cannot vouch for.
fn asked_again<'k>(
    graph: &Graph,
    state: &'k RunState,
    from: &'k StepInstanceKey,
    asker: Asker<'_>,
) -> Vec<Gone<'k>> {
    let decided = |key: &StepInstanceKey| {
        asker.decided.contains(key)
            || graph.find(&key.step).is_some_and(|at| is_asked(graph, at, asker))
    };
    // A question that was passed over elsewhere was answered by nobody.
    let nobody = Asker { answers: false, ..asker };
    let passed_over = |key: &StepInstanceKey| {
        state.was_over_elsewhere(key)
            && graph.find(&key.step).is_some_and(|at| is_asked(graph, at, nobody))
    };
    let over = state.steps.iter().filter(|(key, step)| match step.status {
        StepStatus::Succeeded => decided(key),
        _ => passed_over(key),
    });
    let over = over.map(|(key, _)| key);
    // Turns that are over have left the state: what was decided in them is in what they gave.
    let under_way = from.loop_path.iter().enumerate().filter_map(|(depth, turn)| {
        let at = graph.find(&turn.loop_id)?;
        let path = from.loop_path.get(..depth)?;
        (turn.iteration > 0 && is_asked(graph, at, asker)).then_some((at, path))
    });
    let over = over.filter_map(|key| Some((graph.find(&key.step)?, key)));
    let mut gone: Vec<Gone<'k>> = over.flat_map(|(at, key)| behind(graph, at, key)).collect();
    gone.extend(under_way.flat_map(|(at, path)| around(graph, at, path)));
    gone
}

/// The steps of a run that came from elsewhere which stand for what people decided there.
pub(super) fn decided_elsewhere(graph: &Graph, state: &RunState) -> Vec<StepInstanceKey> {
    let nobody = Asker { name: "", answers: false, now_ms: 0, decided: &BTreeSet::new() };
    let asked = |key: &&StepInstanceKey| {
        let at = graph.find(&key.step);
        graph.asks_others(&key.step) || at.is_some_and(|at| is_asked(graph, at, nobody))
    };
    let over = state.elsewhere.iter().filter(|key| state.was_over_elsewhere(key));
    over.filter(asked).cloned().collect()
}

/// Whether a place asks a person something that whoever asks for a fork could not have answered,
/// itself or in its turns.
fn is_asked(graph: &Graph, at: usize, asker: Asker<'_>) -> bool {
    match graph.place(at).map(|place| place.does) {
        Some(Does::Human) => !could_answer(graph, at, asker),
        Some(Does::Loop) => graph.level(Some(at)).any(|inner| is_asked(graph, inner, asker)),
        _ => false,
    }
}

/// Whether somebody could answer the question of a step. Names that only a run knows are not
/// known here, so nobody is among them.
fn could_answer(graph: &Graph, at: usize, asker: Asker<'_>) -> bool {
    let Some(Action::Typed { config, .. }) = graph.step(at).map(|step| &step.action) else {
        return false;
    };
    let who = Question::read(&config.0).map(|question| question.who);
    let named =
        |who: Option<Vec<String>>| who.is_none_or(|who| who.iter().any(|n| n == asker.name));
    asker.answers && who.is_ok_and(named)
}

/// Whether an output is what a person decided.
fn is_decided(graph: &Graph, asker: Asker<'_>, key: &StepInstanceKey) -> bool {
    let does = graph.find(&key.step).and_then(|at| graph.place(at)).map(|place| place.does);
    does == Some(Does::Human) || asker.decided.contains(key)
}

/// Makes what people decided and is kept the decision of whoever asks; gives what that is.
fn vouch(graph: &Graph, left: &mut RunState, asker: Asker<'_>) -> Vec<StepInstanceKey> {
    let nobody = Asker { answers: false, ..asker };
    let mut vouched = Vec::new();
    for (key, step) in &mut left.steps {
        let Some(at) = graph.find(&key.step).filter(|at| is_asked(graph, *at, nobody)) else {
            continue;
        };
        if step.status != StepStatus::Succeeded {
            continue;
        }
        vouched.push(key.clone());
        // What the turns of a loop gave is left as it is.
        let is_loop = graph.place(at).is_some_and(|place| place.does == Does::Loop);
        let output = step.output.as_ref().filter(|_| !is_loop).and_then(value);
        if let Some(Value::Object(mut output)) = output.cloned() {
            output.insert("by".to_owned(), asker.name.into());
            output.insert("at".to_owned(), time::show(asker.now_ms).into());
            step.output = Some(inline(Value::Object(output)));
        }
    }
    vouched
}

/// A level, and the places in it that are taken back.
struct Gone<'k> {
    path: &'k [LoopTurn],
    places: BTreeSet<usize>,
}

/// What follows a step, in its own level and behind the loops around it.
fn behind<'k>(graph: &Graph, at: usize, from: &'k StepInstanceKey) -> Vec<Gone<'k>> {
    around(graph, at, &from.loop_path)
}

/// What follows a place in the turns of a path.
fn around<'k>(graph: &Graph, at: usize, turns: &'k [LoopTurn]) -> Vec<Gone<'k>> {
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
fn is_gone(graph: &Graph, gone: &[Gone<'_>], key: &StepInstanceKey) -> bool {
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
