//! Steps that wait: for a time, a person, an agent or another run.

use serde_json::{Value, json};

use super::command::{Answer, Ask, Effect, Fault, Rejection, Verdict, inline};
use super::decide::Deciding;
use super::graph::{Does, Place};
use super::scope::value;
use super::settings::{Child, Question};
use crate::event::By;
use crate::event::engine::{
    ChildFinished, ChildStarted, EndStatus, StepWaiting, TaskAnswered, TaskOpened, TimerCancelled,
    TimerPurpose, TimerSet, WaitingFor,
};
use crate::id::{RunId, SessionId, TaskId};
use crate::instance::StepInstanceKey;
use crate::projection::run::StepStatus;
use crate::{schema, time};

impl Deciding<'_, '_> {
    fn waits(&mut self, instance: &StepInstanceKey, waiting_for: WaitingFor) {
        let attempt = self.attempts(instance);
        self.emit(StepWaiting { attempt, instance: instance.clone(), waiting_for });
    }

    /// `wait`: for a time, or until one.
    pub(super) fn wait(&mut self, instance: &StepInstanceKey, settings: &Value) {
        let due_ms = match (settings.get("duration_sec"), settings.get("until")) {
            (Some(seconds), _) => {
                let ms = seconds.as_u64().and_then(|seconds| seconds.checked_mul(1_000));
                ms.map(|ms| self.at.now_ms.saturating_add(ms))
            }
            (None, Some(Value::String(text))) => time::parse(text),
            (None, Some(ms)) => ms.as_u64(),
            (None, None) => None,
        };
        let Some(due_ms) = due_ms else {
            let message = "it has neither `duration_sec` nor an instant such as \
                           2026-03-01T08:00:00Z in `until`";
            return self.failed(instance, Fault::new("WAIT_INSTANT", message), 0);
        };
        self.waits(instance, WaitingFor::Timer);
        let timer_id = self.timer_id(instance, "wait");
        let (instance, purpose) = (Some(instance.clone()), TimerPurpose::Wait);
        self.emit_timer(TimerSet { due_ms, instance, purpose, timer_id });
    }

    pub(super) fn wait_is_over(&mut self, instance: &StepInstanceKey, due_ms: u64) {
        self.complete(instance, json!({"until": time::show(due_ms)}), None, 0);
    }

    /// `human`: a question to a person.
    pub(super) fn open_task(&mut self, instance: &StepInstanceKey, settings: Value) {
        let task_id = self.task_id(instance);
        let expires_ms = match Question::read(&settings) {
            Ok(question) => question.expires_ms,
            Err(fault) => return self.failed(instance, fault, 0),
        };
        self.emit(TaskOpened { instance: instance.clone(), request: inline(settings), task_id });
        self.waits(instance, WaitingFor::Person);
        if let Some(ms) = expires_ms {
            let timer_id = self.timer_id(instance, "task");
            let due_ms = self.at.now_ms.saturating_add(ms);
            let (instance, purpose) = (Some(instance.clone()), TimerPurpose::TaskTimeout);
            self.emit_timer(TimerSet { due_ms, instance, purpose, timer_id });
        }
        self.decision.effects.push(Effect::Task(task_id));
    }

    fn task_id(&self, instance: &StepInstanceKey) -> TaskId {
        self.named(TaskId::derive, &[&instance.to_string()])
    }

    /// A person answered.
    pub(super) fn answer(
        &mut self,
        task_id: TaskId,
        by: By,
        answer: Answer,
    ) -> Result<(), Rejection> {
        let task = self.run.state.tasks.get(&task_id);
        if let Some(task) = task.filter(|task| self.waits_for(&task.instance, WaitingFor::Caller)) {
            return Err(Rejection::ForAgent(task.instance.clone()));
        }
        let task = task.filter(|task| self.waits_for(&task.instance, WaitingFor::Person));
        let task = task.ok_or(Rejection::NoTask(task_id))?;
        let (instance, request) = (task.instance.clone(), value(&task.request).cloned());
        let request = request.unwrap_or_default();
        // A question that was opened before it was held to this is for nobody.
        let question = Question::read(&request).map_err(|_| Rejection::NotAsked(Vec::new()))?;
        if let Some(who) = question.who.filter(|who| !who.contains(&by.name)) {
            return Err(Rejection::NotAsked(who));
        }
        if let (Some(form), Verdict::Approved) = (question.form, answer.verdict) {
            let faults = schema::faults(form, &answer.values, "the answer");
            if !faults.is_empty() {
                return Err(Rejection::Unfit(faults));
            }
        }
        self.answered(task_id, &instance, by, &answer);
        Ok(())
    }

    fn waits_for(&self, instance: &StepInstanceKey, what: WaitingFor) -> bool {
        let step = self.run.state.steps.get(instance);
        step.is_some_and(|step| step.waiting_for == Some(what))
    }

    fn answered(&mut self, task_id: TaskId, key: &StepInstanceKey, by: By, answer: &Answer) {
        let case = answer.verdict.case();
        let recorded = inline(json!({"values": answer.values, "verdict": case}));
        let at = time::show(self.at.now_ms);
        let output = json!({"answer": answer.values, "at": at, "by": by.name, "verdict": case});
        self.emit(TaskAnswered { answer: recorded, by: by.name, task_id, via: by.via });
        self.cancel_timer(key, "task");
        self.complete(key, output, Some(case.to_owned()), 0);
    }

    fn cancel_timer(&mut self, instance: &StepInstanceKey, purpose: &str) {
        let timer_id = self.timer_id(instance, purpose);
        if self.run.state.timers.contains_key(&timer_id) {
            self.emit(TimerCancelled { timer_id });
        }
    }

