//! Which session somebody means by a text.

use cairn_core::id::SessionId;
use cairn_core::projection::session::SessionView;
use cairn_core::token::compact::Label;
use cairn_store::Store;

use super::read::label;
use crate::error::{Error, Result};

/// How many characters it takes to name a session, beside the prefix of every id.
const LEN_MIN: usize = 6;

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
    if !is_beginning(text) {
        return Err(Error::SessionIdInvalid(text.chars().take(64).collect()));
    }
    let mut matches = store.sessions.list().await?;
    matches.retain(|session| session.to_string().starts_with(text));
    match matches.as_slice() {
        [] => Err(Error::SessionUnknown(text.to_owned())),
        [session] => Ok(*session),
        _ => Err(Error::SessionIdAmbiguous { prefix: text.to_owned(), matches }),
    }
}

/// The session whose run has a label. Sessions that cannot be read are passed over.
async fn labelled(store: &Store, text: &str) -> Result<SessionId> {
    let mut matches = Vec::new();
    for session in store.sessions.list().await? {
        let Ok(prefix) = store.log.read_prefix(session).await else { continue };
        let view = SessionView::fold(&prefix.events);
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

fn is_beginning(text: &str) -> bool {
    let whole = SessionId::from_bits(0).to_string().len();
    let prefix = format!("{}_", SessionId::PREFIX);
    text.len() < whole
        && text.strip_prefix(&prefix).is_some_and(|rest| {
            rest.len() >= LEN_MIN
                && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_long_enough_and_shorter_than_an_id() {
        assert!(is_beginning("sess_01hf7y"));
        for text in
            ["", "sess_", "sess_01hf7", "01hf7yat00", "run_01hf7yat", "sess_01HF7Y", "sess_../../x"]
        {
            assert!(!is_beginning(text), "{text}");
        }
        assert!(!is_beginning("sess_01hf7yat000000000000000007"));
    }
}
