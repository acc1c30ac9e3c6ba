//! How each event changes a run.

use serde_json::json;

use super::{Child, End, Loop, RunState, StepState, StepStatus, Task, Timer};
use crate::event::engine::{
    AfterFailure, EarlierValue, InterruptDecision, Payload, RunResumed, StepCompleted, StepFailed,
    StepInput, StepStarted,
};
use crate::event::{Event, EventData};
use crate::instance::{LoopTurn, StepInstanceKey};

impl RunState {
    /// Takes one event in. There is no way to refuse it: recorded is recorded.
    pub fn apply(&mut self, event: &Event) {
        if event.scope.run() == Some(self.run_id) {
            self.take(&event.data);
        }
    }

    /// Takes in what happened to this run.
    pub(crate) fn take(&mut self, data: &EventData) {
        // A snapshot is taken beside the run, which knows nothing of it.
        if !matches!(data, EventData::SnapshotTaken(_)) {
            self.events = self.events.saturating_add(1);
        }
        // An end is final: what somebody recorded after it begins nothing again.
        if self.end.is_some() && !matches!(data, EventData::RunRetired(_)) {
            return;
        }
        match data {
            EventData::RunQueued(queued) => self.queued = Some(queued.clone()),
            EventData::RunStarted(started) => self.started = Some(started.clone()),
            EventData::StepStarted(step) => self.step_started(step),
            EventData::StepCompleted(step) => self.step_completed(step),
            EventData::StepFailed(step) => self.step_failed(step),
            EventData::StepSkipped(step) => {
                self.step(&step.instance).settle(StepStatus::Skipped);
                self.forget_earlier(&step.instance);
            }
            EventData::StepWaiting(step) => {
                let state = self.step(&step.instance);
                state.attempts = state.attempts.max(step.attempt);
                state.status = StepStatus::Waiting;
                state.waiting_for = Some(step.waiting_for);
            }
            EventData::StepInterrupted(step) => {
                let state = self.step(&step.instance);
                state.tried(step.attempt);
                state.settle(StepStatus::Unknown);
            }
            EventData::StepResolved(step) => {
                self.step(&step.instance).tried(step.attempt);
                self.step(&step.instance).resolve(step.decision);
                self.forget_earlier(&step.instance);
            }
            EventData::LoopEntered(entered) => {
                self.turn_to(&entered.instance.loop_path);
                self.revisits |= entered.instance.visit > 0;
                let items = entered.items.clone();
                let begun = Loop { items, iteration: 0, last: None, results: Vec::new() };
                self.loops.insert(entered.instance.clone(), begun);
            }
            EventData::LoopExited(exited) => self.loop_exited(&exited.instance, exited.iterations),
            EventData::TimerSet(set) => {
                let instance = set.instance.clone();
                let timer = Timer { due_ms: set.due_ms, instance, purpose: set.purpose };
                self.timers.insert(set.timer_id, timer);
            }
            EventData::TimerFired(timer) => drop(self.timers.remove(&timer.timer_id)),
            EventData::TimerCancelled(timer) => drop(self.timers.remove(&timer.timer_id)),
            EventData::TaskOpened(task) => {
                let opened =
                    Task { instance: task.instance.clone(), request: task.request.clone() };
                self.tasks.insert(task.task_id, opened);
                self.step(&task.instance).shown = task.request.digest();
            }
            EventData::TaskAnswered(task) => drop(self.tasks.remove(&task.task_id)),
            EventData::ChildStarted(child) => {
                let (instance, session_id) = (child.instance.clone(), child.child_session_id);
                self.children.insert(child.child_run_id, Child { instance, session_id });
            }
            EventData::ChildFinished(child) => drop(self.children.remove(&child.child_run_id)),
            EventData::RunPaused(paused) => {
                self.paused = true;
                if paused.imported {
                    (self.imported, self.rebegun) = (true, Some(paused.change_id));
                    self.from_elsewhere();
                }
            }
            EventData::RunResumed(resumed) => {
                (self.paused, self.imported) = (false, false);
                self.elsewhere.clear();
                self.given_here(resumed);
            }
            EventData::RunCancelRequested(_) => self.cancel_requested = true,
            EventData::RunCompleted(run) => {
                self.finish(End::Succeeded { result: run.result.clone() });
            }
            EventData::RunFailed(run) => {
                let (error, instance) = (run.error.clone(), run.instance.clone());
                self.finish(End::Failed { error, instance });
            }
            EventData::RunCancelled(_) => self.finish(End::Cancelled {}),
            EventData::RunRetired(_) => self.retired = true,
            // The rest is about the session, about guided runs, or only says where to read from.
            _ => {}
        }
    }

