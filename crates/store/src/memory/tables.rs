//! What follows from sessions, as far as somebody keeps it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use cairn_core::id::{RunId, SessionId};

use super::held;
use crate::error::Result;
use crate::port::search::{Findable, Search, Wanted};
use crate::port::{Mark, Place, RunFilter, RunIndex, RunRow, SessionRead, Which};

/// The list of runs, and what can be found.
#[derive(Default)]
pub(super) struct Tables {
    found: Mutex<BTreeMap<SessionId, Findable>>,
    found_up_to: Mutex<Option<Place>>,
    runs: Mutex<BTreeMap<RunId, RunRow>>,
    read: Mutex<BTreeMap<SessionId, SessionRead>>,
    place: Mutex<Option<Place>>,
}

#[async_trait]
impl Search for Tables {
    async fn place(&self) -> Result<Option<Place>> {
        Ok(held(&self.found_up_to).clone())
    }

    async fn keep(&self, found: Vec<Findable>, gone: Vec<SessionId>) -> Result<bool> {
        let mut kept = held(&self.found);
        kept.retain(|session, _| !gone.contains(session));
        let mut is_all = true;
        for found in found {
            let known = kept.get(&found.session).and_then(|known| known.mark.clone());
            match known == found.known {
                true => drop(kept.insert(found.session, found)),
                false => is_all = false,
            }
        }
        Ok(is_all)
    }

    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()> {
        reach(&self.found_up_to, since, place);
        Ok(())
    }

    async fn marks(&self, which: &Which) -> Result<Vec<(SessionId, Option<Mark>)>> {
        let as_read = |found: &Findable| {
            let none = SessionRead::none(found.session);
            SessionRead { mark: found.mark.clone(), ..none }
        };
        let kept = held(&self.found);
        let wanted = kept.values().filter(|found| which.takes(&as_read(found)));
        Ok(wanted.map(|found| (found.session, found.mark.clone())).collect())
    }

    async fn find(&self, _: &Wanted) -> Result<Vec<(SessionId, String)>> {
        let kept = held(&self.found);
        let of = |found: &Findable| {
            let session = found.session;
            found.runs.iter().map(|run| (session, run.value.clone())).collect::<Vec<_>>()
        };
        Ok(kept.values().flat_map(of).collect())
    }
}

/// Sets a place, unless somebody else has since.
fn reach(known: &Mutex<Option<Place>>, since: Option<&Place>, place: &Place) {
    let mut known = held(known);
    if known.as_ref() == since {
        *known = Some(place.clone());
    }
}

#[async_trait]
impl RunIndex for Tables {
    async fn record(&self, rows: Vec<RunRow>, read: Vec<SessionRead>) -> Result<()> {
        let mut known = held(&self.read);
        for read in read {
            let recorded = match known.get(&read.session).cloned() {
                Some(known) => known.followed_by(read),
                None => Some(read),
            };
            known.extend(recorded.map(|read| (read.session, read)));
        }
        let mut runs = held(&self.runs);
        for row in rows {
            if runs.get(&row.run).is_none_or(|known| known.seen <= row.seen) {
                runs.insert(row.run, row);
            }
        }
        Ok(())
    }

    async fn place(&self) -> Result<Option<Place>> {
        Ok(held(&self.place).clone())
    }

    async fn reach(&self, since: Option<&Place>, place: &Place) -> Result<()> {
        reach(&self.place, since, place);
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

    async fn sessions(&self, which: &Which) -> Result<Vec<SessionRead>> {
        Ok(held(&self.read).values().filter(|read| which.takes(read)).cloned().collect())
    }

    async fn forget(&self, gone: Vec<SessionId>) -> Result<()> {
        held(&self.runs).retain(|_, row| !gone.contains(&row.session));
        held(&self.read).retain(|session, _| !gone.contains(session));
        Ok(())
    }
}
