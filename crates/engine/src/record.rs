//! The record of who changed what, below every door.
//!
//! Whatever a principal has changed, through whichever door, passes [`Record::change`]: the line is
//! written first, and what cannot be recorded is not done. A change that failed gets a
//! second line, which says why. What triggers start, what runs do by themselves and the steps of
//! guided runs stand in the event log, which names who did them, and nowhere else.
//!
//! In reading order: what can be recorded ([`deed`]), the changes that are not made to runs
//! ([`changes`]), how often refusals are written (`tally`), the check of all lines (`verify`).

pub mod changes;
pub mod deed;
mod tally;
mod verify;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use cairn_core::audit::Line;
use cairn_core::digest::Digest;
use cairn_core::event::{AuditLine, By};
use cairn_core::id::SessionId;
use cairn_core::time;
use cairn_store::Store;
use cairn_store::port::audit::{AuditLog, Head};

pub use deed::{Action, Deed, Object, Refusal};
use tally::Tally;

use crate::error::{Error, Result};
use crate::host::Host;

/// How much of what a caller sent is kept.
const TEXT_MAX: usize = 512;

/// The record of a store. Clones write the same one.
#[derive(Clone)]
pub struct Record {
    log: Arc<dyn AuditLog>,
    host: Arc<dyn Host>,
    tally: Arc<Tally>,
}

/// Something that can be the outcome of a change.
pub trait Coded {
    /// The stable name of the error.
    fn code(&self) -> &'static str;
}

impl Coded for Error {
    fn code(&self) -> &'static str {
        self.code()
    }
}

/// Which lines are wanted; all of them when nothing is said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Those about a workflow.
    pub workflow: Option<String>,
    /// Those about a run.
    pub run: Option<String>,
    /// Those of a token, and those about it.
    pub token: Option<String>,
}

impl Wanted {
    fn has(&self, line: &Line) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let about_token = self.token.is_some() && self.token.as_deref() == Some(&line.object);
        is(&self.workflow, line.workflow_id.as_deref())
            && is(&self.run, line.run_id.map(|run| run.to_string()).as_deref())
            && (about_token || is(&self.token, line.token_id.as_deref()))
    }
}

/// Some lines, oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The lines.
    pub lines: Vec<Line>,
    /// The place behind the last one that was looked at, when there are more.
    pub next: Option<u64>,
}

impl Record {
    /// The record of a store.
    #[must_use]
    pub fn new(store: &Store, host: Arc<dyn Host>) -> Self {
        Self { log: Arc::clone(&store.audit), host, tally: Arc::default() }
    }

    /// Makes a change, once it is on record who asked for it. What cannot be recorded is not done.
    pub async fn change<T, E: From<Error> + Coded>(
        &self,
        deed: Deed,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.change_named(deed, |_| work, |_| None).await
    }

    /// The same, of a change that events tell of: they name whoever asked with the line that says
    /// so.
    pub(crate) async fn change_by<T, E: From<Error> + Coded, F: Future<Output = Result<T, E>>>(
        &self,
        deed: Deed,
        work: impl FnOnce(By) -> F,
    ) -> Result<T, E> {
        self.change_named(deed, work, |_| None).await
    }

    /// Puts on record that somebody has a step done, before it is. What came of it stands in the
    /// log, where a step that is refused is a step, too. Gives them with the line that says so.
    pub(crate) async fn note(&self, deed: Deed) -> Result<By> {
        match deed.is_recorded() {
            true => Ok(deed.by.clone().on_record(self.write(&deed.line()).await?)),
            false => Ok(deed.by),
        }
    }

    /// The same, of a session whose id shows when it is there. A second line tells it.
    pub(crate) async fn change_named<
        T,
        E: From<Error> + Coded,
        F: Future<Output = Result<T, E>>,
    >(
        &self,
        deed: Deed,
        work: impl FnOnce(By) -> F,
        session: impl FnOnce(&T) -> Option<SessionId>,
    ) -> Result<T, E> {
        if !deed.is_recorded() {
            return work(deed.by).await;
        }
        let line = self.write(&deed.line()).await?;
        let done = work(deed.by.clone().on_record(line)).await;
        let told = match &done {
            Err(error) => Some(deed.failed(error.code(), line.index)),
            Ok(done) => session(done).map(|session| Line {
                session_id: Some(session),
                of: Some(line.index),
                ..deed.line()
            }),
        };
        if let Some(told) = told {
            // What was let through is on record, whether or not more can be said of it.
            let _ = self.write(&told).await;
        }
        done
    }

