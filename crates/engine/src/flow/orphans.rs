//! Child runs that their parent does not wait for any more: they are cancelled along with it.

use std::sync::Arc;
use std::time::Duration;

use cairn_core::event::By;
use cairn_core::flow::Command;
use cairn_core::id::RunId;

use super::Inner;
use crate::error::{Error, Result};

/// How long to wait before a child is cancelled again that could not be, at first and at most.
const AGAIN_MIN: Duration = Duration::from_millis(200);
const AGAIN_MAX: Duration = Duration::from_secs(30);

impl Inner {
    /// Cancels a child run whose parent is over, beside whatever else goes on.
    pub(super) fn cancel_orphan_later(self: &Arc<Self>, child: RunId) {
        self.cancel_later(child, None);
    }

    /// Cancels a child run that was taken over, should its parent be over: whoever had both may
    /// have been cut off in between.
    pub(super) fn cancel_if_orphaned_later(self: &Arc<Self>, child: RunId, parent: RunId) {
        self.cancel_later(child, Some(parent));
    }

    fn cancel_later(self: &Arc<Self>, child: RunId, parent: Option<RunId>) {
        let (inner, host) = (Arc::downgrade(self), Arc::clone(&self.host));
        self.host.spawn(Box::pin(async move {
            let mut pause = AGAIN_MIN;
            while let Some(inner) = inner.upgrade() {
                match inner.cancel_orphan(child, parent).await {
                    Err(error) if error.goes_by() => {}
                    Err(error) if !is_no_more(&error) => {
                        let what = format!("{child} outlives its parent: {error}");
                        return (inner.options.trouble)(&what);
                    }
                    Ok(()) | Err(_) => return,
                }
                drop(inner);
                host.sleep(pause).await;
                pause = (pause * 2).min(AGAIN_MAX);
            }
        }));
    }

    async fn cancel_orphan(self: &Arc<Self>, child: RunId, parent: Option<RunId>) -> Result<()> {
        if let Some(parent) = parent {
            let (_, state) = self.reading.state(parent).await?;
            if state.end.is_none() && !state.cancel_requested {
                return Ok(());
            }
        }
        let reason = "its parent run does not wait for it any more".to_owned();
        self.tell(child, Command::Cancel { by: By::engine(), reason }).await
    }
}

/// Whether an error says that there is nothing to cancel, or nobody left to cancel it for.
fn is_no_more(error: &Error) -> bool {
    ["RUN_ENDED", "RUN_NOT_FOUND", "RUN_STATE", "SESSION_NOT_FOUND", "SERVER_STOPPING"]
        .contains(&error.code())
}
