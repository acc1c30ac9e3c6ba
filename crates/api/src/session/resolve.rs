//! Which session somebody means by a text.

use cairn_core::id::{RunId, SessionId};
use cairn_core::projection::session::SessionView;
use cairn_core::token::compact::Label;
use cairn_store::Store;

use super::read::label;
use crate::beginning::{Meant, is_beginning, meant};
use crate::error::{Error, Result};

/// The session with this id, the only one whose id begins like this, or the one that holds the
/// run with this label.
///
/// A whole id is taken as it is, whether there is such a session or not.
pub async fn resolve(store: &Store, text: &str) -> Result<SessionId> {
    if let Ok(session) = text.parse() {
        return Ok(session);
    }
    if text.contains('-') && Label::new(text).is_some() {
        return labelled(store, text).await;
    }
    if !is_beginning(text, SessionId::PREFIX, SessionId::from_bits(0)) {
        return Err(Error::SessionIdInvalid(text.chars().take(64).collect()));
    }
    match meant(text, store.sessions.list().await?) {
        Meant::None => Err(Error::SessionUnknown(text.to_owned())),
        Meant::One(session) => Ok(session),
        Meant::Several(matches) => {
            Err(Error::SessionIdAmbiguous { prefix: text.to_owned(), matches })
        }
    }
}

/// The same, where a run stands for the session that it is recorded in.
pub async fn resolve_with_runs(store: &Store, text: &str) -> Result<SessionId> {
    let is_run =
        text.parse::<RunId>().is_ok() || is_beginning(text, RunId::PREFIX, RunId::from_bits(0));
    if !is_run {
        return resolve(store, text).await;
    }
    let mut runs = Vec::new();
    for (session, view) in views(store).await? {
        runs.extend(view.runs.keys().map(|run| (*run, session)));
    }
    let session = |run| runs.iter().find(|(id, _)| *id == run).map(|(_, session)| *session);
    match meant(text, runs.iter().map(|(run, _)| *run)) {
        Meant::None => Err(Error::RunUnknown(text.to_owned())),
        Meant::One(run) => session(run).ok_or_else(|| Error::RunUnknown(text.to_owned())),
        Meant::Several(matches) => Err(Error::RunIdAmbiguous { prefix: text.to_owned(), matches }),
    }
}

/// Every session that can be read.
async fn views(store: &Store) -> Result<Vec<(SessionId, SessionView)>> {
    let mut views = Vec::new();
    for session in store.sessions.list().await? {
        let Ok(prefix) = store.log.read_prefix(session).await else { continue };
        views.push((session, SessionView::fold(&prefix.events)));
    }
    Ok(views)
}

/// The session whose run has a label. Sessions that cannot be read are passed over.
async fn labelled(store: &Store, text: &str) -> Result<SessionId> {
    let mut matches = Vec::new();
    for (session, view) in views(store).await? {
        let mut runs = view.runs.iter();
        if runs.any(|(id, run)| label(*id, run).as_deref() == Some(text)) {
            matches.push(session);
        }
    }
    match matches.as_slice() {
        [] => Err(Error::SessionUnknown(text.to_owned())),
        [session] => Ok(*session),
        _ => Err(Error::SessionIdAmbiguous { prefix: text.to_owned(), matches }),
    }
}