    /// Puts on record that somebody was turned away. The same reason is written once a minute, with
    /// how often it was; what cannot be recorded was refused all the same.
    pub async fn refuse(&self, refusal: Refusal) {
        for (refusal, times) in self.tally.count(refusal, self.host.now_ms()) {
            let _ = self.write(&Line { times: Some(times), ..refusal.line() }).await;
        }
    }

    /// Writes what was counted and not written, of minutes that are over or of all.
    pub async fn settle(&self, is_end: bool) {
        for (refusal, times) in self.tally.due(self.host.now_ms(), is_end) {
            let _ = self.write(&Line { times: Some(times), ..refusal.line() }).await;
        }
    }

    /// Lines from a place on.
    pub async fn read(&self, from: u64, limit: usize, wanted: &Wanted) -> Result<Page> {
        const PAGE: usize = 1_024;
        let (mut lines, mut at) = (Vec::new(), from);
        loop {
            let found = self.log.read(at, PAGE).await?;
            for bytes in &found {
                if lines.len() == limit {
                    return Ok(Page { lines, next: Some(at) });
                }
                let line = Line::read(bytes).ok_or_else(|| self.broken(at))?;
                lines.extend(wanted.has(&line).then_some(line));
                at += 1;
            }
            if found.len() < PAGE {
                return Ok(Page { lines, next: None });
            }
        }
    }

    /// Writes a line, which is durable on return; gives its place and digest.
    async fn write(&self, line: &Line) -> Result<AuditLine> {
        let unwritable = |source| match source {
            // It can be written as soon as its lock is free.
            busy @ cairn_store::Error::LockBusy { .. } => Error::Store(busy),
            source => Error::AuditUnwritable { source },
        };
        let head = self.log.head().await.map_err(unwritable)?;
        let line = Line { at: time::show(self.host.now_ms()), ..line.clone() };
        let mut written = None;
        let next = |last: Option<&[u8]>| {
            let bytes = behind(last, head, line)?.seal()?;
            let line = Line::read(&bytes)?;
            written = Some(AuditLine { digest: line.digest.parse().ok()?, index: line.index });
            Some(bytes)
        };
        let is_added = self.log.append(Box::new(next)).await.map_err(unwritable)?;
        if let Some(line) = written.filter(|_| is_added) {
            return Ok(line);
        }
        // Going on behind a line that is not what was written would hide that somebody changed it.
        let lines = self.verify().await?;
        Err(self.broken(lines.saturating_sub(1)))
    }

    fn broken(&self, index: u64) -> Error {
        Error::AuditBroken { path: self.log.place().into(), line: index + 1 }
    }
}

/// A line in its place behind the last one. Where lines are missing, it takes the place behind those
/// that were written, so that what is lost stays lost to see. Where what was known of them is gone,
/// nobody can tell how many they were, and a place is left empty: the first line alone can be there
/// without it, after a crash.
fn behind(last: Option<&[u8]>, head: Head, line: Line) -> Option<Line> {
    let known = match head {
        Head::Of { lines, last } => Some((lines, last)),
        Head::Absent | Head::Unreadable => None,
    };
    let (index, previous) = match (last, known) {
        (None, None) => (0, Line::nothing()),
        (None, Some((lines, digest))) => (lines, digest.to_string()),
        (Some(bytes), known) => {
            let found = Line::read(bytes)?;
            let lines = found.index + 1;
            match known {
                Some((known, digest)) if lines < known => (known, digest.to_string()),
                Some((known, digest)) if lines == known && Digest::of(bytes) != digest => {
                    return None;
                }
                None if lines > 1 && keeps_head(&found) => (lines + 1, found.digest),
                _ => (lines, found.digest),
            }
        }
    };
    Some(Line { index, previous, ..line })
}

/// Whether a line is of a version that keeps apart how many there are: only those say through which
/// door.
const fn keeps_head(line: &Line) -> bool {
    line.door.is_some() || line.outcome.is_some()
}
