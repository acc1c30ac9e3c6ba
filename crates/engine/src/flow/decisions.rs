//! What people decided, in child runs too, and who can rely on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use cairn_core::event::{By, Event, EventData};
use cairn_core::flow::{Asker, Graph, unanswered};
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::{RunState, StepStatus};

use super::plans::Plans;
use super::reading::Reading;
use crate::error::{Error, Result};

/// How many runs are looked at before a decision is taken for granted.
const RUNS_MAX: usize = 256;

/// How many runs lead to another at most; no chain of children is longer, and what claims to be
/// is not looked at to its end.
const PARENTS_MAX: usize = 64;

/// Somebody who says what becomes of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct Decider {
    /// Who.
    pub by: By,
    /// Whether they may answer what runs ask of people. An agent may not.
    pub answers: bool,
}

impl Decider {
    /// A person on this machine.
    pub fn local(by: impl Into<By>) -> Self {
        Self { by: by.into(), answers: true }
    }
}

/// Knows what people decided.
pub(super) struct Decisions {
    pub(super) reading: Arc<Reading>,
    pub(super) plans: Arc<Plans>,
}

impl Decisions {
    /// Whether somebody may have a step tried again that may have been done: what people allowed
    /// before it, in its run or in those that led to it, they must be able to allow.
    pub(super) async fn require_answers(
        &self,
        run: RunId,
        step: &StepInstanceKey,
        decider: &Decider,
    ) -> Result<()> {
        let forbidden = |asked| Error::RetryForbidden {
            run,
            step: Box::new(step.clone()),
            asked: Box::new(asked),
        };
        let (mut next, mut at) = (Some((run, step.clone())), 0);
        while let Some((id, instance)) = next.take() {
            let state = match self.reading.state(id).await {
                Ok((_, state)) => state,
                // What cannot be looked at may have been allowed by anybody.
                Err(Error::RunUnknown(_)) if id != run && decider.answers => return Ok(()),
                Err(Error::RunUnknown(_)) if id != run => return Err(forbidden(instance)),
                Err(error) => return Err(error),
            };
            let Some(started) = &state.started else { return Ok(()) };
            let graph = &self.plans.get(started.workflow_hash).await?.graph;
            let decided = self.in_children(graph, &state).await?;
            let (name, answers) = (decider.by.name.as_str(), decider.answers);
            // Whoever may answer may do so in child runs as well; whom they asked is not known.
            let none = BTreeSet::new();
            let decided = if answers { &none } else { &decided };
            let asker = Asker { name, answers, now_ms: 0, decided };
            if let Some(asked) = unanswered(graph, &state, &instance, asker) {
                return Err(forbidden(asked));
            }
            at += 1;
            let parent = state.queued.and_then(|queued| queued.parent);
            if parent.is_some() && at >= PARENTS_MAX {
                return Err(forbidden(instance));
            }
            next = parent.map(|parent| (parent.run_id, parent.instance));
        }
        Ok(())
    }

    /// The steps of a run that stand for child runs in which a person decided something, or of
    /// which that is not known any more. A loop stands for those of its turns.
    pub(super) async fn in_children(
        &self,
        graph: &Graph,
        state: &RunState,
    ) -> Result<BTreeSet<StepInstanceKey>> {
        let over = state.steps.iter().filter(|(_, step)| step.status == StepStatus::Succeeded);
        let over = over.map(|(key, _)| key).filter(|key| graph.asks_others(&key.step));
        let wanted: BTreeSet<StepInstanceKey> = over.cloned().collect();
        let (mut decided, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut run = Some(state.run_id).filter(|_| !wanted.is_empty());
        // What a fork kept of another run was done there.
        while let Some(id) = run.take() {
            let past = match self.reading.past(id).await {
                Ok(past) => past,
                Err(Error::RunUnknown(_)) => return Ok(wanted),
                Err(error) => return Err(error),
            };
            for (instance, child) in children(&past.events) {
                // What a cycle came back to stands for its earlier visits as well.
                let last = |step: StepInstanceKey| {
                    let end = StepInstanceKey { visit: u32::MAX, ..step.clone() };
                    wanted.range(step..=end).next().cloned()
                };
                let Some(step) = standing_for(instance).find_map(last) else { continue };
                if !decided.contains(&step) && self.has_some(child).await? {
                    decided.insert(step.clone());
                }
                seen.insert(step);
            }
            run = past.state.queued.and_then(|queued| queued.forked_from).map(|from| from.run_id);
        }
        let unknown = wanted.into_iter().filter(|key| graph.is_child(&key.step));
        decided.extend(unknown.filter(|key| !seen.contains(key)));
        Ok(decided)
    }

    /// Whether a person decided something in a run or in one that it asked for.
    async fn has_some(&self, run: RunId) -> Result<bool> {
        let (mut open, mut looked_at) = (vec![run], 0);
        while let Some(run) = open.pop() {
            looked_at += 1;
            let past = match self.reading.past(run).await {
                Ok(past) if looked_at <= RUNS_MAX => past,
                // What cannot be looked at may have been decided by anybody.
                Ok(_) | Err(Error::RunUnknown(_)) => return Ok(true),
                Err(error) => return Err(error),
            };
            let Some(started) = &past.state.started else { continue };
            let graph = &self.plans.get(started.workflow_hash).await?.graph;
            let kept =
                past.state.queued.as_ref().is_some_and(|queued| queued.forked_from.is_some());
            let asked = |event: &Event| match &event.data {
                EventData::TaskOpened(task) => graph.asks_people(&task.instance.step),
                _ => false,
            };
            if kept || past.events.iter().any(asked) {
                return Ok(true);
            }
            open.extend(children(&past.events).map(|(_, child)| child));
        }
        Ok(false)
    }
}

/// The steps that may stand for an instance: itself, or a loop around it.
fn standing_for(instance: &StepInstanceKey) -> impl Iterator<Item = StepInstanceKey> {
    let path = &instance.loop_path;
    let loops = path.iter().enumerate();
    let loops = loops.map(|(depth, turn)| turn.of(path.get(..depth).unwrap_or_default()));
    loops.chain([instance.clone()])
}

/// The child runs that a run asked for, and for which steps.
fn children(events: &[Event]) -> impl Iterator<Item = (&StepInstanceKey, RunId)> {
    events.iter().filter_map(|event| match &event.data {
        EventData::ChildStarted(child) => Some((&child.instance, child.child_run_id)),
        _ => None,
    })
}
