//! `inspect_workflow`: what a workflow does, before it is started.

use std::sync::Arc;

use cairn_api::Error;
use cairn_api::error::Result;
use cairn_api::guided::{request, workflow};

use super::{Effect, Reply, Tool};
use crate::{Door, render};

pub(super) struct InspectWorkflow;

impl Tool for InspectWorkflow {
    const NAME: &'static str = "inspect_workflow";
    const TITLE: &'static str = "Inspect a workflow";
    const DESCRIPTION: &'static str = "Shows what a workflow is for, its steps and what it \
        needs, so that you can choose. Prompts are not shown. WRONG: working through the steps \
        yourself. RIGHT: start_workflow, then one step at a time.";
    const EFFECT: Effect = Effect::Reads;
    type Input = request::InspectWorkflow;
    type Output = workflow::Inspected;

    async fn call(door: &Door, input: Self::Input) -> Result<Reply<Self::Output>> {
        let catalog = Arc::clone(&door.catalog);
        // Workflows are files, and they are read here.
        let found = tokio::task::spawn_blocking(move || workflow::inspect(&catalog, &input)).await;
        let data = found.map_err(|error| Error::Internal(error.to_string()))??;
        let texts = vec![render::inspected(&data)];
        Ok(Reply { data, texts })
    }
}
