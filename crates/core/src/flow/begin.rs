//! What reaching a step leads to.

use serde_json::{Map, Value, json};

use super::command::{Ask, Effect, Fault, Outcome, inline};
use super::decide::{Deciding, Fate, Todo, is_taken};
use super::graph::{Does, Place, Strategy, When};
use super::scope::value;
use crate::canonical;
use crate::catalog::Class;
use crate::event::engine::{
    InterruptDecision, Payload, SkipReason, StepCompleted, StepInterrupted, StepResolved,
    StepSkipped, StepStarted,
};
use crate::event::{By, limits};
use crate::instance::StepInstanceKey;
use crate::plan::{FailureKind, OnInterrupt};
use crate::projection::run::StepStatus;

/// How deep a value of a step may nest. Results of loops and of runs hold such values, and
/// events hold those.
const VALUE_DEPTH_MAX: usize = 48;

impl Deciding<'_, '_> {
    /// A step is reached, now or when this was recorded.
    pub(super) fn begin(&mut self, instance: &StepInstanceKey) {
        let Some(at) = self.graph.find(&instance.step) else { return };
        let graph = self.graph;
        let Some(place) = graph.place(at) else { return };
        let is_over = |status: StepStatus| status.is_final();
        if let Some(walked) = &mut self.walked {
            walked.insert(instance.clone());
            let is_turning = self.run.state.loops.contains_key(instance);
            if !is_turning && !self.status(instance).is_some_and(is_over) {
                return;
            }
        }
        if let Some(turn) = self.run.state.loops.get(instance).map(|looped| looped.iteration) {
            return self.open_turn(instance, at, turn);
        }
        match self.status(instance) {
            Some(StepStatus::Succeeded | StepStatus::Skipped | StepStatus::Failed) => {
                self.settle_recorded(instance);
            }
            Some(StepStatus::Running | StepStatus::Unknown) if place.is_performed() => {
                self.cut_off(instance, at);
            }
            Some(StepStatus::Waiting) => self.wait_again(instance, place),
            Some(StepStatus::Cancelled) => {}
            Some(StepStatus::Pending) if self.is_to_be_retried(instance) => {}
            Some(_) if self.rests() => self.keep_ready(instance.clone()),
            // Only a history from elsewhere says of a question that it was performed.
            Some(StepStatus::Running | StepStatus::Unknown | StepStatus::Pending) | None => {
                self.try_step(instance, place);
            }
        }
    }

    /// A step that was over when the run was loaded.
    fn settle_recorded(&mut self, instance: &StepInstanceKey) {
        let Some(step) = self.run.state.steps.get(instance) else { return };
        let case = step.case.clone();
        match step.status {
            StepStatus::Failed => self.settle(instance, Fate::Failed),
            _ => self.settle(instance, Fate::Done(case.as_deref())),
        }
    }

    fn is_to_be_retried(&self, instance: &StepInstanceKey) -> bool {
        let timers = self.run.state.timers.values();
        timers.into_iter().any(|timer| timer.instance.as_ref() == Some(instance))
    }

    /// Whoever performed a step is gone, or whoever was about to say what is done about that.
    fn cut_off(&mut self, instance: &StepInstanceKey, at: usize) {
        let Some(step) = self.graph.step(at) else { return };
        let attempt = self.attempts(instance).saturating_sub(1);
        let is_known = self.status(instance) == Some(StepStatus::Unknown);
        let cut = StepInterrupted { attempt, instance: instance.clone() };
        match step.on_interrupt {
            OnInterrupt::Retry if self.rests() => self.keep_ready(instance.clone()),
            OnInterrupt::Retry => {
                if !is_known {
                    self.emit(cut);
                }
                self.repeat(instance, attempt);
            }
            OnInterrupt::Fail | OnInterrupt::Ask if is_known => {}
            OnInterrupt::Fail => {
                let message = "the engine ended while the step was under way";
                self.failed(instance, Fault::new("STEP_INTERRUPTED", message), 0);
            }
            OnInterrupt::Ask => self.emit(cut),
        }
    }

    /// Tries again what was cut off, with the same settings: whoever got the first request may
    /// know the second by its key, and must find the same in it. Settings that were recorded
    /// elsewhere are not kept, and follow from the plan here.
    fn repeat(&mut self, instance: &StepInstanceKey, attempt: u32) {
        let input = self.run.state.steps.get(instance).and_then(|step| step.input.clone());
        let (By { name: by, via }, decision) = (By::engine(), InterruptDecision::Retry);
        self.emit(StepResolved { attempt, by, decision, instance: instance.clone(), via });
        match input {
            Some(input) => self.intend(instance, input),
            None => self.todo.push_back(Todo::Begin(instance.clone())),
        }
    }

