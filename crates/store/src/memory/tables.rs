//! What follows from sessions, as far as somebody keeps it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use cairn_core::id::{RunId, SessionId};

use super::held;
use crate::error::Result;
use crate::port::{Derived, Row, RunFilter, RunIndex, RunRow, SessionRead};

/// Rows by name, and the list of runs.
#[derive(Default)]
pub(super) struct Tables {
    derived: Mutex<BTreeMap<(&'static str, SessionId), Row>>,
    runs: Mutex<BTreeMap<RunId, RunRow>>,
    read: Mutex<BTreeMap<SessionId, SessionRead>>,
}

#[async_trait]
impl Derived for Tables {
    async fn load(&self, name: &'static str) -> Result<Vec<Row>> {
        let rows = held(&self.derived);
        Ok(rows.iter().filter(|((of, _), _)| *of == name).map(|(_, row)| row.clone()).collect())
    }

    async fn save(&self, name: &'static str, rows: Vec<Row>, gone: Vec<SessionId>) -> Result<()> {
        let mut kept = held(&self.derived);
        kept.extend(rows.into_iter().map(|row| ((name, row.session), row)));
        kept.retain(|(of, session), _| *of != name || !gone.contains(session));
        Ok(())
    }
}

#[async_trait]
impl RunIndex for Tables {
    async fn record(&self, rows: Vec<RunRow>, read: Vec<SessionRead>) -> Result<()> {
        held(&self.runs).extend(rows.into_iter().map(|row| (row.run, row)));
        let mut known = held(&self.read);
        for mut read in read {
            let before = known.get(&read.session).and_then(|read| read.workflow.clone());
            read.workflow = read.workflow.or(before);
            known.insert(read.session, read);
        }
        Ok(())
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>> {
        let rows = held(&self.runs);
        let mut rows: Vec<RunRow> =
            rows.values().filter(|row| filter.takes(row)).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.queued_ms, row.run)));
        rows.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(rows)
    }

    async fn find(&self, run: RunId) -> Result<Option<RunRow>> {
        Ok(held(&self.runs).get(&run).cloned())
    }

    async fn sessions(&self) -> Result<Vec<SessionRead>> {
        Ok(held(&self.read).values().cloned().collect())
    }

    async fn forget(&self, gone: Vec<SessionId>) -> Result<()> {
        held(&self.runs).retain(|_, row| !gone.contains(&row.session));
        held(&self.read).retain(|session, _| !gone.contains(session));
        Ok(())
    }
}
