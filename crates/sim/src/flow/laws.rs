//! What must hold of a run whatever the order of things is.

use std::collections::{BTreeMap, BTreeSet};

use cairn_core::catalog::Class;
use cairn_core::digest::Digest;
use cairn_core::event::EventData;
use cairn_core::event::engine::{AfterFailure, InterruptDecision};
use cairn_core::flow::{Decision, Effect};
use cairn_core::instance::{LoopTurn, StepInstanceKey};
use cairn_core::projection::run::RunState;

use super::Violation;
use super::world::SESSION;

/// What was recorded and done so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Laws {
    ended: bool,
    /// Whether somebody called a step failed that a crash cut off.
    called_failed: bool,
    /// The tries that were under way at a crash.
    cut_off: BTreeSet<(StepInstanceKey, u32)>,
    over: BTreeSet<StepInstanceKey>,
    begun: BTreeSet<StepInstanceKey>,
    entered: BTreeSet<StepInstanceKey>,
    intents: BTreeSet<(StepInstanceKey, u32)>,
    facts: BTreeSet<String>,
    keys: BTreeMap<StepInstanceKey, Digest>,
    performed: BTreeSet<(StepInstanceKey, u32)>,
}

/// Holds what is known to what the log says.
pub(super) fn same(folded: &RunState, live: &RunState, when: &str) -> Result<(), Violation> {
    if folded == live {
        return Ok(());
    }
    Err(Violation(format!("{when} the log comes to\n{folded:#?}\nand the run knows\n{live:#?}")))
}

impl Laws {
    /// Looks at what is about to be recorded.
    pub(super) fn decided(
        &mut self,
        decision: &Decision,
        rested: bool,
        recovers: bool,
    ) -> Result<(), Violation> {
        let wrong = |what: String| Err(Violation(what));
        for event in &decision.events {
            if self.ended {
                return wrong(format!("{} behind the end", event.data.kind().name()));
            }
            // A store takes no fact twice, and nothing else of a plan that has such a one.
            let fact = event.dedupe_key(SESSION).to_string();
            if !self.facts.insert(fact.clone()) {
                return wrong(format!("{fact} is recorded twice"));
            }
            let begins = match &event.data {
                EventData::StepStarted(step) => Some(&step.instance),
                EventData::StepWaiting(step) => Some(&step.instance),
                EventData::LoopEntered(entered) => Some(&entered.instance),
                _ => None,
            };
            if let Some(instance) = begins.filter(|_| rested) {
                return wrong(format!("{instance} is begun while the run rests"));
            }
            self.event(&event.data, recovers)?;
        }
        self.owed(decision)
    }

    fn event(&mut self, data: &EventData, recovers: bool) -> Result<(), Violation> {
        let wrong = |what: String| Err(Violation(what));
        let over = match data {
            EventData::StepStarted(step) => {
                self.intents.insert((step.instance.clone(), step.attempt));
                None
            }
            EventData::StepCompleted(step) => Some(&step.instance),
            EventData::StepSkipped(step) => Some(&step.instance),
            EventData::StepResolved(step) => {
                // A decision for failure is followed by the failure.
                self.called_failed = step.decision == InterruptDecision::Fail;
                (step.decision == InterruptDecision::Skip).then_some(&step.instance)
            }
            EventData::StepFailed(step) => {
                let known = recovers || std::mem::take(&mut self.called_failed);
                if step.error.code == "STEP_INTERRUPTED" && !known {
                    return wrong(format!("{} is interrupted without a crash", step.instance));
                }
                (step.then != AfterFailure::Retry).then_some(&step.instance)
            }
            EventData::LoopEntered(entered) => {
                if !self.entered.insert(entered.instance.clone()) {
                    return wrong(format!("{} is entered twice", entered.instance));
                }
                None
            }
            EventData::LoopExited(exited) => Some(&exited.instance),
            EventData::StepInterrupted(step) => {
                if !self.cut_off.contains(&(step.instance.clone(), step.attempt)) {
                    return wrong(format!("{} is interrupted without a crash", step.instance));
                }
                None
            }
            EventData::RunCompleted(_) | EventData::RunFailed(_) | EventData::RunCancelled(_) => {
                self.ended = true;
                None
            }
            _ => None,
        };
        if let Some(instance) = over {
            if !self.over.insert(instance.clone()) {
                return wrong(format!("{instance} is over twice"));
            }
            self.begun.insert(instance.clone());
        }
        Ok(())
    }

    /// A crash ends what was under way.
    pub(super) fn cut_off<'a>(&mut self, effects: impl Iterator<Item = &'a Effect>) {
        self.cut_off.extend(effects.filter_map(|effect| match effect {
            Effect::Perform { instance, attempt, .. } => Some((instance.clone(), *attempt)),
            _ => None,
        }));
    }

    /// An end is told once, and nothing else is owed with it.
    fn owed(&self, decision: &Decision) -> Result<(), Violation> {
        let ends = decision.effects.iter().filter(|e| matches!(e, Effect::End(_))).count();
        if ends != usize::from(self.ended) {
            return Err(Violation(format!("{ends} ends are told where one was recorded")));
        }
        let left = |effect: &&Effect| {
            !matches!(effect, Effect::End(_) | Effect::CallOff | Effect::Respond { .. })
        };
        match decision.effects.iter().find(left).filter(|_| self.ended) {
            Some(effect) => Err(Violation(format!("{effect:?} is owed behind the end"))),
            None => Ok(()),
        }
    }

    /// How many turns of a loop were begun.
    pub(super) fn turns(&self, key: &StepInstanceKey) -> u32 {
        let inside = |path: &[LoopTurn]| {
            let turn = path.get(key.loop_path.len())?;
            let around = path.get(..key.loop_path.len())? == key.loop_path.as_slice();
            (around && turn.loop_id == key.step && turn.visit == key.visit)
                .then_some(turn.iteration + 1)
        };
        let begun = self.begun.iter().chain(&self.entered);
        begun.filter_map(|other| inside(&other.loop_path)).max().unwrap_or_default()
    }

    /// A step is performed.
    pub(super) fn performs(&mut self, effect: &Effect) -> Result<(), Violation> {
        let Effect::Perform { instance, attempt, key, class } = effect else { return Ok(()) };
        if *class != Class::Effectful {
            return Ok(());
        }
        let wrong = |what: &str| Err(Violation(format!("{instance} try {attempt} {what}")));
        let number = (instance.clone(), *attempt);
        if !self.intents.contains(&number) {
            return wrong("is performed without an intent");
        }
        if self.keys.insert(instance.clone(), *key).is_some_and(|known| known != *key) {
            return wrong("is performed with another key");
        }
        if self.keys.values().filter(|known| *known == key).count() > 1 {
            return wrong("is performed with the key of another step");
        }
        if self.ended {
            return wrong("is performed behind the end");
        }
        match self.performed.insert(number) {
            true => Ok(()),
            false => wrong("is performed twice"),
        }
    }
}