    /// Tries a step, for the first time or again.
    pub(super) fn try_step(&mut self, instance: &StepInstanceKey, place: &Place) {
        let is_new = self.status(instance).is_none();
        if is_new && self.run.state.reached >= self.run.limits.steps_max {
            let max = self.run.limits.steps_max;
            let message = format!("the run has begun {max} steps, which is as many as it may");
            return self.fail_run(Fault::new("MAX_STEPS", message), Some(instance));
        }
        if self.run.state.events >= self.run.limits.events_max {
            let max = self.run.limits.events_max;
            let message = format!(
                "the run has a history of {max} events, which is as many as it may; let child runs do parts of it"
            );
            return self.fail_run(Fault::new("MAX_EVENTS", message), Some(instance));
        }
        // Once there was an intent, the condition held.
        let Some(condition) = place.condition.as_ref().filter(|_| !self.was_intended(instance))
        else {
            return self.with_settings(instance, place);
        };
        if condition.needs_worker() {
            return self.ask(instance, Ask::Condition);
        }
        let holds = self.value(condition, instance);
        self.with_condition(instance, place, holds);
    }

    fn was_intended(&self, instance: &StepInstanceKey) -> bool {
        self.run.state.steps.get(instance).is_some_and(|step| step.input.is_some())
    }

    pub(super) fn with_condition(
        &mut self,
        instance: &StepInstanceKey,
        place: &Place,
        holds: Result<Value, Fault>,
    ) {
        match holds {
            Ok(Value::Bool(true)) => self.with_settings(instance, place),
            Ok(Value::Bool(false)) => {
                let reason = SkipReason::Condition;
                self.emit(StepSkipped { instance: instance.clone(), reason });
                self.settle(instance, Fate::Done(None));
            }
            Ok(other) => {
                let message = format!("`when` gives {other}, which is neither true nor false");
                self.failed(instance, Fault::new("EXPR_TYPE", message), 0);
            }
            Err(fault) => self.failed(instance, fault, 0),
        }
    }

    fn with_settings(&mut self, instance: &StepInstanceKey, place: &Place) {
        if let Does::Merge(strategy) = place.does {
            let merged = self.merged(instance, strategy);
            return self.complete(instance, merged, None, 0);
        }
        let is_while = place.does == Does::Loop && place.settings.is_expression();
        if is_while {
            return self.enter(instance, &Value::Null);
        }
        if place.settings.needs_worker() {
            return self.ask(instance, Ask::Settings);
        }
        match self.value(&place.settings, instance) {
            Ok(settings) => self.with(instance, place, settings),
            Err(fault) => self.failed(instance, fault, 0),
        }
    }

    /// Everything about a step is known.
    pub(super) fn with(&mut self, instance: &StepInstanceKey, place: &Place, settings: Value) {
        if let Err(fault) = recordable("its settings", &settings) {
            return self.failed(instance, fault, 0);
        }
        match place.does {
            Does::Branch => {
                let case = case_of(&settings);
                if let Err(fault) = led_on(place, &case) {
                    return self.failed(instance, fault, 0);
                }
                self.complete(instance, json!({"value": settings}), Some(case), 0);
            }
            Does::Parallel => self.complete(instance, json!({}), None, 0),
            Does::Merge(strategy) => {
                let merged = self.merged(instance, strategy);
                self.complete(instance, merged, None, 0);
            }
            Does::End => {
                let result = settings.get("result").cloned().unwrap_or_default();
                self.complete(instance, json!({"result": result}), None, 0);
            }
            Does::Fail => {
                let message = settings.get("message").map(said).unwrap_or_default();
                self.failed(instance, Fault::new("RUN_FAILED", message), 0);
            }
            Does::Respond => {
                self.decision.effects.push(Effect::Respond { response: settings.clone() });
                self.complete(instance, settings, None, 0);
            }
            Does::Loop => self.enter(instance, &settings),
            Does::Wait => self.wait(instance, &settings),
            Does::Human => self.open_task(instance, settings),
            Does::Guide => self.hand_over(instance, settings),
            Does::Child => self.start_child(instance, &settings),
            Does::Perform(Class::Effectful) => self.intend(instance, inline(settings)),
            Does::Perform(class) => {
                self.compute(instance, settings);
                self.perform(instance, class);
            }
        }
    }

    /// Records the intent to perform a step.
    fn intend(&mut self, instance: &StepInstanceKey, input: Payload) {
        let attempt = self.attempts(instance);
        let (epoch, input) = (self.run.epoch, input.into());
        self.emit(StepStarted { attempt, epoch, input, instance: instance.clone() });
        self.perform(instance, Class::Effectful);
    }

    fn perform(&mut self, instance: &StepInstanceKey, class: Class) {
        // Equal for every try and after a crash; a fork is another run.
        let key = instance.within(self.run_id());
        let begun = self.status(instance) == Some(StepStatus::Running);
        let attempt = self.attempts(instance).saturating_sub(u32::from(begun));
        let instance = instance.clone();
        self.decision.effects.push(Effect::Perform { instance, attempt, key, class });
    }

    /// Records what came of a step, and goes on behind it.
    pub(super) fn complete(
        &mut self,
        instance: &StepInstanceKey,
        output: Value,
        case: Option<String>,
        duration_ms: u64,
    ) {
        self.complete_with(instance, Outcome { output, case, usage: None }, duration_ms);
    }

