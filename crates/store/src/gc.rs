//! Retention and collection: sessions go when their time is over, blobs when no session
//! that is left needs them, and what lies idle is sealed. In doubt nothing goes.

use std::collections::BTreeSet;

use cairn_core::digest::Digest;
use cairn_core::event::Event;
use cairn_core::id::{EventIndex, SessionId};
use cairn_core::pin::BlobKind;

use crate::error::{Error, Result};
use crate::health::Health;
use crate::open::Store;

/// What may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Guided sessions whose last event is older than this; none go when nothing is said.
    pub older_than_ms: Option<u64>,
    /// Blobs are left alone until they are this old, whoever needs them.
    pub min_age_ms: u64,
    /// Only say what would go.
    pub dry_run: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { older_than_ms: None, min_age_ms: 24 * 60 * 60 * 1000, dry_run: false }
    }
}

/// What went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The sessions.
    pub deleted_sessions: Vec<SessionId>,
    /// How many blobs.
    pub deleted_blobs: u64,
    /// Why no blob went, when a session cannot be read and so may need any of them.
    pub safe_mode: Option<String>,
}

/// Removes sessions whose time is over, then blobs that nobody needs.
pub async fn collect(store: &Store, policy: &Policy, now_ms: u64) -> Result<Report> {
    let mut report = Report::default();
    if let Some(older_than_ms) = policy.older_than_ms {
        let before_ms = now_ms.saturating_sub(older_than_ms);
        report.deleted_sessions = retire(store, before_ms, policy.dry_run).await?;
    }
    if !policy.dry_run {
        seal_idle(store).await?;
    }
    // From here on nobody can pin a blob, so what is not needed now is not needed.
    let sweep = store.blobs.sweep().await?;
    let needed = match mark(store, &report).await? {
        Ok(needed) => needed,
        Err(why) => {
            report.safe_mode = Some(why);
            return Ok(report);
        }
    };
    for kind in BlobKind::ALL {
        for (digest, stored_ms) in sweep.list(kind).await? {
            let fresh = now_ms.saturating_sub(stored_ms) < policy.min_age_ms;
            if fresh || needed.contains(&digest) {
                continue;
            }
            if !policy.dry_run {
                sweep.remove(kind, digest).await?;
            }
            report.deleted_blobs += 1;
        }
    }
    Ok(report)
}

/// Removes the guided sessions whose last event is older than this; gives which.
pub async fn retire(store: &Store, before_ms: u64, dry_run: bool) -> Result<Vec<SessionId>> {
    let mut retired = Vec::new();
    for session in store.sessions.list().await? {
        let Ok(status) = store.log.status(session).await else { continue };
        if status.kept || status.health != Health::Healthy {
            continue;
        }
        let Some(last) = status.events.checked_sub(1).map(EventIndex) else { continue };
        let events = store.log.read(session, last).await?;
        // Runs that the engine performs are retired one by one, as their workflows say.
        let stays =
            |event: &Event| event.id.minted_ms() >= before_ms || event.data.kind().is_performed();
        if events.last().is_none_or(stays) {
            continue;
        }
        match if dry_run { Ok(true) } else { store.sessions.retire(session, last, None).await } {
            Ok(true) => retired.push(session),
            Ok(false) => {}
            // Somebody is at work on it, so its time is not over.
            Err(Error::Locked { .. } | Error::Owned { .. } | Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(retired)
}

/// Puts what was appended so far into its final form, where nobody is at work.
async fn seal_idle(store: &Store) -> Result<()> {
    for session in store.sessions.list().await? {
        // What cannot be sealed now stays in its journal, where it is as safe.
        let _ = store.log.seal(session).await;
    }
    Ok(())
}

/// The blobs that the sessions left need, or why that cannot be said.
async fn mark(store: &Store, report: &Report) -> Result<Result<BTreeSet<Digest>, String>> {
    let mut needed = BTreeSet::new();
    for session in store.sessions.list().await? {
        if report.deleted_sessions.contains(&session) {
            continue;
        }
        match store.log.status(session).await {
            Ok(status) if status.health == Health::Healthy => {
                needed.extend(status.pins.iter().map(|pin| pin.snapshot_ref));
            }
            Ok(status) => {
                let health = status.health.name();
                return Ok(Err(format!("session {session} is {health}")));
            }
            Err(Error::NotFound(_)) => {}
            Err(error) => return Ok(Err(format!("session {session} cannot be read: {error}"))),
        }
    }
    Ok(Ok(needed))
}
