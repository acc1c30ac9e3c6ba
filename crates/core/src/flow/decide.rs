//! What a command means for a run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::command::{Ask, Command, Effect, Fault, Limits, Moment, Rejection};
use super::frontier::{Frontier, Level, Now, Path};
use super::graph::{Graph, Out, Place, When};
use super::scope::{Hidden, Secrets, Seen};
use super::turn::last_turn;
use crate::canonical;
use crate::event::engine::{
    Payload, RunCancelRequested, RunCancelled, RunPaused, RunResumed, TimerSet,
};
use crate::event::{By, EventData, NewEvent, Scope};
use crate::expression::Prepared;
use crate::id::RunId;
use crate::instance::StepInstanceKey;
use crate::plan::cycle::{self, OutcomeOf};
use crate::projection::run::{RunState, StepState, StepStatus};

/// A run under way.
#[derive(Clone, Debug)]
pub struct Run {
    /// What happened. Every payload in it is inline.
    pub state: RunState,
    /// How much it may do.
    pub limits: Limits,
    /// The epoch of the owner that performs it; recorded with every try.
    pub epoch: Option<u64>,
    pub(super) frontier: Frontier,
    /// Steps without an intent that are being computed, with their settings once these are
    /// known.
    computing: BTreeMap<StepInstanceKey, Option<Value>>,
    /// Whether nothing is begun because whoever performs it is about to end. Not recorded.
    held: bool,
}

/// What follows from a command.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// What is to be recorded, together.
    pub events: Vec<NewEvent>,
    /// What is owed as soon as it is recorded.
    pub effects: Vec<Effect>,
}

impl Run {
    /// A run as its events left it. A [`Command::Recover`] makes it go on.
    #[must_use]
    pub fn new(state: RunState, limits: Limits) -> Self {
        let (frontier, computing) = (Frontier::default(), BTreeMap::new());
        Self { state, limits, epoch: None, frontier, computing, held: false }
    }

    /// Begins nothing from now on. What is under way may end, and whoever recovers the run
    /// goes on from there.
    pub const fn hold(&mut self) {
        self.held = true;
    }

    /// Says what a command means, and takes it in.
    pub fn decide(
        &mut self,
        graph: &Graph,
        command: Command,
        at: &mut Moment<'_>,
    ) -> Result<Decision, Rejection> {
        if self.state.end.is_some() {
            return Err(Rejection::Ended);
        }
        let mut deciding = Deciding::new(graph, self, at);
        deciding.take(command)?;
        deciding.go_on();
        Ok(deciding.decision)
    }

    /// What a run comes to by what is recorded of it, when nothing more is begun.
    pub(super) fn walked(graph: &Graph, state: RunState) -> BTreeSet<StepInstanceKey> {
        let mut run = Self::new(state, Limits::default());
        run.hold();
        let mut at = Moment { now_ms: 0, random: &mut || 0 };
        let mut deciding = Deciding::new(graph, &mut run, &mut at);
        deciding.walked = Some(BTreeSet::new());
        deciding.recover();
        deciding.go_on();
        deciding.walked.unwrap_or_default()
    }

    /// What a worker is to evaluate: the text, and what it can look at.
    #[must_use]
    pub fn question<'g>(
        &self,
        graph: &'g Graph,
        instance: &StepInstanceKey,
        ask: Ask,
        secrets: &dyn Secrets,
    ) -> Option<(&'g Prepared, serde_json::Map<String, Value>)> {
        let place = graph.place(graph.find(&instance.step)?)?;
        let prepared = match ask {
            Ask::Condition => place.condition.as_ref()?,
            Ask::Settings | Ask::Again => &place.settings,
        };
        let last = matches!(ask, Ask::Again).then(|| last_turn(&self.state, instance));
        let instance = last.as_ref().unwrap_or(instance);
        Some((prepared, prepared.context(&self.seen(graph, instance, secrets))))
    }

    /// Whether somebody is owed the outcome of a step.
    #[must_use]
    pub fn is_under_way(&self, instance: &StepInstanceKey) -> bool {
        let running = |step: &StepState| step.status == StepStatus::Running;
        let started = self.state.steps.get(instance).is_some_and(running);
        self.state.end.is_none() && (started || self.computing.contains_key(instance))
    }

    /// The settings of a step with everything in them, secrets too.
    pub fn settings(
        &self,
        graph: &Graph,
        instance: &StepInstanceKey,
        secrets: &dyn Secrets,
    ) -> Result<Value, Fault> {
        let place = graph.find(&instance.step).and_then(|place| graph.place(place));
        let Some(place) = place else {
            return Err(Fault::new("STEP_UNKNOWN", format!("the plan has no `{}`", instance.step)));
        };
        if let Some(Some(settings)) = self.computing.get(instance) {
            return Ok(settings.clone());
        }
        evaluate(&place.settings, &self.seen(graph, instance, secrets))
    }

    pub(super) fn seen<'a>(
        &'a self,
        graph: &'a Graph,
        instance: &'a StepInstanceKey,
        secrets: &'a dyn Secrets,
    ) -> Seen<'a> {
        // A try that is under way has been counted, and one that a crash cut off is no other.
        let tried = |step: &StepState| {
            let under_way = u32::from(step.status == StepStatus::Running);
            step.attempts.saturating_sub(under_way + step.cut_off)
        };
        let attempt = self.state.steps.get(instance).map_or(0, tried);
        Seen { graph, state: &self.state, path: &instance.loop_path, attempt, secrets }
    }
}