    pub(super) fn complete_with(
        &mut self,
        instance: &StepInstanceKey,
        outcome: Outcome,
        duration_ms: u64,
    ) {
        let Outcome { output, case, usage } = outcome;
        if let Err(fault) = recordable("what came out", &output) {
            return self.failed(
                instance,
                Fault { usage: usage.map(Box::new), ..fault },
                duration_ms,
            );
        }
        // No edge has a name that long: it is the default's.
        let case = case.filter(|case| case.len() <= limits::NAME);
        let begun = self.status(instance) == Some(StepStatus::Running);
        let attempt = self.attempts(instance).saturating_sub(u32::from(begun));
        self.emit(StepCompleted {
            attempt,
            case: case.clone(),
            duration_ms,
            instance: instance.clone(),
            output: inline(output),
            usage,
        });
        self.settle(instance, Fate::Done(case.as_deref()));
    }

    /// What a merge makes of the inputs that arrived.
    fn merged(&self, instance: &StepInstanceKey, strategy: Strategy) -> Value {
        let found = self.graph.find(&instance.step).and_then(|at| self.graph.step(at));
        let config = found.and_then(|step| match &step.action {
            crate::plan::Action::Typed { config, .. } => config.0.get("inputs")?.as_array(),
            crate::plan::Action::Prompt(_) => None,
        });
        let names = config.into_iter().flatten().filter_map(Value::as_str);
        let arrived = names.filter_map(|name| Some((name, self.arrived(instance, name)?)));
        match strategy {
            Strategy::Object => {
                let members = arrived.map(|(name, output)| (name.to_owned(), output.clone()));
                Value::Object(members.collect::<Map<_, _>>())
            }
            Strategy::List => Value::Array(arrived.map(|(_, output)| output.clone()).collect()),
            Strategy::First => arrived.map(|(_, output)| output.clone()).next().unwrap_or_default(),
        }
    }

    /// The output of an input from which the way to a merge was taken.
    fn arrived(&self, merge: &StepInstanceKey, input: &str) -> Option<&Value> {
        let place = self.graph.place(self.graph.named(input)?)?;
        let to = self.graph.find(&merge.step)?;
        let step = self.run.state.last_over(&merge.loop_path, &place.id)?;
        // What a step that failed gave is there to be looked at, and is no input.
        if step.status != StepStatus::Succeeded {
            return None;
        }
        let fate = Fate::Done(step.case.as_deref());
        let taken = place.outs.iter().any(|out| out.to == to && is_taken(place, out, fate));
        if taken { value(step.output.as_ref()?) } else { None }
    }

    /// A worker's answer.
    pub(super) fn evaluated(
        &mut self,
        instance: &StepInstanceKey,
        ask: Ask,
        result: Result<Value, Fault>,
    ) {
        let graph = self.graph;
        let place = graph.find(&instance.step).and_then(|place| graph.place(place));
        let Some(place) = place else { return };
        match (ask, result) {
            (Ask::Condition, holds) => self.with_condition(instance, place, holds),
            (Ask::Settings, Ok(settings)) => self.with(instance, place, settings),
            (Ask::Again, Ok(holds)) => self.turn(instance, &holds),
            (Ask::Settings | Ask::Again, Err(fault)) => self.failed(instance, fault, 0),
        }
    }

    /// The run is looked at after whoever performed it is gone.
    pub(super) fn recover(&mut self) {
        if self.run.state.cancel_requested {
            return self.end_with(crate::event::engine::RunCancelled {});
        }
        if self.run.state.started.is_none() {
            return;
        }
        let timers = self.run.state.timers.iter();
        let timers = timers.map(|(id, t)| Effect::Timer { timer: *id, due_ms: t.due_ms });
        self.decision.effects.extend(timers);
        self.open_level(Vec::new(), None);
    }
}

/// Whether a value can stand in an event, with room for what is made of it.
pub(super) fn recordable(what: &str, value: &Value) -> Result<(), Fault> {
    canonical::check(value, VALUE_DEPTH_MAX).map_err(|error| {
        let kind = FailureKind::InvalidOutput;
        Fault { kind, ..Fault::new("VALUE_INVALID", format!("{what} cannot be recorded: {error}")) }
    })
}

/// Whether a case has an edge of its own, or one for all others.
fn led_on(place: &Place, case: &str) -> Result<(), Fault> {
    let cases = place.outs.iter().filter_map(|out| match &out.when {
        When::Case(case) => Some(case.as_str()),
        _ => None,
    });
    let known: Vec<&str> = cases.collect();
    if known.is_empty() || known.contains(&case) || known.contains(&"default") {
        return Ok(());
    }
    let shown: String = case.chars().take(CASE_SHOWN_MAX).collect();
    let message = format!(
        "`expr` gives `{shown}`, which is none of its cases ({}); add `default`",
        known.join(", ")
    );
    Err(Fault::new("BRANCH_CASE", message))
}

/// How many characters of a case are shown that has no edge.
const CASE_SHOWN_MAX: usize = 80;

/// The case that a value stands for.
pub(super) fn case_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value as people read it.
fn said(value: &Value) -> String {
    case_of(value)
}
