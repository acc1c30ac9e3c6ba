//! Reading sessions for the doors.

use std::cmp::Reverse;

use cairn_core::digest::SnapshotRef;
use cairn_core::event::Event;
use cairn_core::guided::label as guided;
use cairn_core::id::{RunId, SessionId};
use cairn_core::pin::BlobKind;
use cairn_core::projection::session::{Progress, RunView, SessionView};
use cairn_core::projection::timeline::{Entry, Timeline};
use cairn_core::snapshot::Snapshot;
use cairn_store::Store;
use cairn_store::port::Status;

use super::{Detail, Health, Moment, Observation, Origin, Run, RunKind, Summary};
use crate::error::{Error, Result};
use crate::page::{Cursor, LIMIT_DEFAULT, Page};
use crate::time;

/// How many runs a single session shows at most.
pub const RUNS_MAX: usize = 100;
/// How many of the last events a single session shows when nobody says.
pub const TIMELINE_DEFAULT: usize = 20;
/// How many sessions a page looks at, at most, while it searches for some that match.
const SCAN_MAX: usize = 1_000;

/// Which sessions, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Where the page starts; at the newest when nothing is said.
    pub cursor: Option<Cursor>,
    /// How many sessions the page has at most.
    pub limit: usize,
    /// Only sessions that are like this.
    pub health: Option<Health>,
    /// Sound sessions without a run, too: engines keep what they note for themselves in such.
    pub without_runs: bool,
}

impl Default for Filter {
    fn default() -> Self {
        Self { cursor: None, limit: LIMIT_DEFAULT, health: None, without_runs: true }
    }
}

impl Filter {
    fn takes(&self, health: Health) -> bool {
        self.health.is_none_or(|wanted| wanted == health)
    }
}

/// One page of sessions, newest first.
pub async fn list(store: &Store, filter: &Filter) -> Result<Page<Summary>> {
    let mut ids = store.sessions.list().await?;
    ids.reverse();
    let rest = ids.into_iter().skip_while(|id| filter.cursor.is_some_and(|from| *id >= from.0));
    let mut page = Page { items: Vec::new(), next_cursor: None };
    let mut last = None;
    for (looked_at, id) in rest.enumerate() {
        if page.items.len() >= filter.limit || looked_at >= SCAN_MAX {
            page.next_cursor = last.map(Cursor);
            break;
        }
        last = Some(id);
        match summary(store, id, filter).await {
            Ok(found) => page.items.extend(found),
            // It was deleted since it was listed.
            Err(cairn_store::Error::NotFound(_)) => {}
            // One that cannot be looked at hides no other.
            Err(error) if filter.takes(Health::Unreadable) => {
                page.items.push(unreadable(id, &error.into()));
            }
            Err(_) => {}
        }
    }
    Ok(page)
}

/// One session, with its last `moments` events. What is left of a damaged one is shown, too.
pub async fn show(store: &Store, session: SessionId, moments: usize) -> Result<Detail> {
    let status = store.log.status(session).await?;
    let events = store.log.read_prefix(session).await?.events;
    let view = SessionView::fold(&events);
    let mut runs = Vec::new();
    for run in latest_first(&view).into_iter().take(RUNS_MAX) {
        runs.extend(describe(store, &view, run).await);
    }
    let summary = summarize(store, session, &status, &view).await?;
    if summary.imported.as_ref().is_some_and(|origin| origin.trusted_by.is_none()) {
        runs = runs.into_iter().map(at_rest).collect();
    }
    Ok(Detail {
        notices: status.notices.iter().map(|notice| notice.name().to_owned()).collect(),
        blobs: count(status.pins.len()),
        observations: observations(&view),
        runs,
        timeline: timeline(&events, moments),
        summary,
    })
}

async fn summary(
    store: &Store,
    session: SessionId,
    filter: &Filter,
) -> cairn_store::Result<Option<Summary>> {
    let status = store.log.status(session).await?;
    if !filter.takes(status.health.into()) {
        return Ok(None);
    }
    let view = SessionView::fold(&store.log.read_prefix(session).await?.events);
    let is_sound = Health::from(status.health) == Health::Healthy;
    if is_sound && view.runs.is_empty() && status.events > 0 && !filter.without_runs {
        return Ok(None);
    }
    Ok(Some(summarize(store, session, &status, &view).await?))
}

/// All that can be said of a session that cannot be looked at.
fn unreadable(session_id: SessionId, error: &Error) -> Summary {
    Summary {
        session_id,
        health: Health::Unreadable,
        damage: Some(error.coded()),
        created_at: instant(session_id.minted_ms()),
        updated_at: None,
        events: 0,
        bytes: 0,
        kept: false,
        run_count: 0,
        latest_run: None,
        imported: None,
    }
}

