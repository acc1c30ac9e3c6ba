//! Runs that came from elsewhere and that nobody trusts yet: they are shown, and nothing else.

use std::sync::{Arc, OnceLock};

use cairn_core::id::{RunId, SessionId};
use cairn_core::projection::run::{RunState, RunStatus};
use cairn_store::Store;

use super::index::{Filter, Index, Summary};
use super::reading::{Past, Reading};
use crate::error::{Error, Result};
use crate::host::Host;

/// Reads papers, once there are any.
pub(super) struct Papers {
    host: Arc<dyn Host>,
    store: Store,
    reading: OnceLock<Box<Reading>>,
}

impl Papers {
    pub(super) const fn new(host: Arc<dyn Host>, store: Store) -> Self {
        Self { host, store, reading: OnceLock::new() }
    }

    /// What reads them; none when there are none.
    pub(super) fn reading(&self) -> Result<Option<&Reading>> {
        if let Some(reading) = self.reading.get() {
            return Ok(Some(reading));
        }
        let Some(papers) = self.store.papers.find()? else { return Ok(None) };
        let index = Arc::new(Index::new(Arc::clone(&self.host), papers.clone()));
        let reading = Box::new(Reading::new(&self.host, papers, index));
        Ok(Some(self.reading.get_or_init(|| reading)))
    }

    /// Reads what the list of them does not know yet.
    pub(super) async fn catch_up(&self) -> Result<()> {
        match self.reading()? {
            Some(papers) => papers.know_all().await,
            None => Ok(()),
        }
    }

    /// What whoever means to do something with a run is told if it is paper.
    pub(super) async fn refusal(&self, run: RunId) -> Result<Option<Error>> {
        let Some(papers) = self.reading()? else { return Ok(None) };
        match Box::pin(papers.found(run)).await {
            Ok(Summary { session, .. }) => Ok(Some(Error::Untrusted { session })),
            Err(Error::RunUnknown(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The papers that are wanted, latest first. They rest, whatever they say themselves.
    pub(super) async fn list(&self, filter: &Filter) -> Result<Vec<Summary>> {
        let Some(papers) = self.reading()? else { return Ok(Vec::new()) };
        let all = Filter { statuses: Vec::new(), limit: None, ..filter.clone() };
        let listed = papers.list(&all).await?.into_iter().map(shown);
        let wanted = |summary: &Summary| {
            filter.statuses.is_empty() || filter.statuses.contains(&summary.status)
        };
        Ok(listed.filter(wanted).collect())
    }

    pub(super) async fn past(&self, run: RunId) -> Result<Past> {
        let papers = self.reading()?.ok_or(Error::RunUnknown(run))?;
        let past = papers.past(run).await?;
        Ok(Past { summary: shown(past.summary), ..past })
    }

    pub(super) async fn state(&self, run: RunId) -> Result<(Summary, RunState)> {
        let papers = self.reading()?.ok_or(Error::RunUnknown(run))?;
        let (summary, state) = papers.state(run).await?;
        Ok((shown(summary), state))
    }
}

fn shown(summary: Summary) -> Summary {
    let status = if summary.is_over() { summary.status } else { RunStatus::Paused };
    Summary { status, is_paper: true, ..summary }
}

/// Whether a session came from elsewhere, trusted or not. Nothing of ours begins in one, so all
/// its runs did.
pub(super) async fn is_imported(store: &Store, session: SessionId) -> Result<bool> {
    match store.sessions.origin(session).await {
        Err(cairn_store::Error::NotFound(_)) => Ok(false),
        origin => Ok(origin?.is_some()),
    }
}

/// Runs and papers as one list, latest first.
pub(super) fn merged(
    own: Vec<Summary>,
    papers: Vec<Summary>,
    limit: Option<usize>,
) -> Vec<Summary> {
    let mut all = own;
    all.extend(papers);
    all.sort_by_key(|summary| std::cmp::Reverse((summary.queued_ms, summary.run)));
    all.truncate(limit.unwrap_or(usize::MAX));
    all
}
