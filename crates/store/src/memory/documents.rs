//! Documents, the audit record and locks that nothing outlives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cairn_core::digest::Digest;
use tokio::sync::Notify;

use super::held;
use crate::error::{Error, Result};
use crate::port::audit::{AuditLog, Head, NextLine};
use crate::port::documents::{Document, Documents, Name, Stamp, Version};
use crate::port::locks::{Claim, Exclusive, Lock, Locks};

/// The documents.
#[derive(Default)]
pub(super) struct Folder(Mutex<Pile>);

#[derive(Default)]
struct Pile {
    /// How many changes there were.
    changes: u64,
    /// Each with the number of the change that made it what it is.
    papers: BTreeMap<Name, (u64, Document)>,
}

impl Folder {
    /// Puts a document, or none, in the place of the one that was seen.
    fn change(&self, name: &Name, seen: Option<&Version>, new: Option<Document>) -> Result<()> {
        let mut pile = held(&self.0);
        let Pile { changes, papers } = &mut *pile;
        if papers.get(name).map(|(_, found)| &found.version) != seen {
            return Err(Error::DocumentMoved { name: name.to_string() });
        }
        *changes += 1;
        match new {
            Some(new) => papers.insert(name.clone(), (*changes, new)),
            None => papers.remove(name),
        };
        Ok(())
    }
}

#[async_trait]
impl Documents for Folder {
    async fn read(&self, name: &Name) -> Result<Option<Document>> {
        Ok(held(&self.0).papers.get(name).map(|(_, found)| found.clone()))
    }

    async fn replace(
        &self,
        name: &Name,
        seen: Option<&Version>,
        bytes: Vec<u8>,
    ) -> Result<Version> {
        let new = Document::of(bytes);
        let version = new.version.clone();
        self.change(name, seen, Some(new)).map(|()| version)
    }

    async fn remove(&self, name: &Name, seen: &Version) -> Result<()> {
        self.change(name, Some(seen), None)
    }

    async fn list(&self, folder: &Name) -> Result<Vec<Name>> {
        Ok(held(&self.0).papers.keys().filter(|name| name.is_in(folder)).cloned().collect())
    }

    async fn stamp(&self, name: &Name) -> Result<Option<Stamp>> {
        Ok(held(&self.0).papers.get(name).map(|(change, _)| Stamp(change.to_string())))
    }

    async fn exposed(&self, _: &Name) -> Result<Option<String>> {
        Ok(None)
    }

    fn place(&self, name: &Name) -> String {
        name.to_string()
    }
}

/// The lines of the audit record.
#[derive(Default)]
pub(super) struct Lines(Mutex<Vec<Vec<u8>>>);

#[async_trait]
impl AuditLog for Lines {
    async fn append(&self, next: NextLine<'_>) -> Result<bool> {
        let mut lines = held(&self.0);
        let line = next(lines.last().map(Vec::as_slice));
        let made = line.is_some();
        lines.extend(line);
        Ok(made)
    }

    async fn read(&self, from: u64, limit: usize) -> Result<Vec<Vec<u8>>> {
        // A place that no memory reaches is behind the last line.
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(held(&self.0).iter().skip(from).take(limit).cloned().collect())
    }

    async fn head(&self) -> Result<Head> {
        let lines = held(&self.0);
        Ok(lines.last().map_or(Head::Absent, |last| {
            let count = u64::try_from(lines.len()).unwrap_or(u64::MAX);
            Head::Of { lines: count, last: Digest::of(last) }
        }))
    }

    fn place(&self) -> String {
        "the audit record".to_owned()
    }
}

/// The locks that are held, each with what its holder says of itself.
#[derive(Default)]
pub(super) struct Rooms {
    held: Mutex<BTreeMap<Exclusive, Option<String>>>,
    freed: Notify,
}

struct Room {
    rooms: Arc<Rooms>,
    what: Exclusive,
}

impl Lock for Room {
    fn sign(&self, who: &str) {
        held(&self.rooms.held).insert(self.what, Some(who.to_owned()));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        held(&self.rooms.held).remove(&self.what);
        self.rooms.freed.notify_waiters();
    }
}

/// The locks, as one process asks for them.
pub(super) struct Door(pub(super) Arc<Rooms>);

#[async_trait]
impl Locks for Door {
    async fn try_lock(&self, what: Exclusive) -> Result<Claim> {
        let mut rooms = held(&self.0.held);
        if let Some(holder) = rooms.get(&what) {
            return Ok(Claim::Held(holder.clone()));
        }
        rooms.insert(what, None);
        Ok(Claim::Taken(Box::new(Room { rooms: Arc::clone(&self.0), what })))
    }

    async fn lock(&self, what: Exclusive) -> Result<Box<dyn Lock>> {
        loop {
            // Asked for before the look, so that no lock that is given back in between is missed.
            let freed = self.0.freed.notified();
            if let Claim::Taken(lock) = self.try_lock(what).await? {
                return Ok(lock);
            }
            freed.await;
        }
    }
}