async fn summarize(
    store: &Store,
    session_id: SessionId,
    status: &Status,
    view: &SessionView,
) -> cairn_store::Result<Summary> {
    let latest_run = match latest_first(view).first() {
        Some(run) => describe(store, view, *run).await,
        None => None,
    };
    let imported = store.sessions.origin(session_id).await?.map(origin);
    let rests = imported.as_ref().is_some_and(|origin| origin.trusted_by.is_none());
    Ok(Summary {
        session_id,
        health: status.health.into(),
        damage: status.damage.clone(),
        created_at: instant(session_id.minted_ms()),
        updated_at: view.times.and_then(|times| instant(times.last_ms)),
        events: status.events,
        bytes: status.bytes,
        kept: status.kept,
        run_count: count(view.runs.len()),
        latest_run: latest_run.map(|run| if rests { at_rest(run) } else { run }),
        imported,
    })
}

fn origin(origin: cairn_store::port::Origin) -> Origin {
    let trusted = origin.trusted.as_ref();
    Origin {
        original_session_id: origin.session,
        root_hash: origin.root,
        trusted_by: trusted.map(|trusted| trusted.by.clone()),
        trusted_at: trusted.and_then(|trusted| instant(trusted.at_ms)),
    }
}

/// A run of a session that nobody trusts: it rests, whatever it says itself.
fn at_rest(run: Run) -> Run {
    let over = ["succeeded", "failed", "cancelled", "complete", "complete_with_gaps"];
    let status = if over.contains(&run.status.as_str()) { run.status } else { "paused".to_owned() };
    Run { status, ..run }
}

pub(super) fn latest_first(view: &SessionView) -> Vec<RunId> {
    let mut runs: Vec<_> = view.runs.iter().collect();
    runs.sort_by_key(|(_, run)| Reverse(run.last_index));
    runs.into_iter().map(|(id, _)| *id).collect()
}

async fn describe(store: &Store, view: &SessionView, run_id: RunId) -> Option<Run> {
    let run = view.runs.get(&run_id)?;
    Some(Run {
        run_id,
        kind: match run.progress {
            Progress::Guided(_) => RunKind::Guided,
            Progress::Engine(_) => RunKind::Engine,
        },
        label: label(run_id, run),
        status: run_status(store, view, run_id, run).await.unwrap_or("unknown").to_owned(),
        workflow_id: run.workflow_id.clone(),
        workflow_hash: run.workflow_hash,
        events: run.events,
        nodes: run.nodes,
        created_at: instant(run.times.first_ms),
        updated_at: instant(run.times.last_ms),
    })
}

/// The label of a guided run.
pub(super) fn label(run_id: RunId, run: &RunView) -> Option<String> {
    run.dag()?;
    Some(guided::label(run.workflow_id.as_deref()?, run_id).as_str().to_owned())
}

/// A guided run's status depends on the snapshot at its tip; none when that cannot be read.
async fn run_status(
    store: &Store,
    view: &SessionView,
    run_id: RunId,
    run: &RunView,
) -> Option<&'static str> {
    let complete = match run.dag().and_then(|dag| dag.preferred_tip()) {
        Some(tip) => is_complete(store, tip.snapshot).await?,
        None => false,
    };
    Some(view.status(run_id, |_| complete)?.name())
}

async fn is_complete(store: &Store, snapshot: SnapshotRef) -> Option<bool> {
    let bytes = store.blobs.get(BlobKind::Snapshot, snapshot.0).await.ok()?;
    Snapshot::decode(&bytes).ok()?.is_complete()
}

fn observations(view: &SessionView) -> Vec<Observation> {
    let observed = view.observations.iter();
    observed
        .map(|(key, seen)| Observation {
            key: key.name().to_owned(),
            value: seen.value.as_str().to_owned(),
        })
        .collect()
}

fn timeline(events: &[Event], moments: usize) -> Vec<Moment> {
    let last = events.iter().skip(events.len().saturating_sub(moments));
    Timeline::fold(last).entries().iter().map(moment).collect()
}

fn moment(entry: &Entry) -> Moment {
    Moment {
        index: entry.index,
        at: instant(entry.at_ms),
        kind: entry.kind.name().to_owned(),
        run_id: entry.scope.run(),
        node_id: entry.scope.node(),
        text: entry.text.clone(),
    }
}

pub(super) fn instant(ms: u64) -> Option<String> {
    time::plausible(ms).and_then(time::rfc3339)
}

pub(super) fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
