//! `list_workflows`: the workflows there are.

use std::sync::Arc;

use cairn_api::Error;
use cairn_api::error::Result;
use cairn_api::guided::{request, workflow};

use super::{Effect, Reply, Tool};
use crate::{Door, render};

pub(super) struct ListWorkflows;

impl Tool for ListWorkflows {
    const NAME: &'static str = "list_workflows";
    const TITLE: &'static str = "List workflows";
    const DESCRIPTION: &'static str = "Lists the workflows you can start. If one fits the \
        user's task, start it instead of improvising. Take workflowId from here; do not guess \
        it. Routines are parts of workflows: start one only when asked.";
    const EFFECT: Effect = Effect::Reads;
    type Input = request::ListWorkflows;
    type Output = workflow::Workflows;

    async fn call(door: &Door, input: Self::Input) -> Result<Reply<Self::Output>> {
        let is_first = input.cursor.is_none();
        let catalog = Arc::clone(&door.catalog);
        // Workflows are files, and they are read here.
        let listing = tokio::task::spawn_blocking(move || workflow::list(&catalog, &input)).await;
        let mut data = listing.map_err(|error| Error::Internal(error.to_string()))??;
        if is_first {
            data.waiting_runs = door.automations.unclaimed().await?;
        }
        let texts = vec![render::workflows(&data)];
        Ok(Reply { data, texts })
    }
}
