//! What is to happen once a decision is durable.

use std::cmp::Reverse;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use cairn_core::digest::Digest;
use cairn_core::event::engine::{EndStatus, ParentStep, Payload};
use cairn_core::flow::{Command, Effect, Hidden};
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::End;
use serde_json::Value;

use super::{Active, Actor, Message, summary};
use crate::catalog::Identity;
use crate::flow::perform::{Settings, Work};
use crate::flow::trace::{TraceParent, Try};
use crate::flow::watch::{Ended, failure};
use crate::flow::{Inner, TriggerEvent};
use crate::host::{BoxFuture, Task};

impl Actor {
    /// Has a step performed. One that comes alone is begun here and now: many are over at once,
    /// and need no task of their own.
    async fn perform(&mut self, inner: &Arc<Inner>, step: Try, key: Digest, is_alone: bool) {
        let (id, instance) = (step.run, step.instance.clone());
        let Some(active) = self.runs.get_mut(&id) else { return };
        // A later decision of the same batch may have ended the run.
        if !active.run.is_under_way(&instance) {
            return;
        }
        let work = Work {
            workflow: Identity::of_run(&active.started),
            session: self.session,
            step,
            key,
            chain: active.run.state.depth(),
            forked_from: active
                .run
                .state
                .queued
                .as_ref()
                .and_then(|queued| queued.forked_from.as_ref().map(|from| from.run_id)),
            ready: Arc::clone(&active.ready),
            settings: settings(active, &instance),
            slots: Arc::clone(&self.desk.slots),
        };
        let (inner, messages) = (Arc::clone(inner), self.messages.clone());
        let mut step: BoxFuture<()> = Box::pin(async move {
            let command = inner.steps.perform(work).await;
            // A lane that is gone is recovered by whoever comes next.
            let _ = messages.send(Message::Tell(id, Box::new(command), None));
        });
        if is_alone && poll_fn(|ctx| Poll::Ready(step.as_mut().poll(ctx).is_ready())).await {
            return;
        }
        active.under_way.insert(instance, self.host.spawn(step));
    }

    /// Lets something happen; a step may be the only one that begins now.
    pub(super) async fn let_happen(
        &mut self,
        inner: &Arc<Inner>,
        id: RunId,
        effect: Effect,
        is_alone: bool,
    ) {
        let Some(active) = self.runs.get_mut(&id) else { return };
        match effect {
            Effect::Perform { instance, attempt, key, .. } => {
                let step = Try { run: id, above: above(active), instance, attempt };
                self.perform(inner, step, key, is_alone).await;
            }
            Effect::Evaluate { instance, ask } => {
                let graph = &active.ready.graph;
                let question = active.run.question(graph, &instance, ask, &Hidden);
                let Some((prepared, context)) = question else { return };
                let (source, is_expression) = (prepared.source().clone(), prepared.is_expression());
                let (inner, messages) = (Arc::clone(inner), self.messages.clone());
                let at = instance.clone();
                let task = self.host.spawn(Box::pin(async move {
                    let result =
                        inner.steps.evaluator.evaluate(&source, is_expression, context).await;
                    let command = Command::Evaluated { instance: at, ask, result };
                    let _ = messages.send(Message::Tell(id, Box::new(command), None));
                }));
                active.under_way.insert(instance, task);
            }
            Effect::Timer { timer, due_ms } => self.timers.push(Reverse((due_ms, id, timer))),
            Effect::Child { instance, child, workflow, input } => {
                let depth = active.run.state.depth() + 1;
                let parent =
                    ParentStep { instance: instance.clone(), run_id: id, session_id: self.session };
                let attempt = active.run.state.steps.get(&instance).map_or(0, |step| step.attempts);
                let step = Try { run: id, above: above(active), instance, attempt };
                let kind = "workflow".to_owned();
                let event = TriggerEvent { payload: input, kind, ..TriggerEvent::default() };
                let event = event.within(Some(step.parent()));
                let (inner, messages) = (Arc::clone(inner), self.messages.clone());
                let asker = Identity::of_run(&active.started);
                self.host.spawn(Box::pin(async move {
                    let ended = inner.watchers.until_end_of_new(child);
                    let named = (&asker, workflow.as_str());
                    for command in inner.child(child, named, event, parent, depth).await {
                        let _ = messages.send(Message::Tell(id, Box::new(command), None));
                    }
                    // One that another process performs is followed; if it cannot be, whoever
                    // recovers the parent looks again.
                    inner.tell_end_from_afar(child).await;
                    drop(inner);
                    if let Ok(Ended { status, result: output, .. }) = ended.await {
                        let command = Command::ChildFinished { child, status, output };
                        let _ = messages.send(Message::Tell(id, Box::new(command), None));
                    }
                }));
            }
            Effect::Respond { response } => {
                active.response = Some(response.clone());
                inner.watchers.responded(id, response);
            }
            // Whoever is asked sees it in the list of runs.
            Effect::Task(_) => {}
            Effect::CallOff => {
                std::mem::take(&mut active.under_way).values().for_each(Task::abort);
                if active.run.state.end.is_none() {
                    let _ = self.messages.send(Message::Tell(id, Box::new(Command::Stopped), None));
                }
            }
            Effect::End(status) => self.ended(inner, id, status),
        }
    }

    /// A run is over: whoever waits is told.
    fn ended(&mut self, inner: &Arc<Inner>, id: RunId, status: EndStatus) {
        let Some(active) = self.runs.remove(&id) else { return };
        let result = match &active.run.state.end {
            Some(End::Succeeded { result }) => match result {
                Payload::Inline(value) => value.0.clone(),
                Payload::Blob(_) => Value::Null,
            },
            Some(End::Failed { error, instance }) => failure(error, instance.as_ref()),
            _ => Value::Null,
        };
        let mut row = summary(self.session, &active);
        row.ended_ms = active.ended_ms;
        row.last = Some(self.through);
        inner.index.note(row);
        // Whoever asks for it again finds it in the list from now on.
        self.desk.leave(id);
        let ended = Ended { status, result, response: active.response.clone() };
        inner.watchers.ended(id, &ended);
        if status == EndStatus::Failed {
            inner.tell_of_failure_later(id);
        }
    }
}

/// What a step was given, as its intent says; nothing for one that has none.
fn settings(active: &Active, instance: &StepInstanceKey) -> Settings {
    Settings::of(&active.run, &active.ready.graph, instance)
}

/// What asked for a run.
fn above(active: &Active) -> Option<TraceParent> {
    TraceParent::of_input(&active.run.state.queued.as_ref()?.input)
}
