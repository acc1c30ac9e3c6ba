//! Failures, timers, and the end of a run.

use serde_json::Value;

use super::begin::recordable;
use super::command::{Effect, Fault, Rejection, inline};
use super::decide::{Deciding, Fate};
use super::graph::{Does, Place};
use super::scope::value;
use crate::event::engine::{
    AfterFailure, EndStatus, Failure, InterruptDecision, Payload, RunFailed, StepFailed,
    StepResolved, TimerFired, TimerPurpose, TimerSet,
};
use crate::event::{By, EventData, limits};
use crate::id::TimerId;
use crate::instance::StepInstanceKey;
use crate::plan::{Backoff, FailureKind, OnFailure, RetryPolicy};
use crate::projection::run::{StepState, StepStatus};
use crate::text::truncate;

impl Deciding<'_, '_> {
    /// A try failed: it is made again, passed over, replaced, or ends the run.
    pub(super) fn failed(&mut self, instance: &StepInstanceKey, fault: Fault, duration_ms: u64) {
        let running = self.status(instance) == Some(StepStatus::Running);
        let attempt = self.attempts(instance).saturating_sub(u32::from(running));
        self.failed_at(instance, attempt, fault, duration_ms);
    }

    fn failed_at(
        &mut self,
        instance: &StepInstanceKey,
        attempt: u32,
        fault: Fault,
        duration_ms: u64,
    ) {
        let step = self.graph.find(&instance.step).and_then(|at| self.graph.step(at));
        // A crash is no failure of the step.
        let cut_off = self.run.state.steps.get(instance).map_or(0, |step| step.cut_off);
        let failures = attempt.saturating_sub(cut_off);
        let retry = step.and_then(|step| step.retry.as_ref());
        let retry = retry.filter(|policy| is_retried(policy, failures, fault.kind)).cloned();
        let then = match (&retry, step.map(|step| &step.on_failure)) {
            (Some(_), _) => AfterFailure::Retry,
            (None, Some(OnFailure::Skip {})) => AfterFailure::Skip,
            (None, Some(OnFailure::Fallback { .. })) => AfterFailure::Fallback,
            (None, Some(OnFailure::Stop {}) | None) => AfterFailure::Stop,
        };
        let output = fault.output.clone().filter(|output| recordable("", output).is_ok());
        self.emit(StepFailed {
            attempt,
            duration_ms,
            error: bounded(fault.error.clone()),
            instance: instance.clone(),
            output: output.map(inline),
            then: then.clone(),
            usage: fault.usage.as_deref().cloned(),
        });
        match (then, retry) {
            (AfterFailure::Retry, Some(policy)) => {
                let pause =
                    self.pause_ms(&policy, failures).max(fault.after_ms.unwrap_or_default());
                self.retry(instance, attempt, pause);
            }
            (AfterFailure::Skip, _) => self.settle(instance, Fate::Done(None)),
            (AfterFailure::Fallback, _) => self.settle(instance, Fate::Failed),
            _ => self.fail_run(fault, Some(instance)),
        }
    }

    fn retry(&mut self, instance: &StepInstanceKey, attempt: u32, pause: u64) {
        let due_ms = self.at.now_ms.saturating_add(pause);
        let timer_id = self.timer_id(instance, &format!("retry {attempt}"));
        let instance = Some(instance.clone());
        self.emit_timer(TimerSet { due_ms, instance, purpose: TimerPurpose::Retry, timer_id });
    }

    /// The pause before the next try. With jitter it is between half of it and all.
    fn pause_ms(&mut self, policy: &RetryPolicy, failures: u32) -> u64 {
        let doubled = match policy.backoff {
            Backoff::Fixed => policy.delay_ms,
            Backoff::Exponential => {
                policy.delay_ms.saturating_mul(1_u64.checked_shl(failures).unwrap_or(u64::MAX))
            }
        };
        let pause = doubled.min(policy.delay_max_ms);
        if !policy.jitter {
            return pause;
        }
        let half = pause / 2;
        let chance = u64::try_from((self.at.random)() & u128::from(u64::MAX)).unwrap_or_default();
        half.saturating_add(chance % (pause - half + 1))
    }

    pub(super) fn timer_id(&self, instance: &StepInstanceKey, purpose: &str) -> TimerId {
        self.named(TimerId::derive, &[&instance.to_string(), purpose])
    }

    /// The run fails.
    pub(super) fn fail_run(&mut self, fault: Fault, instance: Option<&StepInstanceKey>) {
        self.end_with(RunFailed { error: bounded(fault.error), instance: instance.cloned() });
    }

    /// The run is over.
    pub(super) fn end_with(&mut self, data: impl Into<EventData>) {
        let data = data.into();
        let status = match &data {
            EventData::RunCompleted(_) => EndStatus::Succeeded,
            EventData::RunFailed(_) => EndStatus::Failed,
            _ => EndStatus::Cancelled,
        };
        self.emit(data);
        // What the same decision began is not owed any more.
        self.decision.effects.retain(|effect| matches!(effect, Effect::Respond { .. }));
        if status != EndStatus::Succeeded {
            self.decision.effects.push(Effect::CallOff);
        }
        self.decision.effects.push(Effect::End(status));
    }