/// What an expression gives, as it is recorded: a case, a condition or a count must not depend
/// on whether it was read back in between.
pub(super) fn evaluate(prepared: &Prepared, seen: &Seen<'_>) -> Result<Value, Fault> {
    let value = prepared.evaluate(seen).map(canonical::recorded);
    value.map_err(|error| Fault::new(error.code(), error.message))
}

/// A decision under way.
pub(super) struct Deciding<'a, 'm> {
    pub(super) graph: &'a Graph,
    pub(super) run: &'a mut Run,
    pub(super) at: &'a mut Moment<'m>,
    pub(super) decision: Decision,
    pub(super) todo: VecDeque<Todo>,
    /// What the run came to, while that is all there is to know.
    pub(super) walked: Option<BTreeSet<StepInstanceKey>>,
}

/// What is still to be decided.
pub(super) enum Todo {
    /// A step is reached.
    Begin(StepInstanceKey),
    /// Something of a level is over; perhaps all of it is.
    Over(Path),
}

/// How a step ended, as its edges see it.
#[derive(Clone, Copy)]
pub(super) enum Fate<'c> {
    Done(Option<&'c str>),
    Failed,
}

impl<'a, 'm> Deciding<'a, 'm> {
    fn new(graph: &'a Graph, run: &'a mut Run, at: &'a mut Moment<'m>) -> Self {
        let (decision, todo) = (Decision::default(), VecDeque::new());
        Self { graph, run, at, decision, todo, walked: None }
    }
}

impl Deciding<'_, '_> {
    fn take(&mut self, command: Command) -> Result<(), Rejection> {
        command.check()?;
        if self.run.state.is_untouched() {
            match &command {
                Command::Resume { .. } | Command::Cancel { .. } | Command::Stopped => {}
                Command::Recover => return Ok(()),
                // It stays as it came until somebody lets it go on.
                _ => return Err(Rejection::OutOfPlace("not been resumed since it was imported")),
            }
        }
        match command {
            Command::Start(started) => {
                if self.run.state.started.is_some() {
                    return Err(Rejection::OutOfPlace("begun already"));
                }
                self.emit(started);
                self.set_limit();
                self.open_level(Vec::new(), None);
            }
            Command::Recover => self.recover(),
            Command::Complete { instance, result, duration_ms } => {
                let computed = self.run.computing.remove(&instance).is_some();
                if !computed && self.status(&instance) != Some(StepStatus::Running) {
                    return Err(Rejection::NotPending(instance));
                }
                match result {
                    Ok(outcome) => self.complete_with(&instance, outcome, duration_ms),
                    Err(fault) => self.failed(&instance, fault, duration_ms),
                }
            }
            Command::Evaluated { instance, ask, result } => {
                if self.run.computing.remove(&instance).is_none() {
                    return Err(Rejection::NotPending(instance));
                }
                // It is evaluated again when the run may go on.
                match self.rests() {
                    true => self.keep_ready(instance),
                    false => self.evaluated(&instance, ask, result.map(canonical::recorded)),
                }
            }
            Command::FireTimer(timer) => self.fire(timer)?,
            Command::Answer { task, by, answer } => self.answer(task, by, answer)?,
            Command::Acknowledge { instance, by, output } => {
                self.acknowledge(&instance, by, output)?;
            }
            Command::ChildStarted { child, session, instance } => {
                self.child_started(child, session, instance)?;
            }
            Command::ChildRefused { instance, fault } => self.child_refused(&instance, fault)?,
            Command::ChildFinished { child, status, output } => {
                self.child_finished(child, status, output)?;
            }
            Command::Resolve { instance, by, decision } => self.resolve(instance, by, decision)?,
            Command::Pause { change, by } => {
                if self.run.state.paused {
                    return Err(Rejection::OutOfPlace("been paused already"));
                }
                let imported = false;
                self.emit(RunPaused { by: by.name, change_id: change, imported, via: by.via });
            }
            Command::Resume { change, by, input } => {
                if !self.run.state.paused {
                    return Err(Rejection::OutOfPlace("not been paused"));
                }
                let decided = super::approvals::decided_elsewhere(self.graph, &self.run.state);
                if !decided.is_empty() {
                    return Err(Rejection::Elsewhere(decided));
                }
                let was_untouched = self.run.state.is_untouched();
                let input = input.filter(|_| was_untouched).map(Payload::inline);
                if was_untouched {
                    super::imported::check(self.graph, &self.run.state, input.as_ref())?;
                }
                self.emit(RunResumed { by: by.name, change_id: change, input, via: by.via });
                if was_untouched {
                    self.set_limit();
                    self.recover();
                }
                self.begin_ready();
            }
            Command::Cancel { by, reason } => self.cancel(by, reason),
            Command::Stopped => {
                if !self.run.state.cancel_requested {
                    return Err(Rejection::OutOfPlace("not been cancelled"));
                }
                self.end_with(RunCancelled {});
            }
        }
        Ok(())
    }

