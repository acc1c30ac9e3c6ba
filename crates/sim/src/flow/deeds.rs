//! What happens in a world, one thing after another.

use cairn_core::event::engine::{InterruptDecision, Payload, WaitingFor};
use cairn_core::flow::{Answer, Ask, Command, Effect, Fault, Hidden, Rejection, Verdict};
use cairn_core::id::{ChangeId, RunId, SessionId, TaskId, TimerId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::StepStatus;
use serde_json::{Value, json};

use super::Violation;
use super::reference::Cut;
use super::world::{Duty, Reply, World};

/// How much may happen to a run until it must be over.
const DEEDS_MAX: usize = 4_000;
const CHILD_SESSION: SessionId = SessionId::from_bits(3);

impl World {
    /// Lets things happen until the run is over.
    pub(super) fn play(&mut self) -> Result<(), Violation> {
        self.start()?;
        for _ in 0..DEEDS_MAX {
            if self.folded.end.is_some() {
                return self.try_the_end();
            }
            self.now_ms += self.random.next() % 500;
            if self.trouble(self.weather.crash) {
                self.crash()?;
            } else if self.trouble(self.weather.pause) {
                self.pause_or_resume()?;
            } else if self.trouble(self.weather.cancel) {
                let (by, reason) = ("ada".into(), "enough".to_owned());
                self.tell(Command::Cancel { by, reason })?;
            } else if self.trouble(self.weather.stray) {
                self.stray()?;
            } else {
                self.deed()?;
            }
        }
        Err(Violation("the run does not come to its end".to_owned()))
    }

    /// A run that is over takes nothing any more.
    fn try_the_end(&mut self) -> Result<(), Violation> {
        for command in [
            Command::Recover,
            Command::Stopped,
            Command::Pause { change: ChangeId::from_bits(1), by: "ada".into() },
        ] {
            if self.tell(command.clone())? != Reply::Refused(Rejection::Ended) {
                return Err(Violation(format!("{command:?} means something behind the end")));
            }
        }
        Ok(())
    }

    fn pause_or_resume(&mut self) -> Result<(), Violation> {
        let (change, by) =
            (ChangeId::mint(self.now_ms, u128::from(self.random.next())), "ada".into());
        let paused = self.folded.paused;
        let wanted = if paused {
            Command::Resume { change, by, input: None }
        } else {
            Command::Pause { change, by }
        };
        match self.tell(wanted)? {
            Reply::Refused(rejection) => Err(Violation(format!("pausing: {rejection}"))),
            Reply::Taken | Reply::Lost => Ok(()),
        }
    }

    /// Does one of the things that are owed, or lets a person act.
    fn deed(&mut self) -> Result<(), Violation> {
        let tasks: Vec<TaskId> = self.folded.tasks.keys().copied().collect();
        let steps = self.folded.steps.iter();
        let unknown = steps.filter(|(_, step)| step.status == StepStatus::Unknown);
        let unknown: Vec<StepInstanceKey> = unknown.map(|(key, _)| key.clone()).collect();
        let count = self.duties.len() + tasks.len() + unknown.len();
        if count == 0 {
            if self.folded.paused {
                return self.pause_or_resume();
            }
            return Err(Violation("nothing is owed, and the run is not over".to_owned()));
        }
        let place = self.random.below(count);
        if let Some(duty) = self.duties.get(place).cloned() {
            return self.duty(&duty);
        }
        let place = place - self.duties.len();
        match (tasks.get(place), unknown.get(place.saturating_sub(tasks.len()))) {
            (Some(task), _) => self.answer(*task),
            (None, Some(instance)) => self.resolve(instance.clone()),
            (None, None) => Ok(()),
        }
    }

    /// Something was done: it is owed no more.
    fn done(&mut self, duty: &Duty) {
        if let Some(place) = self.duties.iter().position(|other| other == duty) {
            self.duties.remove(place);
        }
    }

    fn duty(&mut self, duty: &Duty) -> Result<(), Violation> {
        let effect = match duty {
            Duty::Child { child, instance, input } => {
                return self.child_ends(duty, *child, instance, input);
            }
            Duty::Effect(effect) => effect,
        };
        match effect {
            Effect::Perform { instance, attempt, .. } => {
                self.perform(duty, effect, instance, *attempt)
            }
            Effect::Evaluate { instance, ask } => self.evaluate(duty, instance, *ask),
            Effect::Timer { timer, due_ms } => self.fire(duty, *timer, *due_ms),
            Effect::Child { instance, child, input, .. } => {
                let (instance, child) = (instance.clone(), *child);
                let told = Command::ChildStarted {
                    child,
                    session: CHILD_SESSION,
                    instance: instance.clone(),
                };
                if self.expect(duty, told)? {
                    self.duties.push(Duty::Child { child, instance, input: input.clone() });
                }
                Ok(())
            }
            Effect::CallOff => {
                let called_off = |duty: &Duty| {
                    matches!(duty, Duty::Effect(Effect::Perform { .. } | Effect::Evaluate { .. }))
                };
                self.duties.retain(|duty| !called_off(duty));
                self.expect(duty, Command::Stopped).map(drop)
            }
            Effect::Respond { .. } | Effect::Task(_) | Effect::End(_) => {
                self.done(duty);
                Ok(())
            }
        }
    }

    /// Says something that the run must take; says whether it is recorded.
    fn expect(&mut self, duty: &Duty, command: Command) -> Result<bool, Violation> {
        match self.tell(command)? {
            Reply::Taken => {
                self.done(duty);
                Ok(true)
            }
            Reply::Lost => Ok(false),
            Reply::Refused(rejection) => Err(Violation(format!("{duty:?}: {rejection}"))),
        }
    }

    fn perform(
        &mut self,
        duty: &Duty,
        effect: &Effect,
        instance: &StepInstanceKey,
        attempt: u32,
    ) -> Result<(), Violation> {
        self.laws.performs(effect)?;
        let is_running =
            self.folded.steps.get(instance).is_some_and(|s| s.status == StepStatus::Running);
        let result = match self.settings(instance)? {
            Ok(settings) => self.chance.perform(instance, attempt, &settings, is_running),
            Err(fault) => Err(fault),
        };
        let instance = instance.clone();
        self.expect(duty, Command::Complete { instance, result, duration_ms: 1 }).map(drop)
    }

    fn evaluate(
        &mut self,
        duty: &Duty,
        instance: &StepInstanceKey,
        ask: Ask,
    ) -> Result<(), Violation> {
        let number = match ask {
            Ask::Again => self.laws.turns(instance),
            Ask::Condition | Ask::Settings => {
                self.folded.steps.get(instance).map_or(0, |step| step.attempts)
            }
        };
        let question = self.run.question(&self.graph, instance, ask, &Hidden);
        let Some((prepared, context)) = question else {
            return Err(Violation(format!("{duty:?} asks nothing")));
        };
        let result = self.chance.evaluate(instance, (ask, number), prepared, &context);
        let instance = instance.clone();
        self.expect(duty, Command::Evaluated { instance, ask, result }).map(drop)
    }

    fn fire(&mut self, duty: &Duty, timer: TimerId, due_ms: u64) -> Result<(), Violation> {
        self.now_ms = self.now_ms.max(due_ms);
        let Some(known) = self.folded.timers.get(&timer).cloned() else {
            self.done(duty);
            return match self.tell(Command::FireTimer(timer))? {
                Reply::Refused(_) => Ok(()),
                other => Err(Violation(format!("{duty:?} is not set and is taken: {other:?}"))),
            };
        };
        let task = known.instance.as_ref().and_then(|key| self.task_of(key));
        if !self.expect(duty, Command::FireTimer(timer))? {
            return Ok(());
        }
        let Some(instance) = known.instance else { return Ok(()) };
        match known.purpose {
            cairn_core::event::engine::TimerPurpose::Wait => {
                self.notes.waits.insert(instance, due_ms);
            }
            cairn_core::event::engine::TimerPurpose::TaskTimeout => {
                let expired = task.and_then(|request| self.expired(&request));
                self.notes.answers.insert(instance, expired);
            }
            _ => {}
        }
        Ok(())
    }

    /// The question that a step asks.
    fn task_of(&self, key: &StepInstanceKey) -> Option<Value> {
        let task = self.folded.tasks.values().find(|task| task.instance == *key)?;
        match &task.request {
            Payload::Inline(request) => Some(request.0.clone()),
            Payload::Blob(_) => None,
        }
    }

    /// What counts as the answer when nobody gave one.
    fn expired(&self, request: &Value) -> Option<(Value, String)> {
        let verdict = match request.get("on_expire").and_then(Value::as_str) {
            Some("approve") => Verdict::Approved,
            Some("reject") => Verdict::Rejected,
            _ => return None,
        };
        Some(self.answered("nobody", &Answer { verdict, values: Value::Null }))
    }

    fn answered(&self, by: &str, answer: &Answer) -> (Value, String) {
        let (case, at) = (answer.verdict.case(), cairn_core::time::show(self.now_ms));
        let output = json!({"answer": answer.values, "at": at, "by": by, "verdict": case});
        (output, case.to_owned())
    }

    fn child_ends(
        &mut self,
        duty: &Duty,
        child: RunId,
        instance: &StepInstanceKey,
        input: &Value,
    ) -> Result<(), Violation> {
        let (status, output) = self.chance.child(instance, input);
        self.expect(duty, Command::ChildFinished { child, status, output }).map(drop)
    }

    fn answer(&mut self, task: TaskId) -> Result<(), Violation> {
        let Some(known) = self.folded.tasks.get(&task) else { return Ok(()) };
        let instance = known.instance.clone();
        let step = self.folded.steps.get(&instance);
        let is_person = step.is_some_and(|step| step.waiting_for == Some(WaitingFor::Person));
        let (command, note) = if is_person {
            let (answer, by) = (self.chance.answer(&instance), "ada".to_owned());
            let note = self.answered(&by, &answer);
            (Command::Answer { task, by: by.into(), answer }, Some(note))
        } else {
            let output = self.chance.guide(&instance);
            let by = "agent".into();
            (Command::Acknowledge { instance: instance.clone(), by, output }, None)
        };
        match self.tell(command)? {
            Reply::Taken => drop(self.notes.answers.insert(instance, note)),
            Reply::Lost => {}
            Reply::Refused(rejection) => {
                return Err(Violation(format!("the open question of {instance}: {rejection}")));
            }
        }
        Ok(())
    }

    fn resolve(&mut self, instance: StepInstanceKey) -> Result<(), Violation> {
        let attempts = self.folded.steps.get(&instance).map_or(0, |step| step.attempts);
        let decision = match self.random.below(8) {
            0..4 => InterruptDecision::Retry,
            4..7 => InterruptDecision::Skip,
            _ => InterruptDecision::Fail,
        };
        let told = Command::Resolve { instance: instance.clone(), by: "ada".into(), decision };
        match self.tell(told)? {
            Reply::Taken => {
                let key = (instance, attempts.saturating_sub(1));
                self.notes.cuts.insert(key, Cut::Resolved(decision));
                Ok(())
            }
            Reply::Lost => Ok(()),
            Reply::Refused(rejection) => {
                Err(Violation(format!("{instance} waits to be resolved: {rejection}")))
            }
        }
    }

    /// Says something that came too late or never was: it must be refused.
    fn stray(&mut self) -> Result<(), Violation> {
        let command = match self.random.below(4) {
            0 => self.stray_answer(),
            1 => self.stray_timer(),
            2 => self.stray_outcome(),
            _ => Some(Command::ChildFinished {
                child: RunId::from_bits(99),
                status: cairn_core::event::engine::EndStatus::Succeeded,
                output: Value::Null,
            }),
        };
        let Some(command) = command else { return self.deed() };
        match self.tell(command.clone())? {
            Reply::Refused(_) => Ok(()),
            reply => Err(Violation(format!("{command:?} is out of place: {reply:?}"))),
        }
    }

    /// An answer to a question that is over, or to one that is not for a person.
    fn stray_answer(&mut self) -> Option<Command> {
        let waits = |task: &TaskId| {
            let task = self.folded.tasks.get(task);
            let step = task.and_then(|task| self.folded.steps.get(&task.instance));
            step.is_some_and(|step| step.waiting_for == Some(WaitingFor::Person))
        };
        let over: Vec<TaskId> = self.tasks.iter().copied().filter(|task| !waits(task)).collect();
        let task = over.get(self.random.below(over.len())).copied()?;
        let answer = Answer { verdict: Verdict::Approved, values: Value::Null };
        Some(Command::Answer { task, by: "late".into(), answer })
    }

    fn stray_timer(&mut self) -> Option<Command> {
        let gone = self.timers.keys().filter(|timer| !self.folded.timers.contains_key(timer));
        let gone: Vec<TimerId> = gone.copied().collect();
        gone.get(self.random.below(gone.len())).copied().map(Command::FireTimer)
    }

    /// An outcome of a step that is not under way.
    fn stray_outcome(&mut self) -> Option<Command> {
        let under_way = |key: &StepInstanceKey| {
            self.duties.iter().any(|duty| match duty {
                Duty::Effect(
                    Effect::Perform { instance, .. } | Effect::Evaluate { instance, .. },
                ) => instance == key,
                _ => false,
            })
        };
        let still: Vec<StepInstanceKey> =
            self.folded.steps.keys().filter(|key| !under_way(key)).cloned().collect();
        let instance = still.get(self.random.below(still.len())).cloned()?;
        let result = Err(Fault::new("LATE", "nobody waits for this"));
        Some(match self.random.below(2) {
            0 => Command::Complete { instance, result, duration_ms: 0 },
            _ => {
                let decision = InterruptDecision::Retry;
                let unknown = self
                    .folded
                    .steps
                    .get(&instance)
                    .is_some_and(|s| s.status == StepStatus::Unknown);
                if unknown {
                    return None;
                }
                Command::Resolve { instance, by: "late".into(), decision }
            }
        })
    }
}
