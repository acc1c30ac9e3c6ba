//! What the history of a run from elsewhere says that its plan computed.
//!
//! Where a question stands can depend on such a value, and it follows from the plan and from what
//! is recorded before it. So it is computed here again, and counts if it is the same.

use std::sync::Arc;

use cairn_core::canonical;
use cairn_core::event::engine::Payload;
use cairn_core::flow::{Ask, Command, Hidden, Limits, Rejection, Run};
use cairn_core::instance::StepInstanceKey;
use cairn_core::projection::run::{RunState, StepStatus};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::Inner;
use super::index::Summary;
use super::perform::{Settings, Work};
use super::plans::Ready;
use super::trace::Try;
use crate::catalog::Identity;
use crate::error::{Error, Result};

impl Inner {
    /// Refuses a run that came from elsewhere, and in which people are asked, when its history
    /// says another value of a computed step than its plan gives with this input.
    pub(super) async fn require_computed(
        &self,
        summary: &Summary,
        state: &RunState,
        ready: &Arc<Ready>,
        input: &Value,
    ) -> Result<()> {
        let graph = &ready.graph;
        if !graph.asks_anybody() {
            return Ok(());
        }
        let mut here = state.clone();
        here.queued.iter_mut().for_each(|queued| queued.input = Payload::inline(input.clone()));
        let run = Run::new(here, Limits::default());
        let mut faults = Vec::new();
        for (key, step) in &run.state.steps {
            let is_done = step.status == StepStatus::Succeeded;
            // What a cycle has changed since is not known, and its questions are asked anyway.
            if !is_done || !graph.is_computed(&key.step) || graph.is_in_cycle(&key.step) {
                continue;
            }
            let recorded = match &step.output {
                Some(Payload::Inline(value)) => Some(&value.0),
                _ => None,
            };
            if self.computed(summary, &run, ready, key).await.as_ref() != recorded {
                faults.push(format!("`{key}` gave another value than the plan does"));
            }
        }
        match faults.is_empty() {
            true => Ok(()),
            false => {
                let refused = Rejection::Foreign(faults);
                Err(Error::RunRefused { run: state.run_id, refused })
            }
        }
    }

    /// What a computed step gives here; none when it fails.
    async fn computed(
        &self,
        summary: &Summary,
        run: &Run,
        ready: &Arc<Ready>,
        key: &StepInstanceKey,
    ) -> Option<Value> {
        let (prepared, context) = run.question(&ready.graph, key, Ask::Settings, &Hidden)?;
        let settings = match prepared.needs_worker() {
            true => {
                let (source, is_expression) = (prepared.source(), prepared.is_expression());
                self.steps.evaluator.evaluate(source, is_expression, context).await
            }
            false => run.settings(&ready.graph, key, &Hidden),
        };
        let (step_run, instance) = (run.state.run_id, key.clone());
        let work = Work {
            workflow: Identity::recorded(&summary.workflow, summary.place.as_deref()),
            session: summary.session,
            step: Try { run: step_run, above: None, instance, attempt: 0 },
            key: key.within(step_run),
            chain: run.state.depth(),
            forked_from: None,
            ready: Arc::clone(ready),
            settings: settings.map_or_else(Settings::Faulty, Settings::Recorded),
            slots: Arc::new(Semaphore::new(1)),
        };
        match self.steps.perform(work).await {
            Command::Complete { result: Ok(outcome), .. } => {
                Some(canonical::recorded(outcome.output))
            }
            _ => None,
        }
    }
}