    fn cancel(&mut self, by: By, reason: String) {
        if !self.run.state.cancel_requested {
            self.emit(RunCancelRequested { by: by.name, reason, via: by.via });
        }
        let busy = self.run.state.steps.values().any(|step| step.status == StepStatus::Running);
        if busy || !self.run.computing.is_empty() {
            self.decision.effects.push(Effect::CallOff);
        } else {
            self.end_with(RunCancelled {});
        }
    }

    fn go_on(&mut self) {
        while let Some(todo) = self.todo.pop_front() {
            if self.run.state.end.is_some() {
                return;
            }
            match todo {
                Todo::Begin(instance) => self.begin(&instance),
                Todo::Over(path) => self.over(&path),
            }
        }
    }

    /// Whether no step may be begun.
    pub(super) const fn rests(&self) -> bool {
        self.run.held || self.run.state.paused || self.run.state.cancel_requested
    }

    /// Puts a step aside until the run may go on.
    pub(super) fn keep_ready(&mut self, instance: StepInstanceKey) {
        self.run.frontier.ready.insert(instance);
    }

    fn begin_ready(&mut self) {
        if self.rests() {
            return;
        }
        let ready = std::mem::take(&mut self.run.frontier.ready);
        self.todo.extend(ready.into_iter().map(Todo::Begin));
    }

    /// Begins a level: the run itself, or a turn of a loop.
    pub(super) fn open_level(&mut self, path: Path, around: Option<usize>) {
        let entries: Vec<usize> = match around {
            None => {
                let queued = self.run.state.queued.as_ref();
                self.graph.entries(queued.and_then(|queued| queued.trigger_id.as_ref()))
            }
            Some(looped) => self.graph.first_of_turn(looped),
        };
        let level = Level::new(self.graph, around);
        self.run.frontier.levels.insert(path.clone(), level);
        for place in entries {
            self.reach(place, &path);
        }
        let dead = self.run.frontier.levels.get(&path).map(Level::untouched);
        for place in dead.unwrap_or_default() {
            self.pass(place, &path);
        }
        self.todo.push_back(Todo::Over(path));
    }

    pub(super) fn close_level(&mut self, path: &[crate::instance::LoopTurn]) {
        self.run.frontier.levels.remove(path);
    }

    fn reach(&mut self, place: usize, path: &Path) {
        let graph = self.graph;
        let level = self.run.frontier.levels.get_mut(path);
        if !level.is_some_and(|level| level.reach(graph, place)) {
            return;
        }
        match graph.cycle(place) {
            Some(cycle) => self.enter_cycle(place, cycle, path),
            None => self.come_to(place, path, 0),
        }
    }

    /// Comes to a step, on a visit.
    pub(super) fn come_to(&mut self, place: usize, path: &Path, visit: u32) {
        let Some(found) = self.graph.place(place) else { return };
        let instance = StepInstanceKey { loop_path: path.clone(), step: found.id.clone(), visit };
        // What is recorded is so, whether the run rests or not.
        if self.rests() && !self.is_recorded(&instance) {
            self.keep_ready(instance);
        } else {
            self.todo.push_back(Todo::Begin(instance));
        }
    }

    fn is_recorded(&self, instance: &StepInstanceKey) -> bool {
        let state = &self.run.state;
        state.steps.contains_key(instance) || state.loops.contains_key(instance)
    }

