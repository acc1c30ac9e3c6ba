//! Finding the run that somebody means who has no token.

use std::collections::BTreeMap;

use cairn_core::event::limits;
use cairn_core::id::{EventIndex, NodeId, RunId, SessionId};
use cairn_core::projection::resume::{Candidate, Offer, Query, rank};
use cairn_core::text::truncate;
use cairn_core::token::compact::Kind;
use cairn_store as store;
use cairn_store::port::{Mark, Row};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Resumable, RunRef};
use super::ask::Resume;
use super::position::Position;
use super::session::{self, Session};
use super::tokens::Spot;
use super::{Inner, workspace};
use crate::error::{Error, Result};

/// What the rows are kept under. They change their name when they change their shape.
const ROWS: &str = "resume.4";

/// The runs that are most likely meant, best first. A damaged session is never offered.
pub(super) async fn resume(inner: &Inner, ask: Resume) -> Result<Vec<Resumable>> {
    let root = ask.workspace.as_ref().or(inner.options.workspace.as_ref());
    // Whoever asks by words means the words: every run of the project is on its branch.
    let root = root.filter(|_| ask.query.is_none());
    let here = root.and_then(|root| workspace::checkout(root)).unwrap_or_default();
    let query = Query {
        git_head_sha: ask.git_head_sha.or(here.head),
        // A long name was cut when it was observed.
        git_branch: ask.git_branch.or(here.branch).map(|b| truncate(&b, limits::SHORT_STRING)),
        text: ask.query,
    };
    let mut candidates = candidates(inner).await?;
    loop {
        let offers = rank(&query, candidates.clone());
        let mut found = Vec::new();
        let mut damaged = None;
        for offer in offers {
            let session = offer.candidate.session;
            match offered(inner, offer).await {
                Ok(offer) => found.push(offer),
                Err(error) if is_damage(&error) => {
                    damaged = Some(session);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        match damaged {
            None => return Ok(found),
            Some(session) => candidates.retain(|candidate| candidate.session != session),
        }
    }
}

/// Whether a session cannot be gone on with, whoever tries.
fn is_damage(error: &Error) -> bool {
    use store::Error::{BlobCorrupt, BlobMissing, Corrupt, NotFound, UnknownVersion};
    match error {
        Error::Broken(_) => true,
        Error::Store(error) => matches!(
            error,
            BlobCorrupt { .. }
                | BlobMissing { .. }
                | Corrupt { .. }
                | NotFound(_)
                | UnknownVersion { .. }
        ),
        _ => false,
    }
}

async fn offered(inner: &Inner, offer: Offer) -> Result<Resumable> {
    let Candidate { session: id, run, tip, .. } = offer.candidate;
    let session = session::read(&inner.store, id).await?;
    let position = Position::load(inner, &session, run, tip).await?;
    let spot = Spot::new(&session, run, tip);
    let complete = position.state.is_complete();
    let status = session.view.status_at(session.dag(run)?, tip, complete);
    let keys = inner.store.keys.load().await?;
    let idle_ms = inner.host.now_ms().saturating_sub(offer.candidate.last_ms);
    let blockers = session.view.attempts.blockers(tip).iter();
    Ok(Resumable {
        run: RunRef { session: id, run },
        label: spot.label.as_str().to_owned(),
        workflow_id: offer.candidate.workflow_id,
        goal: session.view.runs.get(&run).and_then(|run| run.goal.clone()),
        project: session.view.workspaces.get(&run).cloned(),
        idle_sec: idle_ms / 1000,
        branch: offer.candidate.branch,
        status: status.name(),
        blocked_by: blockers.map(|blocker| blocker.message.clone()).collect(),
        pending_step: position.step().map(|step| step.title.clone()),
        why: offer.why,
        snippet: offer.snippet,
        continue_token: spot.token(&session, Kind::Continue, inner.fresh()?, &keys)?,
    })
}

/// The guided runs of all sessions. What did not move since the last look is not read again.
async fn candidates(inner: &Inner) -> Result<Vec<Candidate>> {
    let store = &inner.store;
    let mut known: BTreeMap<SessionId, Row> =
        store.derived.load(ROWS).await?.into_iter().map(|row| (row.session, row)).collect();
    let mut all = Vec::new();
    let mut rows = Vec::new();
    for (id, mark) in store.sessions.marks().await? {
        let row = known.remove(&id).filter(|row| row.mark == mark);
        if let Some(read) = row.and_then(|row| read(id, &row.value)) {
            all.extend(read);
            continue;
        }
        let found = match session::read(store, id).await {
            Ok(session) => named(inner, &session).await,
            // Its mark changes when it is mended.
            Err(Error::Store(store::Error::Corrupt { .. })) => Vec::new(),
            Err(_) => continue,
        };
        rows.push(written(id, mark, &found));
        all.extend(found);
    }
    if !rows.is_empty() || !known.is_empty() {
        store.derived.save(ROWS, rows, known.into_keys().collect()).await?;
    }
    Ok(all)
}

/// The runs of a session, with what their plans and snapshots say of them.
async fn named(inner: &Inner, session: &Session) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = session.view.candidates().collect();
    for candidate in &mut found {
        // One whose plan or state cannot be read is not offered anyway.
        if let Ok(at) = Position::load(inner, session, candidate.run, candidate.tip).await {
            candidate.finished = at.state.is_complete();
            candidate.workflow_name = Some(at.plan.name.clone());
        }
    }
    found
}

/// What is kept of a run, so that its log is not read at every look.
#[derive(Deserialize)]
struct Kept {
    run: RunId,
    tip: NodeId,
    branch: bool,
    finished: bool,
    last_ms: u64,
    last_activity: EventIndex,
    git_head_sha: Option<String>,
    git_branch: Option<String>,
    goal: Option<String>,
    notes: Option<String>,
    texts: Vec<String>,
    workflow_id: String,
    workflow_name: Option<String>,
}

fn written(session: SessionId, mark: Mark, candidates: &[Candidate]) -> Row {
    let one = |of: &Candidate| {
        json!({
            "run": of.run,
            "tip": of.tip,
            "branch": of.branch,
            "finished": of.finished,
            "last_ms": of.last_ms,
            "last_activity": of.last_activity,
            "git_head_sha": of.git_head_sha,
            "git_branch": of.git_branch,
            "goal": of.goal,
            "notes": of.notes,
            "texts": of.texts,
            "workflow_id": of.workflow_id,
            "workflow_name": of.workflow_name,
        })
    };
    let value = Value::Array(candidates.iter().map(one).collect()).to_string();
    Row { session, mark, value }
}

fn read(session: SessionId, value: &str) -> Option<Vec<Candidate>> {
    let rows: Vec<Kept> = serde_json::from_str(value).ok()?;
    let candidate = |kept: Kept| Candidate {
        session,
        run: kept.run,
        tip: kept.tip,
        branch: kept.branch,
        finished: kept.finished,
        last_ms: kept.last_ms,
        last_activity: kept.last_activity,
        git_head_sha: kept.git_head_sha,
        git_branch: kept.git_branch,
        goal: kept.goal,
        notes: kept.notes,
        texts: kept.texts,
        workflow_id: kept.workflow_id,
        workflow_name: kept.workflow_name,
    };
    Some(rows.into_iter().map(candidate).collect())
}
