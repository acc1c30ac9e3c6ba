//! Runs that are begun by the process which performs their workflow, so that they outlive the
//! one that asked.

use std::sync::Arc;

use cairn_core::id::RunId;
use cairn_core::text::Slug;

use crate::error::{Error, Result};
use crate::flow::Inner;
use crate::flow::arrive::{Arrival, given};
use crate::flow::mail::Begin;

impl Inner {
    /// Has a run begun by whoever performs its workflow; none when that is nobody, this
    /// process, or one that knows another version of the workflow.
    pub(super) async fn begin_there(self: &Arc<Self>, arrival: &Arrival) -> Result<Option<RunId>> {
        let found = self.find(&arrival.workflow).await?;
        let name = arrival.trigger.as_ref().map_or("manual", Slug::as_str);
        let now = self.host.now_ms();
        let asked = Begin {
            run: self.run_id()?,
            workflow: found.id.clone(),
            hash: found.hash()?.to_string(),
            trigger: arrival.trigger.clone(),
            event: given(&arrival.event, name, "", now),
        };
        self.index.catch_up().await?;
        for read in self.index.sessions_of(&found.id).await? {
            if self.lanes.get(read.session).is_some() {
                return Ok(None);
            }
            let Some(begun) = self.ask_to_begin(read.session, &asked).await? else { continue };
            // Whoever went away, or took too long to answer, may have begun it all the same.
            if begun || self.found(asked.run).await.is_ok() {
                return Ok(Some(asked.run));
            }
        }
        Ok(None)
    }

    /// Begins a run that another process asks for.
    pub(in crate::flow) async fn begin_for(self: &Arc<Self>, asked: Begin) -> Result<()> {
        let found = self.find(&asked.workflow).await?;
        if found.hash()?.to_string() != asked.hash {
            return Err(Error::Broken("the workflow is another one here".to_owned()));
        }
        let Begin { run, trigger, event, .. } = asked;
        if self.index.find(run).await?.is_some() {
            return Ok(());
        }
        self.begin_given(&found, run, trigger, event, None, 0).await.map(drop)
    }
}
