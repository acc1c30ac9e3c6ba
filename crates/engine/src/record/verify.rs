//! The check that no line was changed, put in, taken out or cut off.

use std::collections::BTreeSet;

use cairn_core::audit::Line;
use cairn_core::digest::Digest;
use cairn_core::event::{Event, EventData, Via};
use cairn_core::id::{EventIndex, RunId};
use cairn_store::Store;
use cairn_store::port::audit::Head;

use super::{Record, keeps_head};
use crate::error::{Error, Result};

/// How many lines are checked at a time.
const PAGE: usize = 1_024;

impl Record {
    /// Checks every line, and gives how many there are.
    pub async fn verify(&self) -> Result<u64> {
        self.hold_against(Witnesses::default()).await
    }

    /// The same, and that every line is there which an event names, and one about every guided
    /// run: whoever deletes the record and what is kept beside it does not delete those.
    pub async fn verify_with(&self, store: &Store) -> Result<u64> {
        self.hold_against(Witnesses::of(store).await?).await
    }

    async fn hold_against(&self, witnesses: Witnesses) -> Result<u64> {
        let Witnesses { lines: named, mut guided } = witnesses;
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
                if let Some(run) = line.run_id {
                    guided.remove(&run);
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
            _ => match guided.first() {
                Some(run) => Err(Error::AuditUnnamed { path: self.log.place().into(), run: *run }),
                None => Ok(count),
            },
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

/// What sessions know of the record.
#[derive(Default)]
struct Witnesses {
    /// The lines that events name.
    lines: BTreeSet<(u64, String)>,
    /// The guided runs that were begun here: each was recorded before.
    guided: BTreeSet<RunId>,
}

impl Witnesses {
    /// What came from elsewhere names the lines of another record, and of a session that cannot be
    /// read nothing is known.
    async fn of(store: &Store) -> Result<Self> {
        let mut known = Self::default();
        for session in store.sessions.list().await? {
            if store.sessions.origin(session).await?.is_some() {
                continue;
            }
            let Ok(events) = store.log.read(session, EventIndex(0)).await else { continue };
            events.iter().for_each(|event| known.hear(event));
        }
        Ok(known)
    }

    fn hear(&mut self, event: &Event) {
        let line = via(&event.data).and_then(|via| via.line.as_ref());
        self.lines.extend(line.map(|line| (line.index, line.digest.to_string())));
        // Only guided runs have nodes.
        if matches!(event.data, EventData::NodeCreated(_)) {
            self.guided.extend(event.scope.run());
        }
    }
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