    /// A run that came from elsewhere goes on as one of whoever resumed it, with what it is given
    /// here.
    fn given_here(&mut self, resumed: &RunResumed) {
        let (Some(input), Some(queued)) = (&resumed.input, &mut self.queued) else { return };
        queued.input.clone_from(input);
        queued.by = Some(resumed.by.clone());
        queued.via.clone_from(&resumed.via);
        queued.parent = None;
    }

    fn step_started(&mut self, step: &StepStarted) {
        let state = self.step(&step.instance);
        state.tried(step.attempt);
        state.settle(StepStatus::Running);
        match &step.input {
            StepInput::Given(input) => state.input = Some(input.clone()),
            // What an earlier try was given is kept until the step ends.
            StepInput::Earlier { earlier: EarlierValue::Attempt(_) } => {}
            StepInput::Earlier { earlier: EarlierValue::Output(other) } => {
                let output = self.steps.get(other).and_then(|other| other.output.clone());
                self.step(&step.instance).input = output;
            }
        }
    }

    fn step_completed(&mut self, step: &StepCompleted) {
        let node = Some(step.instance.node(self.run_id));
        self.last_node_id = node;
        let state = self.step(&step.instance);
        state.tried(step.attempt);
        state.settle(StepStatus::Succeeded);
        state.case.clone_from(&step.case);
        state.error = None;
        state.node_id = node;
        state.output = Some(step.output.clone());
        self.forget_earlier(&step.instance);
        self.ended(&step.instance, &step.output);
    }

    /// Keeps the last visit of a step that is over, and none before it.
    fn forget_earlier(&mut self, instance: &StepInstanceKey) {
        let is_over = |step: &StepState| step.status.is_final();
        if instance.visit == 0 || !self.steps.get(instance).is_some_and(is_over) {
            return;
        }
        let first = StepInstanceKey { visit: 0, ..instance.clone() };
        let earlier = self.steps.range(&first..instance).map(|(key, _)| key.clone());
        // What may be the run's result stays until another step is done.
        let earlier = earlier.filter(|key| self.ended_by.as_ref() != Some(key));
        for key in earlier.collect::<Vec<_>>() {
            self.steps.remove(&key);
        }
    }

    /// Notes what may be the result of a turn, or of the run.
    fn ended(&mut self, instance: &StepInstanceKey, output: &Payload) {
        let Some((turn, outer)) = instance.loop_path.split_last() else {
            self.ended_by = Some(instance.clone());
            return;
        };
        if let Some(looped) = self.loops.get_mut(&turn.of(outer)) {
            looped.last = Some(output.clone());
        }
    }

    fn step_failed(&mut self, step: &StepFailed) {
        let state = self.step(&step.instance);
        state.tried(step.attempt);
        state.settle(match step.then {
            AfterFailure::Retry => StepStatus::Pending,
            AfterFailure::Stop | AfterFailure::Fallback => StepStatus::Failed,
            AfterFailure::Skip => StepStatus::Skipped,
        });
        state.error = Some(step.error.clone());
        // Those who come after the failure, or are told of it, can look at what came out.
        if step.then != AfterFailure::Retry {
            state.output.clone_from(&step.output);
        }
        self.forget_earlier(&step.instance);
        // Nobody waits for an answer any more.
        self.tasks.retain(|_, task| task.instance != step.instance);
    }

    /// Lets everything inside the loop leave and puts the loop itself in its place.
    fn loop_exited(&mut self, instance: &StepInstanceKey, iterations: u32) {
        let depth = instance.loop_path.len();
        let inside = |key: &StepInstanceKey| {
            let turn = key.loop_path.get(depth);
            turn.is_some_and(|turn| {
                turn.of(key.loop_path.get(..depth).unwrap_or_default()) == *instance
            })
        };
        self.steps.retain(|key, _| !inside(key));
        let mut results = self.loops.get_mut(instance).map(Loop::results).unwrap_or_default();
        results.truncate(usize::try_from(iterations).unwrap_or(usize::MAX));
        self.loops.retain(|key, _| key != instance && !inside(key));
        let output = Payload::inline(json!({"iterations": iterations, "results": results}));
        let state = self.step(instance);
        state.settle(StepStatus::Succeeded);
        state.iterations = Some(iterations);
        state.output = Some(output.clone());
        self.forget_earlier(instance);
        self.ended(instance, &output);
    }

