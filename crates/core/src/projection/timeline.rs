//! The log in words, one line for each event.

mod words;

use crate::event::{Event, Kind, Scope};
use crate::id::{EventIndex, RunId};

/// Events in words, in the order of the log.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    entries: Vec<Entry>,
}

/// One event in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its place in the log.
    pub index: EventIndex,
    /// When its id was minted, in milliseconds since 1970; for people, not for order.
    pub at_ms: u64,
    /// What it is about.
    pub scope: Scope,
    /// What kind of event.
    pub kind: Kind,
    /// What happened, in one line.
    pub text: String,
}

impl Timeline {
    /// The timeline of these events.
    #[must_use]
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut timeline = Self::default();
        events.into_iter().for_each(|event| timeline.apply(event));
        timeline
    }

    /// Adds one event.
    pub fn apply(&mut self, event: &Event) {
        self.entries.push(Entry {
            index: event.index,
            at_ms: event.id.minted_ms(),
            scope: event.scope,
            kind: event.data.kind(),
            text: words::describe(&event.data),
        });
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries of one run.
    pub fn of_run(&self, run: RunId) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.scope.run() == Some(run))
    }
}
