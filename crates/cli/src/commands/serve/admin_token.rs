//! The admin token: made once, kept for its owner alone.

use cairn_api::error::{Error, Result};
use cairn_engine::record::changes::Changes;
use cairn_engine::record::{Action, Object};
use cairn_store::Store;
use cairn_store::port::documents::Name;

use crate::fresh::{self, ADMIN_TOKEN_PREFIX};

/// The document that it is kept in.
pub(crate) static ADMIN_TOKEN: Name = Name::fixed("keys/admin.token");
/// The shortest secret that is taken: 160 bits in Crockford.
const SECRET_LEN_MIN: usize = 32;

/// The admin token.
pub(super) struct AdminToken {
    pub(super) text: String,
    /// Whether nobody has seen it yet.
    pub(super) is_new: bool,
}

/// Reads the token, or makes one when there is none.
pub(super) async fn load_or_make(store: &Store, on_behalf: &Changes) -> Result<AdminToken> {
    let documents = &*store.documents;
    let unusable =
        |what: String| Error::AdminToken { path: documents.place(&ADMIN_TOKEN).into(), what };
    if let Some(what) = documents.exposed(&ADMIN_TOKEN).await? {
        return Err(unusable(what));
    }
    let keep = |old: Option<&[u8]>| match old {
        Some(bytes) => {
            let text = read(bytes).map_err(unusable)?;
            Ok((None, AdminToken { text, is_new: false }))
        }
        None => {
            let text = fresh::admin_token()?;
            let line = format!("{text}\n").into_bytes();
            Ok::<_, Error>((Some(line), AdminToken { text, is_new: true }))
        }
    };
    if documents.stamp(&ADMIN_TOKEN).await?.is_some() {
        return documents.update(&ADMIN_TOKEN, keep).await;
    }
    let object = Object { name: "admin".to_owned(), ..Object::default() };
    let deed = on_behalf.deed(Action::CreateToken, object, &serde_json::Value::Null);
    on_behalf.make(deed, documents.update(&ADMIN_TOKEN, keep)).await
}

fn read(bytes: &[u8]) -> std::result::Result<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end();
    let secret = text.strip_prefix(ADMIN_TOKEN_PREFIX).unwrap_or_default();
    if secret.len() < SECRET_LEN_MIN || !secret.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(format!("it holds no token that starts with {ADMIN_TOKEN_PREFIX}"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use cairn_store::{Config, open};

    use super::*;

    async fn make(store: &Store) -> Result<AdminToken> {
        load_or_make(store, &crate::somebody::changes(store)).await
    }

    async fn what(text: &str) -> String {
        let store = open(&Config::Memory).unwrap();
        store.documents.replace(&ADMIN_TOKEN, None, text.as_bytes().to_vec()).await.unwrap();
        match make(&store).await {
            Ok(token) => token.text,
            Err(Error::AdminToken { what, .. }) => what,
            Err(error) => panic!("{error}"),
        }
    }

    fn files(home: &tempfile::TempDir) -> Store {
        open(&Config::files(home.path())).unwrap()
    }

    #[tokio::test]
    async fn a_token_is_made_once() {
        let home = tempfile::tempdir().unwrap();
        let first = make(&files(&home)).await.unwrap();
        let second = make(&files(&home)).await.unwrap();
        assert!(first.is_new && !second.is_new);
        assert_eq!(first.text, second.text);
        assert_eq!(first.text.len(), ADMIN_TOKEN_PREFIX.len() + 52);
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_kept_is_no_fault_of_the_token() {
        let home = tempfile::tempdir().unwrap();
        let store = files(&home);
        std::fs::write(home.path().join("keys"), "no folder").unwrap();
        let error = make(&store).await.err().unwrap();
        assert_eq!(error.code(), "STORE_IO");
        assert!(error.to_string().contains("keys/admin.token: "), "{error}");
    }

    #[tokio::test]
    async fn a_token_that_others_can_guess_is_not_used() {
        let good = format!("{ADMIN_TOKEN_PREFIX}{}", "a".repeat(32));
        assert_eq!(what(&good).await, good);
        for text in ["", "cairn_adm_", "cairn_adm_short", &good.replace("aa", "a b"), "hunter2"] {
            assert!(what(text).await.starts_with("it holds no token"), "{text}");
        }
    }
}
