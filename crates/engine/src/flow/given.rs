//! What runs that came from elsewhere are given here.
//!
//! Their input is told by a log that anybody can have written. Settings are those of this place,
//! and what is said to have been sent is held to the plan as if it were sent now.

use cairn_core::event::engine::Payload;
use cairn_core::flow::Command;
use cairn_core::id::RunId;
use cairn_core::plan::Plan;
use cairn_core::projection::run::RunState;
use cairn_core::time;
use cairn_store::bundle::is_elsewhere;
use serde_json::{Value, json};

use super::intake::{fitting, require_recordable};
use super::perform::{Environment as _, NoSettings};
use super::{Inner, unknown};
use crate::catalog::Identity;
use crate::error::{Error, Result};

impl Inner {
    /// The same command, with what a run that came from elsewhere is given when it is resumed.
    pub(super) async fn with_input(&self, run: RunId, command: Command) -> Result<Command> {
        let Command::Resume { change, by, input: None } = command else { return Ok(command) };
        let (summary, state) = self.reading.state(run).await?;
        if !state.is_untouched() {
            return Ok(Command::Resume { change, by, input: None });
        }
        let input = match &state.started {
            Some(started) => {
                let ready = self.plans.get(started.workflow_hash).await?;
                let workflow = Identity::of_run(started);
                let input = self.given_here(&state, &workflow, &ready.graph.plan).await?;
                self.require_computed(&summary, &state, &ready, &input).await?;
                input
            }
            None => {
                let found = self.workflows.find_same(&summary.identity()).await?;
                let plan = &found.compiled()?.plan;
                self.given_here(&state, found.identity(), plan).await?
            }
        };
        Ok(Command::Resume { change, by, input: Some(input) })
    }

    /// What a run that came from elsewhere is given here, under a plan.
    pub(super) async fn given_here(
        &self,
        state: &RunState,
        workflow: &Identity,
        plan: &Plan,
    ) -> Result<Value> {
        let queued = state.queued.as_ref().ok_or_else(|| unknown(state.run_id))?;
        let Payload::Inline(input) = &queued.input else {
            return Err(Error::Broken("the run's input is not there".to_owned()));
        };
        let event = input.0.get("event").cloned().unwrap_or_else(|| json!({}));
        require_recordable(&event, None)?;
        let mut event = fitting(plan, queued.trigger_id.as_ref(), event)?;
        // Templates take it for an instant, so it has to be one.
        let at = event.get("at").and_then(Value::as_str).and_then(time::parse);
        if let Some(members) = event.as_object_mut() {
            let at = at.unwrap_or_else(|| self.host.now_ms());
            members.insert("at".to_owned(), time::show(at).into());
        }
        let env = match is_elsewhere(workflow.place()) {
            true => NoSettings.settings(workflow, plan).await?,
            false => self.steps.environment.settings(workflow, plan).await?,
        };
        Ok(json!({"env": env, "event": event}))
    }
}
