//! Looking at every byte of a session.

use std::collections::BTreeSet;

use cairn_core::event::Event;
use cairn_core::format;
use cairn_core::id::SessionId;
use cairn_core::{lineage, pin};

use crate::error::Result;
use crate::health::{Health, Notice};
use crate::open::Store;

/// What a look at a whole session found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How its log is.
    pub health: Health,
    /// What else there is to know of the log.
    pub notices: Vec<Notice>,
    /// How many events can be read.
    pub events: u64,
    /// How many blobs were looked at.
    pub blobs_checked: u64,
    /// Everything that is wrong.
    pub problems: Vec<String>,
}

/// Reads all events and all blobs of a session and checks them.
pub async fn verify(store: &Store, session: SessionId) -> Result<Report> {
    let status = store.log.status(session).await?;
    let mut problems: Vec<String> = status.damage.into_iter().collect();
    match store.log.read_prefix(session).await {
        Ok(prefix) => {
            let pins = pin::once(prefix.events.iter().flat_map(Event::pins)).len();
            problems.extend(lineage::check(&prefix.events).err().map(|broken| broken.to_string()));
            // What needs the other pins of a later format is not known.
            let newer = format::is_newer(status.format) && pins < status.pins.len();
            if pins != status.pins.len() && !newer {
                let pinned = status.pins.len();
                problems.push(format!("the events need {pins} blobs, and {pinned} are pinned"));
            }
        }
        Err(error) => problems.push(error.to_string()),
    }
    let blobs: BTreeSet<_> = status.pins.iter().map(|p| (p.blob_kind, p.snapshot_ref)).collect();
    let mut health = status.health;
    for (kind, digest) in &blobs {
        if let Err(error) = store.blobs.get(*kind, *digest).await {
            problems.push(error.to_string());
            // Its history can be read, and it cannot go on everywhere.
            health = if health == Health::Healthy { Health::CorruptTail } else { health };
        }
    }
    Ok(Report {
        health,
        notices: status.notices,
        events: status.events,
        blobs_checked: blobs.len() as u64,
        problems,
    })
}
