//! When an answer of a person counts.
//!
//! An answer counts once: in the run in which it was given, for the question as it was shown.
//! Whatever else would rely on it relies on somebody who could give the same answer now, to the
//! same question: a fork that keeps it, which then records it as theirs, and a second try of a
//! step behind it, which may do what was allowed once a second time. What was answered elsewhere
//! counts for nobody. Forks, retries and runs that came from elsewhere all ask here.

use std::collections::BTreeSet;

use serde_json::Value;

use super::command::inline;
use super::decide::evaluate;
use super::fork::{Change, Cut, Gone, around, behind, is_gone};
use super::graph::{Does, Graph};
use super::scope::{Hidden, Seen, value};
use super::settings::Question;
use crate::instance::StepInstanceKey;
use crate::plan::Action;
use crate::projection::run::{RunState, StepStatus};
use crate::time;

/// Somebody who asks for a fork, or for another try.
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

impl Asker<'_> {
    /// Somebody who may answer nothing.
    const fn nobody(self) -> Self {
        Self { answers: false, ..self }
    }
}

/// The answer that a step relies on and that does not count for whoever wants it tried again.
#[must_use]
pub fn unanswered(
    graph: &Graph,
    state: &RunState,
    step: &StepInstanceKey,
    asker: Asker<'_>,
) -> Option<StepInstanceKey> {
    let cut = Cut { step, changes: &[], was: None };
    let lost = not_counting(graph, state, cut, asker).into_iter();
    lost.filter(|(_, gone)| is_gone(graph, gone, step)).map(|(key, _)| key).next()
}

/// What follows the answers that do not count for whoever asks for a fork.
pub(super) fn asked_again<'k>(
    graph: &Graph,
    state: &'k RunState,
    cut: Cut<'k>,
    asker: Asker<'_>,
) -> Vec<Gone<'k>> {
    let lost = not_counting(graph, state, cut, asker).into_iter();
    lost.flat_map(|(_, gone)| gone).collect()
}

/// The answers that do not count for whoever asks, each with what follows it.
fn not_counting<'k>(
    graph: &Graph,
    state: &'k RunState,
    cut: Cut<'k>,
    asker: Asker<'_>,
) -> Vec<(StepInstanceKey, Vec<Gone<'k>>)> {
    let law = Law { graph, state, asker, changed: changed(state, cut) };
    let over = state.steps.iter().filter(|(key, step)| match step.status {
        StepStatus::Succeeded => !law.counts(key),
        // Of the visits before this one nothing is known here: somebody may have decided then.
        _ => (key.visit > 0 && !law.counts(key)) || law.is_from_elsewhere(key),
    });
    let over = over.map(|(key, _)| key).chain(past_elsewhere(graph, state));
    let over = over.filter_map(|key| Some((graph.find(&key.step)?, key)));
    let mut lost: Vec<_> = over.map(|(at, key)| (key.clone(), behind(graph, at, key))).collect();
    // Turns that are over have left the state: what was decided in them is in what they gave.
    let under_way = cut.step.loop_path.iter().enumerate().filter_map(|(depth, turn)| {
        let at = graph.find(&turn.loop_id)?;
        let path = cut.step.loop_path.get(..depth)?;
        let lost = turn.iteration > 0 && !law.counts_at(at, &turn.of(path));
        lost.then(|| (turn.of(path), around(graph, at, path)))
    });
    lost.extend(under_way);
    lost
}

/// What is needed to tell whether an answer counts.
struct Law<'a> {
    graph: &'a Graph,
    state: &'a RunState,
    asker: Asker<'a>,
    /// The run as it is changed, if it is.
    changed: Option<RunState>,
}