    /// Notices that a loop around a step is in a later turn: the turns before are over.
    fn turn_to(&mut self, path: &[LoopTurn]) {
        for (depth, turn) in path.iter().enumerate() {
            let outer = path.get(..depth).unwrap_or_default();
            let Some(state) = self.loops.get_mut(&turn.of(outer)) else {
                continue;
            };
            if state.iteration >= turn.iteration {
                continue;
            }
            let last = state.last.take();
            state.results.push(last.unwrap_or_else(nothing));
            state.iteration = turn.iteration;
            let over = |key: &StepInstanceKey| {
                key.loop_path.starts_with(outer)
                    && key.loop_path.get(depth).is_some_and(|earlier| {
                        earlier.is_beside(turn) && earlier.iteration < turn.iteration
                    })
            };
            self.steps.retain(|key, _| !over(key));
            self.loops.retain(|key, _| !over(key));
        }
    }

    /// Ends the run, once: what was under way is not any more.
    fn finish(&mut self, end: End) {
        self.children.clear();
        self.tasks.clear();
        self.timers.clear();
        for step in self.steps.values_mut().filter(|step| !step.status.is_final()) {
            step.settle(StepStatus::Cancelled);
        }
        // A loop is over as a step is. What it came to stays, since a fork goes on from there.
        for (key, looped) in &self.loops {
            let state = self.steps.entry(key.clone()).or_insert_with(StepState::reached);
            state.settle(StepStatus::Cancelled);
            state.iterations = Some(looped.iteration);
        }
        self.end.get_or_insert(end);
    }

    /// Notes that a step is reached, and nothing else of it.
    pub fn reach(&mut self, instance: &StepInstanceKey) {
        self.step(instance);
    }

    fn step(&mut self, instance: &StepInstanceKey) -> &mut StepState {
        self.turn_to(&instance.loop_path);
        self.revisits |= instance.visit > 0;
        let (reached, revisits) = (&mut self.reached, self.revisits);
        self.steps.entry(instance.clone()).or_insert_with(|| {
            *reached = reached.saturating_add(1);
            let order = if revisits { *reached } else { 0 };
            StepState { order, ..StepState::reached() }
        })
    }
}

impl StepState {
    const fn reached() -> Self {
        Self {
            attempts: 0,
            case: None,
            cut_off: 0,
            error: None,
            input: None,
            iterations: None,
            node_id: None,
            order: 0,
            output: None,
            shown: None,
            status: StepStatus::Pending,
            waiting_for: None,
        }
    }

    fn tried(&mut self, attempt: u32) {
        self.attempts = self.attempts.max(attempt.saturating_add(1));
    }

    /// Forgets what was under way elsewhere. It counts as one more try that was cut off, so that
    /// whatever is recorded from now on has a name of its own.
    pub(super) fn leave_elsewhere(&mut self) {
        self.input = None;
        if self.status == StepStatus::Waiting {
            self.settle(StepStatus::Pending);
        }
        self.attempts = self.attempts.saturating_add(1);
        self.cut_off = self.cut_off.saturating_add(1).min(self.attempts);
    }

    fn resolve(&mut self, decision: InterruptDecision) {
        self.settle(StepStatus::after(decision));
        self.cut_off += u32::from(decision == InterruptDecision::Retry);
    }

    /// Moves to a status that waits for nothing; an ended step needs no input any more.
    fn settle(&mut self, status: StepStatus) {
        self.status = status;
        self.waiting_for = None;
        if status.is_final() {
            self.input = None;
        }
    }
}

impl Loop {
    /// What came of its turns, the last among them.
    fn results(&mut self) -> Vec<serde_json::Value> {
        let mut results = std::mem::take(&mut self.results);
        results.push(self.last.take().unwrap_or_else(nothing));
        let value = |payload: Payload| match payload {
            Payload::Inline(value) => value.0,
            Payload::Blob(blob) => json!({"blob": blob}),
        };
        results.into_iter().map(value).collect()
    }
}

/// What comes of a turn in which no step was done.
fn nothing() -> Payload {
    Payload::inline(serde_json::Value::Null)
}
