//! Finding the run that somebody means who has no token.

use cairn_core::projection::resume::{Candidate, Query, rank};
use cairn_core::projection::session::Status;

use super::answer::{Resumable, RunRef};
use super::ask::Resume;
use super::position::Position;
use super::session;
use super::tokens::Spot;
use super::{Inner, workspace};
use crate::error::{Error, Result};
use cairn_core::token::compact::Kind;
use cairn_store as store;

pub(super) async fn resume(inner: &Inner, ask: Resume) -> Result<Vec<Resumable>> {
    let root = ask.workspace.as_ref().or(inner.options.workspace.as_ref());
    let here = root.and_then(|root| workspace::checkout(root)).unwrap_or_default();
    let query = Query {
        git_head_sha: ask.git_head_sha.or(here.head),
        git_branch: ask.git_branch.or(here.branch),
        text: ask.query,
    };
    let offers = rank(&query, candidates(inner).await?);
    let keys = inner.store.keys.load().await?;
    let mut found = Vec::new();
    for offer in offers {
        let Candidate { session: id, run, tip, ref workflow_id, .. } = offer.candidate;
        let session = session::read(&inner.store, id).await?;
        let position = Position::load(inner, &session, run, tip).await?;
        let spot = Spot::new(&session, run, tip);
        let complete = position.state.is_complete();
        let status = match session.view.status(run, |_| complete) {
            Some(Status::Guided(status)) => status.name(),
            _ => continue,
        };
        found.push(Resumable {
            run: RunRef { session: id, run },
            label: spot.label.as_str().to_owned(),
            workflow_id: workflow_id.clone(),
            status,
            pending_step: position.step().map(|step| step.title.clone()),
            why: offer.why,
            snippet: offer.snippet,
            continue_token: spot.token(&session, Kind::Continue, session.unused(tip), &keys)?,
        });
    }
    Ok(found)
}

/// The guided runs of every sound session. A damaged one is never offered.
async fn candidates(inner: &Inner) -> Result<Vec<Candidate>> {
    let mut all = Vec::new();
    for id in inner.store.sessions.list().await? {
        match session::read(&inner.store, id).await {
            Ok(session) => all.extend(session.view.candidates()),
            Err(Error::Store(store::Error::Io { .. } | store::Error::Busy { .. })) => continue,
            Err(Error::Store(_)) => continue,
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}