impl Law<'_> {
    /// Whether what a step gave counts, as far as people decided it.
    fn counts(&self, key: &StepInstanceKey) -> bool {
        !self.asker.decided.contains(key)
            && !self.is_from_elsewhere(key)
            && self.graph.find(&key.step).is_none_or(|at| self.counts_at(at, key))
    }

    /// Whether whoever asks could have answered what a place asks, and it asks the same.
    fn counts_at(&self, at: usize, key: &StepInstanceKey) -> bool {
        let asks = is_asked(self.graph, at, self.asker.nobody());
        !asks || (!is_asked(self.graph, at, self.asker) && self.shows_the_same(at, key))
    }

    /// Whether a question that was over elsewhere was answered by nobody here.
    fn is_from_elsewhere(&self, key: &StepInstanceKey) -> bool {
        let asks = |at| is_asked(self.graph, at, self.asker.nobody());
        self.state.was_over_elsewhere(key) && self.graph.find(&key.step).is_some_and(asks)
    }

    /// Whether people would be shown what they were shown. What the turns of a loop asked is not
    /// known any more, nor what a worker would make of a question.
    fn shows_the_same(&self, at: usize, key: &StepInstanceKey) -> bool {
        let Some(changed) = &self.changed else { return true };
        let Some(place) = self.graph.place(at).filter(|place| place.does == Does::Human) else {
            return false;
        };
        if place.settings.needs_worker() {
            return false;
        }
        let (path, secrets) = (&key.loop_path, &Hidden);
        let seen = Seen { graph: self.graph, state: changed, path, attempt: 0, secrets };
        let now = evaluate(&place.settings, &seen).ok().and_then(|now| inline(now).digest());
        let then = self.state.steps.get(key).and_then(|step| step.shown);
        now.is_some() && now == then
    }
}

/// The run with the outputs that are put in the place of others, unless nothing is changed: then
/// what it asked is what it would ask.
fn changed(state: &RunState, cut: Cut<'_>) -> Option<RunState> {
    if cut.changes.is_empty() && cut.was.is_none() {
        return None;
    }
    let mut changed = state.clone();
    for Change { instance, output } in cut.changes {
        if let Some(step) = changed.steps.get_mut(instance) {
            step.output = Some(inline(output.clone()));
        }
    }
    Some(changed)
}

/// The steps of a run that came from elsewhere which stand for what people decided there.
pub(super) fn decided_elsewhere(graph: &Graph, state: &RunState) -> Vec<StepInstanceKey> {
    let nobody = Asker { name: "", answers: false, now_ms: 0, decided: &BTreeSet::new() };
    let over = state.elsewhere.iter().filter(|key| state.was_over_elsewhere(key));
    let asked = over.filter(|key| graph.find(&key.step).is_some_and(|at| asks(graph, at, nobody)));
    let found: BTreeSet<_> = asked.chain(past_elsewhere(graph, state)).cloned().collect();
    found.into_iter().collect()
}

/// Steps of cycles with a question in them, begun elsewhere, from which the run would go on
/// without coming by the question: where a run stands in a cycle is known from its history alone.
fn past_elsewhere<'k>(graph: &Graph, state: &'k RunState) -> Vec<&'k StepInstanceKey> {
    let nobody = Asker { name: "", answers: false, now_ms: 0, decided: &BTreeSet::new() };
    let placed = |key: &StepInstanceKey| {
        state.steps.get(key).is_some_and(|step| step.order > 0) || state.loops.contains_key(key)
    };
    let past = |key: &&StepInstanceKey| {
        let at = graph.find(&key.step);
        let Some(cycle) = at.and_then(|at| graph.cycle(at)) else { return false };
        let is_open = state.steps.get(*key).is_some_and(|step| !step.status.is_final());
        let is_question = is_open && graph.asks_people(&key.step);
        !is_question && placed(key) && cycle.iter().any(|at| asks(graph, *at, nobody))
    };
    let begun = state.elsewhere.iter().filter(|_| state.revisits);
    begun.filter(past).collect()
}

/// Whether a place asks people something, itself, in its turns or in another run.
fn asks(graph: &Graph, at: usize, nobody: Asker<'_>) -> bool {
    let others = graph.place(at).is_some_and(|place| graph.asks_others(&place.id));
    others || is_asked(graph, at, nobody)
}

/// Whether a place asks a person something that whoever asks could not have answered,
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
pub(super) fn is_decided(graph: &Graph, asker: Asker<'_>, key: &StepInstanceKey) -> bool {
    let does = graph.find(&key.step).and_then(|at| graph.place(at)).map(|place| place.does);
    does == Some(Does::Human) || asker.decided.contains(key)
}

/// Makes what people decided and is kept the decision of whoever asks; gives what that is.
pub(super) fn vouch(graph: &Graph, left: &mut RunState, asker: Asker<'_>) -> Vec<StepInstanceKey> {
    let nobody = asker.nobody();
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
