//! Finding the run that somebody means who has no token.

use std::collections::BTreeMap;

use cairn_core::event::limits;
use cairn_core::id::{EventIndex, NodeId, RunId, SessionId};
use cairn_core::projection::resume::{Candidate, Offer, Query, Ranked, rank};
use cairn_core::text::truncate;
use cairn_core::token::compact::Kind;
use cairn_store as store;
use cairn_store::port::search::{Findable, FindableRun, Wanted};
use cairn_store::port::{Mark, Moved, Which};
use serde::Deserialize;
use serde_json::json;

use super::answer::{Resumable, RunRef};
use super::ask::Resume;
use super::position::Position;
use super::session::{self, Session};
use super::tokens::Spot;
use super::{Inner, workspace};
use crate::error::{Error, Result};

/// How often the list is brought up to date before it is taken as it is.
const TRIES_MAX: usize = 3;
/// How many sessions are kept at once, while the list is made.
const PORTION: usize = 256;

/// The runs that are most likely meant, best first, and how many more there are. A damaged session
/// is never offered.
pub(super) async fn resume(inner: &Inner, ask: Resume) -> Result<(Vec<Resumable>, usize)> {
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
    let mut candidates = candidates(inner, &query).await?;
    loop {
        let Ranked { offers, more } = rank(&query, candidates.clone());
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
            None => return Ok((found, more)),
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

/// The guided runs that may be meant. What did not move since the last look is not read again.
async fn candidates(inner: &Inner, query: &Query) -> Result<Vec<Candidate>> {
    let wanted = Wanted {
        words: query.words(),
        commit: query.git_head_sha.clone().filter(|sha| !sha.is_empty()),
        branch: query.git_branch.clone().filter(|branch| !branch.is_empty()),
    };
    match listed(inner, &wanted).await {
        // Without the list every session is read.
        Err(Error::Store(_)) => all(inner).await,
        found => found,
    }
}

async fn listed(inner: &Inner, wanted: &Wanted) -> Result<Vec<Candidate>> {
    let mut tries = 0;
    // Somebody else may have read the same sessions, a moment earlier.
    while !catch_up(inner).await? && tries < TRIES_MAX {
        tries += 1;
    }
    let found = inner.store.search.find(wanted).await?;
    Ok(found.into_iter().filter_map(|(session, value)| read(session, &value)).collect())
}

async fn all(inner: &Inner) -> Result<Vec<Candidate>> {
    let mut all = Vec::new();
    for id in inner.store.sessions.list().await? {
        if let Ok(session) = session::read(&inner.store, id).await {
            all.extend(named(inner, &session).await);
        }
    }
    Ok(all)
}

/// Brings the list of what can be found up to date; says whether it is.
async fn catch_up(inner: &Inner) -> Result<bool> {
    let store = &inner.store;
    let since = store.search.place().await?;
    let moved = store.sessions.moved(since.as_ref()).await?;
    let (mut found, mut gone, mut is_all) = (Vec::new(), Vec::new(), true);
    for (session, known) in to_look_at(inner, &moved).await? {
        let mark = match moved.marks.get(&session) {
            Some(mark) => mark.clone(),
            None => store.sessions.mark(session).await?,
        };
        let Some(mark) = mark else {
            gone.push(session);
            continue;
        };
        if known.as_ref() == Some(&mark) {
            continue;
        }
        let (mark, runs) = match session::read(store, session).await {
            Ok(session) => (Some(mark), named(inner, &session).await),
            // Its mark changes when it is mended.
            Err(Error::Store(store::Error::Corrupt { .. })) => (Some(mark), Vec::new()),
            Err(_) => (None, Vec::new()),
        };
        let runs = runs.iter().map(findable).collect();
        found.push(Findable { session, known, mark, runs });
        if found.len() >= PORTION {
            is_all &= store.search.keep(std::mem::take(&mut found), Vec::new()).await?;
        }
    }
    if !found.is_empty() || !gone.is_empty() {
        is_all &= store.search.keep(found, gone).await?;
    }
    if is_all && since.as_ref() != Some(&moved.place) {
        store.search.reach(since.as_ref(), &moved.place).await?;
    }
    Ok(is_all)
}

/// The sessions to look at, each with the mark that it is known with: what moved, what is to be
/// looked at in any case, and what came or went by another way.
async fn to_look_at(inner: &Inner, moved: &Moved) -> Result<BTreeMap<SessionId, Option<Mark>>> {
    let search = &inner.store.search;
    let mut wanted: BTreeMap<_, _> = search.marks(&Which::Unsettled).await?.into_iter().collect();
    let these = match &moved.names {
        None => Which::These(moved.marks.keys().copied().collect()),
        Some(_) => Which::All,
    };
    let known: BTreeMap<_, _> = search.marks(&these).await?.into_iter().collect();
    let missing =
        |session: &&SessionId| moved.names.as_ref().is_some_and(|names| !names.contains(session));
    let gone = known.keys().filter(missing);
    let come = moved.names.iter().flatten().filter(|session| !known.contains_key(session));
    for session in moved.marks.keys().chain(gone).chain(come) {
        wanted.insert(*session, known.get(session).cloned().flatten());
    }
    Ok(wanted)
}

/// A run as it can be found.
fn findable(of: &Candidate) -> FindableRun {
    FindableRun {
        names: of.names(),
        is_over: of.finished,
        last_ms: of.last_ms,
        commit: of.git_head_sha.clone(),
        branch: of.git_branch.clone(),
        texts: of.words(),
        value: written(of),
    }
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
    /// Not there in what was kept before it was told from the notes.
    #[serde(default)]
    context: Vec<String>,
    workflow_id: String,
    workflow_name: Option<String>,
}

fn written(of: &Candidate) -> String {
    let value = json!({
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
        "context": of.context,
        "workflow_id": of.workflow_id,
        "workflow_name": of.workflow_name,
    });
    value.to_string()
}

/// A run as it was kept; none when it was kept in another shape.
fn read(session: SessionId, value: &str) -> Option<Candidate> {
    let kept: Kept = serde_json::from_str(value).ok()?;
    Some(Candidate {
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
        context: kept.context,
        workflow_id: kept.workflow_id,
        workflow_name: kept.workflow_name,
    })
}