    /// What came of the run: the result of its `end`, else the output of the step that ended it.
    pub(super) fn result(&self) -> Payload {
        let state = &self.run.state;
        let ends = self.graph.level(None).filter_map(|at| self.graph.place(at));
        let ends = ends.filter(|place| place.does == Does::End);
        let given = ends.filter_map(|place| {
            let output = state.last_over(&[], &place.id)?.output.as_ref()?;
            value(output)?.get("result").filter(|result| !result.is_null())
        });
        if let Some(result) = given.last() {
            return inline(result.clone());
        }
        let ends = |key: &StepInstanceKey| {
            let place = self.graph.find(&key.step).and_then(|at| self.graph.place(at));
            place.is_some_and(|place| place.does == Does::End)
        };
        let last = state.ended_by.as_ref().filter(|key| !ends(key));
        let output = |step: &StepState| step.output.clone();
        last.and_then(|key| state.steps.get(key).and_then(output)).unwrap_or(inline(Value::Null))
    }

    /// Sets the timer that ends the run when it takes too long.
    pub(super) fn set_limit(&mut self) {
        let Some(limit) = self.graph.plan.policy.duration_max_ms else { return };
        let timer_id = self.named(TimerId::derive, &["run", "limit"]);
        let due_ms = self.at.now_ms.saturating_add(limit);
        let purpose = TimerPurpose::RunTimeout;
        self.emit_timer(TimerSet { due_ms, instance: None, purpose, timer_id });
    }

    /// A timer's time came.
    pub(super) fn fire(&mut self, timer_id: TimerId) -> Result<(), Rejection> {
        let Some(timer) = self.run.state.timers.get(&timer_id).cloned() else {
            return Err(Rejection::OutOfPlace("no such timer"));
        };
        self.emit(TimerFired { timer_id });
        match (timer.purpose, timer.instance) {
            (TimerPurpose::RunTimeout, _) | (_, None) => {
                let limit = self.graph.plan.policy.duration_max_ms.unwrap_or_default();
                let message = format!("the run took longer than its limit of {limit} ms");
                self.fail_run(Fault::new("RUN_TIMEOUT", message), None);
            }
            (TimerPurpose::Retry, Some(instance)) if self.rests() => self.keep_ready(instance),
            (TimerPurpose::Retry, Some(instance)) => self.begin(&instance),
            (TimerPurpose::Wait, Some(instance)) => self.wait_is_over(&instance, timer.due_ms),
            (TimerPurpose::TaskTimeout, Some(instance)) => self.task_expired(&instance),
            (TimerPurpose::StepTimeout, Some(instance)) => {
                let mut fault = Fault::new("STEP_TIMEOUT", "its time is over");
                fault.kind = FailureKind::Timeout;
                self.failed(&instance, fault, 0);
            }
        }
        Ok(())
    }

    /// Somebody says what became of a step that a crash cut off.
    pub(super) fn resolve(
        &mut self,
        instance: StepInstanceKey,
        by: By,
        decision: InterruptDecision,
    ) -> Result<(), Rejection> {
        let place = self.graph.find(&instance.step).and_then(|at| self.graph.place(at));
        let is_performed = place.is_some_and(Place::is_performed);
        if self.status(&instance) != Some(StepStatus::Unknown) || !is_performed {
            return Err(Rejection::NotPending(instance));
        }
        let attempt = self.attempts(&instance).saturating_sub(1);
        let By { name: by, via } = by;
        let resolved =
            StepResolved { attempt, by: by.clone(), decision, instance: instance.clone(), via };
        self.emit(resolved);
        match decision {
            InterruptDecision::Retry if self.rests() => self.keep_ready(instance),
            InterruptDecision::Retry => self.begin(&instance),
            InterruptDecision::Skip => self.settle(&instance, Fate::Done(None)),
            InterruptDecision::Fail => {
                let message = format!("{by} says that the step failed when it was cut off");
                self.failed_at(&instance, attempt, Fault::new("STEP_INTERRUPTED", message), 0);
            }
        }
        Ok(())
    }
}

/// A failure as it can be recorded.
fn bounded(error: Failure) -> Failure {
    let Failure { code, message } = error;
    let code =
        if code.is_empty() { "STEP_FAILED".to_owned() } else { truncate(&code, limits::NAME) };
    Failure { code, message: truncate(&message, limits::FAILURE_MESSAGE) }
}

/// Whether a step is tried again after a failure that others went before.
fn is_retried(policy: &RetryPolicy, failures: u32, kind: FailureKind) -> bool {
    let wanted = match policy.errors.as_slice() {
        [] => kind != FailureKind::Permanent,
        errors => errors.contains(&kind),
    };
    wanted && failures.saturating_add(1) < policy.attempts_max
}