    /// Nothing leads to a place any more, and so nothing leads on from it.
    fn pass(&mut self, place: usize, path: &Path) {
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            for to in self.graph.ways_out(place) {
                match self.edge(to, path, false) {
                    Now::Dead => open.push(to),
                    Now::Reached => self.reach(to, path),
                    Now::Waits => {}
                }
            }
        }
    }

    fn edge(&mut self, to: usize, path: &Path, taken: bool) -> Now {
        let level = self.run.frontier.levels.get_mut(path);
        level.map_or(Now::Waits, |level| level.settle(self.graph, to, taken))
    }

    /// A step is over: its edges are settled.
    pub(super) fn settle(&mut self, instance: &StepInstanceKey, fate: Fate<'_>) {
        let path = &instance.loop_path;
        let Some(at) = self.graph.find(&instance.step) else { return };
        let Some(place) = self.graph.place(at) else { return };
        if let Some(cycle) = self.graph.cycle(at) {
            let stays = |out: &&Out| cycle.contains(&out.to) && is_taken(place, out, fate);
            if let Some(next) = place.outs.iter().find(stays) {
                return self.visit(next.to, path);
            }
        }
        // A cycle is over with its token: all its ways out are settled, and one step's can be
        // taken.
        for (from, out) in self.graph.outs(at) {
            let taken = from == at && is_taken(place, out, fate);
            match self.edge(out.to, path, taken) {
                Now::Reached => self.reach(out.to, path),
                Now::Dead => self.pass(out.to, path),
                Now::Waits => {}
            }
        }
        if let Some(level) = self.run.frontier.levels.get_mut(path) {
            level.active = level.active.saturating_sub(1);
        }
        self.todo.push_back(Todo::Over(path.clone()));
    }

    /// Whether nothing of a level is under way any more.
    pub(super) fn is_over(&self, path: &Path) -> bool {
        self.run.frontier.levels.get(path).is_some_and(|level| level.active == 0)
    }

    pub(super) fn status(&self, instance: &StepInstanceKey) -> Option<StepStatus> {
        self.run.state.steps.get(instance).map(|step| step.status)
    }

    pub(super) fn attempts(&self, instance: &StepInstanceKey) -> u32 {
        self.run.state.steps.get(instance).map_or(0, |step| step.attempts)
    }

    pub(super) fn value(
        &self,
        prepared: &Prepared,
        instance: &StepInstanceKey,
    ) -> Result<Value, Fault> {
        evaluate(prepared, &self.run.seen(self.graph, instance, &Hidden))
    }

    /// Leaves something to a worker.
    pub(super) fn ask(&mut self, instance: &StepInstanceKey, ask: Ask) {
        self.run.computing.insert(instance.clone(), None);
        self.decision.effects.push(Effect::Evaluate { instance: instance.clone(), ask });
    }

    /// Leaves a step without an intent to whoever performs it.
    pub(super) fn compute(&mut self, instance: &StepInstanceKey, settings: Value) {
        self.run.computing.insert(instance.clone(), Some(settings));
    }

    pub(super) const fn run_id(&self) -> RunId {
        self.run.state.run_id
    }

    /// The id of something that is named after the run and a part of it.
    pub(super) fn named<T>(&self, derive: fn(&[&str]) -> T, parts: &[&str]) -> T {
        let run = self.run_id().to_string();
        let rebegun = self.run.state.rebegun.map(|change| change.to_string());
        let mut named = vec![run.as_str()];
        named.extend(parts);
        named.extend(rebegun.as_deref());
        derive(&named)
    }

    /// Records something about the run.
    pub(super) fn emit(&mut self, data: impl Into<EventData>) {
        let (scope, data) = (Scope::Run(self.run_id()), data.into());
        self.run.state.take(&data);
        self.decision.events.push(NewEvent { id: self.at.event_id(), scope, data });
    }

    pub(super) fn emit_timer(&mut self, timer: TimerSet) {
        let (id, due_ms) = (timer.timer_id, timer.due_ms);
        self.emit(timer);
        self.decision.effects.push(Effect::Timer { timer: id, due_ms });
    }
}

/// Whether an edge is taken.
pub(super) fn is_taken(place: &Place, out: &Out, fate: Fate<'_>) -> bool {
    let named =
        |case: &&str| place.outs.iter().any(|out| matches!(&out.when, When::Case(c) if c == case));
    let outcome = match fate {
        Fate::Failed => OutcomeOf::Failed,
        Fate::Done(case) => case.filter(named).map_or(OutcomeOf::Other, OutcomeOf::Case),
    };
    cycle::is_taken(out.when.taken_on(), outcome)
}