    /// Nobody answered in time.
    pub(super) fn task_expired(&mut self, instance: &StepInstanceKey) {
        let task_id = self.task_id(instance);
        let Some(task) = self.run.state.tasks.get(&task_id) else { return };
        let request = value(&task.request).cloned().unwrap_or_default();
        let Some(verdict) = Question::read(&request).ok().and_then(|asked| asked.on_expire) else {
            let message = "nobody answered in time";
            return self.failed(instance, Fault::new("TASK_EXPIRED", message), 0);
        };
        let answer = Answer { verdict, values: Value::Null };
        self.answered(task_id, instance, "nobody".into(), &answer);
    }

    /// `guide`: the step is handed to the agent that holds the run.
    pub(super) fn hand_over(&mut self, instance: &StepInstanceKey, settings: Value) {
        let task_id = self.task_id(instance);
        self.emit(TaskOpened { instance: instance.clone(), request: inline(settings), task_id });
        self.waits(instance, WaitingFor::Caller);
        self.decision.effects.push(Effect::Task(task_id));
    }

    /// An agent did what was handed to it.
    pub(super) fn acknowledge(
        &mut self,
        instance: &StepInstanceKey,
        by: By,
        output: Value,
    ) -> Result<(), Rejection> {
        let task_id = self.task_id(instance);
        let waits = self.waits_for(instance, WaitingFor::Caller);
        let Some(task) = self.run.state.tasks.get(&task_id).filter(|_| waits) else {
            return Err(Rejection::NotPending(instance.clone()));
        };
        let contract = value(&task.request).and_then(|request| request.get("output_contract"));
        let faults = contract.map(|contract| schema::faults(contract, &output, "the output"));
        let faults = faults.unwrap_or_default();
        if !faults.is_empty() {
            return Err(Rejection::Unfit(faults));
        }
        let answer = inline(output.clone());
        self.emit(TaskAnswered { answer, by: by.name, task_id, via: by.via });
        self.complete(instance, output, None, 0);
        Ok(())
    }

    /// `workflow`: another run, which this one waits for.
    pub(super) fn start_child(&mut self, instance: &StepInstanceKey, settings: &Value) {
        let depth = self.run.state.depth();
        if depth >= self.run.limits.depth_max {
            let message = format!("{depth} runs stand above this one, which is the limit");
            return self.failed(instance, Fault::new("MAX_DEPTH", message), 0);
        }
        let asked = match Child::read(settings) {
            Ok(asked) => asked,
            Err(fault) => return self.failed(instance, fault, 0),
        };
        if !self.waits_for(instance, WaitingFor::Child) {
            self.waits(instance, WaitingFor::Child);
        }
        self.owe_child(instance, asked);
    }

    fn owe_child(&mut self, instance: &StepInstanceKey, asked: Child) {
        let child = self.named(RunId::derive, &[&instance.to_string()]);
        let Child { workflow, input } = asked;
        let instance = instance.clone();
        self.decision.effects.push(Effect::Child { instance, child, workflow, input });
    }

    pub(super) fn child_started(
        &mut self,
        child: RunId,
        session: SessionId,
        instance: StepInstanceKey,
    ) -> Result<(), Rejection> {
        if self.status(&instance) != Some(StepStatus::Waiting) {
            return Err(Rejection::NotPending(instance));
        }
        // After a crash it is asked for again, and is known already.
        if self.run.state.children.contains_key(&child) {
            return Ok(());
        }
        self.emit(ChildStarted { child_run_id: child, child_session_id: session, instance });
        Ok(())
    }

    pub(super) fn child_refused(
        &mut self,
        instance: &StepInstanceKey,
        fault: Fault,
    ) -> Result<(), Rejection> {
        let begun = self.run.state.children.values().any(|child| child.instance == *instance);
        if begun || !self.waits_for(instance, WaitingFor::Child) {
            return Err(Rejection::NotPending(instance.clone()));
        }
        self.failed(instance, fault, 0);
        Ok(())
    }

    pub(super) fn child_finished(
        &mut self,
        child: RunId,
        status: EndStatus,
        output: Value,
    ) -> Result<(), Rejection> {
        let Some(known) = self.run.state.children.get(&child) else {
            return Err(Rejection::OutOfPlace("no such child"));
        };
        let instance = known.instance.clone();
        let payload = inline(output.clone());
        let told = ChildFinished {
            child_run_id: child,
            instance: instance.clone(),
            output: payload,
            status,
        };
        self.emit(told);
        let (ended, fault) = match status {
            EndStatus::Succeeded => ("succeeded", None),
            EndStatus::Failed => ("failed", Some(Fault::new("CHILD_FAILED", said(&output)))),
            EndStatus::Cancelled => {
                ("cancelled", Some(Fault::new("CHILD_CANCELLED", "the child run was cancelled")))
            }
        };
        match fault {
            Some(fault) => self.failed(&instance, fault, 0),
            None => {
                let output =
                    json!({"run_id": child.to_string(), "status": ended, "result": output});
                self.complete(&instance, output, None, 0);
            }
        }
        Ok(())
    }

    /// What a step that waits is owed after whoever performed the run is gone.
    pub(super) fn wait_again(&mut self, instance: &StepInstanceKey, place: &Place) {
        if place.does != Does::Child {
            return;
        }
        if place.settings.needs_worker() {
            return self.ask(instance, Ask::Settings);
        }
        match self.value(&place.settings, instance).and_then(|settings| Child::read(&settings)) {
            Ok(asked) => self.owe_child(instance, asked),
            Err(fault) => self.failed(instance, fault, 0),
        }
    }
}

fn said(value: &Value) -> String {
    let message = value.get("message").unwrap_or(value);
    message.as_str().map_or_else(|| message.to_string(), str::to_owned)
}
