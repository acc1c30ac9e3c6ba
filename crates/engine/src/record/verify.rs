//! The check that no line was changed, put in, taken out or cut off.

use std::collections::BTreeSet;

use cairn_core::audit::Line;
use cairn_core::digest::Digest;
use cairn_core::event::{EventData, Via};
use cairn_core::id::EventIndex;
use cairn_store::Store;
use cairn_store::port::audit::Head;

use super::{Record, keeps_head};
use crate::error::{Error, Result};

/// How many lines are checked at a time.
const PAGE: usize = 1_024;

impl Record {
    /// Checks every line, and gives how many there are.
    pub async fn verify(&self) -> Result<u64> {
        self.hold_against(&BTreeSet::new()).await
    }

    /// The same, and that every line is there which an event names: whoever deletes the record and
    /// what is kept beside it does not delete those.
    pub async fn verify_with(&self, store: &Store) -> Result<u64> {
        self.hold_against(&named(store).await?).await
    }

    async fn hold_against(&self, named: &BTreeSet<(u64, String)>) -> Result<u64> {
        // Two events can name one place, when lines were written anew.
        let at = |index: u64| named.range((index, String::new())..(index + 1, String::new()));
        let last = named.last().map(|(index, _)| *index);
        // Whatever is added meanwhile is behind it.
        let head = self.log.head().await?;
        let (mut previous, mut count, mut is_counted) = (Line::nothing(), 0, false);
        loop {
            let lines = self.log.read(count, PAGE).await?;
            for bytes in &lines {
                let line = Line::read(bytes).ok_or_else(|| self.broken(count))?;
                if line.index > count {
                    return Err(self.cut(count, line.index));
                }
                if line.index < count || line.previous != previous || is_other(head, count, bytes) {
                    return Err(self.broken(count));
                }
                is_counted |= keeps_head(&line);
                if at(count).any(|(_, digest)| *digest != line.digest) {
                    return Err(self.broken(count));
                }
                previous = line.digest;
                count += 1;
            }
            if lines.len() < PAGE {
                break;
            }
        }
        match head {
            Head::Of { lines, .. } if lines > count => Err(self.cut(count, lines)),
            _ if last >= Some(count) => Err(self.cut(count, last.unwrap_or_default() + 1)),
            Head::Absent if is_counted => Err(self.headless()),
            Head::Unreadable => Err(self.headless()),
            _ => Ok(count),
        }
    }

    fn cut(&self, found: u64, written: u64) -> Error {
        Error::AuditCut { path: self.log.place().into(), found, written }
    }

    fn headless(&self) -> Error {
        Error::AuditHead { path: self.log.place().into() }
    }
}

/// Whether the line that is known apart is not the one that stands there.
fn is_other(head: Head, index: u64, bytes: &[u8]) -> bool {
    matches!(head, Head::Of { lines, last } if lines == index + 1 && Digest::of(bytes) != last)
}

/// The lines that events name. What came from elsewhere names those of another record, and of a
/// session that cannot be read nothing is known.
async fn named(store: &Store) -> Result<BTreeSet<(u64, String)>> {
    let mut named = BTreeSet::new();
    for session in store.sessions.list().await? {
        if store.sessions.origin(session).await?.is_some() {
            continue;
        }
        let Ok(events) = store.log.read(session, EventIndex(0)).await else { continue };
        let vias = events.iter().filter_map(|event| via(&event.data));
        named.extend(
            vias.filter_map(|via| via.line).map(|line| (line.index, line.digest.to_string())),
        );
    }
    Ok(named)
}

/// How an event was asked for.
const fn via(data: &EventData) -> Option<&Via> {
    match data {
        EventData::RunQueued(said) => said.via.as_ref(),
        EventData::RunCancelRequested(said) => said.via.as_ref(),
        EventData::RunPaused(said) => said.via.as_ref(),
        EventData::RunResumed(said) => said.via.as_ref(),
        EventData::TaskAnswered(said) => said.via.as_ref(),
        EventData::StepResolved(said) => said.via.as_ref(),
        _ => None,
    }
}
