//! Tokens that open the server. Only their digests are kept, in one document, which is read
//! again when it changes.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cairn_api::error::{Error, Result};
use cairn_api::time::rfc3339;
use cairn_api::token::{Scope, Token, TokenKind, roles};
use cairn_core::digest::Digest;
use cairn_engine::record::changes::Changes;
use cairn_engine::record::{Action, Object};
use cairn_engine::rights::{Grant, Limit, Rights};
use cairn_store::port::documents::{Documents, Name, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock::now_ms;

/// What a token starts with, so that it is known when it leaks.
pub const TOKEN_PREFIX: &str = "cairn_tok_";
const VERSION: u32 = 1;
static DOCUMENT: Name = Name::fixed("keys/tokens.json");

/// The tokens of a store.
pub struct Tokens {
    documents: Arc<dyn Documents>,
    known: Mutex<Option<(Stamp, Arc<Content>)>>,
}

/// A token that is to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Whose it is, for people.
    pub name: String,
    /// Who it is for.
    pub kind: TokenKind,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// The workflows that it is for; all of them when there are none.
    pub workflows: Vec<Limit>,
    /// Until when it is good.
    pub expires_ms: Option<u64>,
}

impl Wanted {
    /// A token of a name that can be written everywhere.
    pub fn new(
        (name, kind): (String, TokenKind),
        mut scopes: Vec<Scope>,
        workflows: Vec<Limit>,
        expires_ms: Option<u64>,
    ) -> Result<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(Error::Usage {
                message: format!("`{}` cannot name a token", name.escape_debug()),
                suggestion: "use letters, digits, `-`, `_`, `.` and `@`, such as `ci`".to_owned(),
            });
        }
        if scopes.is_empty() {
            return Err(Error::Usage {
                message: "a token without scopes opens nothing".to_owned(),
                suggestion: "name at least one scope, such as `read`".to_owned(),
            });
        }
        if let Some(scope) = scopes.iter().find(|scope| !kind.can_hold(**scope)) {
            return Err(Error::Usage {
                message: format!("a token of an agent cannot have the scope `{scope}`"),
                suggestion:
                    "give it read, run and edit; what is for people takes a token of a person"
                        .to_owned(),
            });
        }
        scopes.sort_unstable();
        scopes.dedup();
        Ok(Self { name, kind, scopes, workflows, expires_ms })
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Content {
    tokens: Vec<Record>,
    v: u32,
}

/// A token, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Record {
    created_ms: u64,
    digest: Digest,
    expires_ms: Option<u64>,
    pub(crate) id: String,
    /// Tokens of earlier versions are for people.
    #[serde(default)]
    pub(crate) kind: TokenKind,
    pub(crate) name: String,
    revoked_ms: Option<u64>,
    scopes: Vec<Scope>,
    used_ms: Option<u64>,
    workflows: Vec<Kept>,
}

/// A workflow that a token is for, as it is kept. Earlier versions kept ids alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Kept {
    Id(String),
    Bound { id: String, key: String },
}

impl From<Limit> for Kept {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit { id, key: Some(key) } => Self::Bound { id, key },
            Limit { id, key: None } => Self::Id(id),
        }
    }
}

impl Kept {
    fn limit(&self) -> Limit {
        match self {
            Self::Id(id) => id.clone().into(),
            Self::Bound { id, key } => Limit { id: id.clone(), key: Some(key.clone()) },
        }
    }
}

impl Tokens {
    /// The tokens of a store.
    #[must_use]
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self { documents, known: Mutex::new(None) }
    }

    /// Every token, oldest first.
    pub async fn list(&self) -> Result<Vec<Token>> {
        Ok(self.read().await?.tokens.iter().map(Record::shown).collect())
    }

    /// Keeps the digest of a token that was made up.
    pub async fn create(
        &self,
        on_behalf: &Changes,
        text: &str,
        wanted: Wanted,
        now_ms: u64,
    ) -> Result<Token> {
        let arguments = json!({
            "name": wanted.name, "kind": wanted.kind, "scopes": wanted.scopes, "workflows": wanted.workflows.iter().map(|limit| &limit.id).collect::<Vec<_>>(),
            "expiresMs": wanted.expires_ms,
        });
        let object = named(id_of(&Digest::of(text.as_bytes())));
        let deed = on_behalf.deed(Action::CreateToken, object, &arguments);
        on_behalf.make(deed, self.keep(text, wanted, now_ms)).await
    }

    async fn keep(&self, text: &str, wanted: Wanted, now_ms: u64) -> Result<Token> {
        self.change(|content| {
            let Wanted { name, kind, scopes, workflows, expires_ms } = wanted.clone();
            let digest = Digest::of(text.as_bytes());
            if content.tokens.iter().any(|known| known.name == name && known.revoked_ms.is_none()) {
                return Err(Error::Usage {
                    message: format!("there is a token of the name `{name}`"),
                    suggestion: "give it another name, or revoke that one first".to_owned(),
                });
            }
            let record = Record {
                created_ms: now_ms,
                id: id_of(&digest),
                digest,
                expires_ms,
                kind,
                name,
                revoked_ms: None,
                scopes,
                used_ms: None,
                workflows: workflows.into_iter().map(Into::into).collect(),
            };
            let shown = record.shown();
            content.tokens.push(record);
            Ok(shown)
        })
        .await
    }

    /// Lets a token be good no more. It is named by its id, or by its name.
    pub async fn revoke(&self, on_behalf: &Changes, given: &str, now_ms: u64) -> Result<Token> {
        let unknown = || Error::TokenUnknown(given.chars().take(64).collect());
        let is_meant = |token: &&Record| {
            token.id == given || (token.name == given && token.revoked_ms.is_none())
        };
        let content = self.read().await?;
        let was = |token: &&Record| token.id == given || token.name == given;
        let found = content.tokens.iter().find(is_meant);
        let found = found.or_else(|| content.tokens.iter().find(was)).ok_or_else(unknown)?;
        if found.revoked_ms.is_some() {
            return Err(Error::TokenRevoked(found.name.clone()));
        }
        let id = found.id.clone();
        let deed = on_behalf.deed(Action::RevokeToken, named(id.clone()), &json!({"given": given}));
        let work = self.change(|content| {
            let found = content.tokens.iter_mut().find(|token| token.id == id);
            let token = found.ok_or_else(unknown)?;
            token.revoked_ms.get_or_insert(now_ms);
            Ok(token.shown())
        });
        on_behalf.make(deed, work).await
    }

    /// The token that this text is, if it is good.
    pub(crate) async fn find(&self, text: &[u8], now_ms: u64) -> Result<Option<Record>> {
        let digest = Digest::of(text);
        let content = self.read().await?;
        // Digests of secrets are compared, which tell nothing of the secrets.
        let found = content.tokens.iter().find(|token| token.digest == digest);
        Ok(found.filter(|token| token.is_good(now_ms)).cloned())
    }

    /// Notes that a token is used.
    pub(crate) async fn note_use(&self, id: &str, now_ms: u64) -> Result<()> {
        self.change(|content| {
            if let Some(token) = content.tokens.iter_mut().find(|token| token.id == id) {
                token.used_ms = Some(now_ms);
            }
            Ok(())
        })
        .await
    }

    async fn read(&self) -> Result<Arc<Content>> {
        let Some(stamp) = self.documents.stamp(&DOCUMENT).await? else { return Ok(Arc::default()) };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, content)) = known.filter(|(at, _)| *at == stamp) {
            return Ok(content);
        }
        self.require_private().await?;
        let found = self.documents.read(&DOCUMENT).await?;
        let content = Arc::new(self.parse(found.as_ref().map(|found| &*found.bytes))?);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((stamp, Arc::clone(&content)));
        Ok(content)
    }

    fn parse(&self, bytes: Option<&[u8]>) -> Result<Content> {
        let Some(bytes) = bytes else { return Ok(Content::default()) };
        let content: Content =
            serde_json::from_slice(bytes).map_err(|error| self.unusable(error.to_string()))?;
        match content.v {
            VERSION => Ok(content),
            other => Err(self.unusable(format!("it has version {other}"))),
        }
    }

    async fn require_private(&self) -> Result<()> {
        match self.documents.exposed(&DOCUMENT).await? {
            Some(what) => Err(self.unusable(what)),
            None => Ok(()),
        }
    }

    fn unusable(&self, what: String) -> Error {
        Error::TokensUnusable { path: self.documents.place(&DOCUMENT).into(), what }
    }

    /// Changes the tokens; `change` is asked again when somebody else was faster.
    async fn change<T>(&self, mut change: impl FnMut(&mut Content) -> Result<T>) -> Result<T> {
        self.require_private().await?;
        let change = |old: Option<&[u8]>| {
            let mut content = self.parse(old)?;
            content.v = VERSION;
            let answer = change(&mut content)?;
            let bytes = serde_json::to_vec_pretty(&content);
            let bytes = bytes.map_err(|error| Error::Internal(error.to_string()))?;
            Ok::<_, Error>((Some(bytes), answer))
        };
        self.documents.update(&DOCUMENT, change).await
    }
}

#[async_trait]
impl Rights for Tokens {
    async fn of(&self, token_id: &str) -> cairn_engine::Result<Grant> {
        // Tokens that cannot be read allow nothing.
        let Ok(content) = self.read().await else {
            return Ok(Grant::nothing(token_id, "cannot be looked up"));
        };
        let Some(token) = content.tokens.iter().find(|token| token.id == token_id) else {
            return Ok(Grant::nothing(token_id, "is not known here"));
        };
        let ended = match (token.revoked_ms, token.is_good(now_ms())) {
            (Some(_), _) => Some("was revoked"),
            (None, false) => Some("has expired"),
            (None, true) => None,
        };
        let scopes = token.scopes();
        let may_run = scopes.iter().any(|s| matches!(s, Scope::Run | Scope::Admin));
        Ok(Grant {
            who: format!("the token `{}` ({token_id})", token.name),
            ended,
            may_run,
            roles: roles(&scopes),
            workflows: token.limits(),
        })
    }
}

impl Record {
    fn is_good(&self, now_ms: u64) -> bool {
        self.revoked_ms.is_none() && self.expires_ms.is_none_or(|until| now_ms < until)
    }

    /// What it allows, whatever was written into the file.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        let held = self.scopes.iter().copied();
        held.filter(|scope| self.kind.can_hold(*scope)).collect()
    }

    /// The workflows that it is for; all of them when there are none.
    pub(crate) fn limits(&self) -> Vec<Limit> {
        self.workflows.iter().map(Kept::limit).collect()
    }

    fn shown(&self) -> Token {
        Token {
            token_id: self.id.clone(),
            name: self.name.clone(),
            kind: self.kind,
            scopes: self.scopes(),
            workflows: self.limits().into_iter().map(|limit| limit.id).collect(),
            created_at: rfc3339(self.created_ms),
            expires_at: self.expires_ms.and_then(rfc3339),
            last_used_at: self.used_ms.and_then(rfc3339),
            revoked: self.revoked_ms.is_some(),
        }
    }
}

/// Something that goes by a name.
fn named(name: String) -> Object {
    Object { name, ..Object::default() }
}

/// The id of a token, which tells nothing of it.
fn id_of(digest: &Digest) -> String {
    let again = Digest::of(digest.as_bytes()).to_string();
    let hex = again.strip_prefix("sha256:").unwrap_or(&again);
    format!("tok_{}", hex.get(..12).unwrap_or(hex))
}

#[cfg(test)]
mod tests {
    use cairn_engine::host::SystemHost;

    use super::*;

    fn wanted(name: &str, expires_ms: Option<u64>) -> Wanted {
        Wanted {
            kind: TokenKind::default(),
            name: name.to_owned(),
            scopes: vec![Scope::Read],
            workflows: Vec::new(),
            expires_ms,
        }
    }

    fn changes() -> Changes {
        let store = cairn_store::open(&cairn_store::Config::Memory).unwrap();
        let record = cairn_engine::record::Record::new(&store, SystemHost::shared());
        Changes::new(&record, &store, "me".into())
    }

    fn tokens_in(home: &std::path::Path) -> Tokens {
        let store = cairn_store::open(&cairn_store::Config::files(home)).unwrap();
        Tokens::new(store.documents)
    }

    // case: auth.expiry
    #[tokio::test]
    async fn a_token_is_good_until_it_expires_or_is_revoked() {
        let home = tempfile::tempdir().unwrap();
        let tokens = tokens_in(home.path());
        let made =
            tokens.create(&changes(), "cairn_tok_a", wanted("a", Some(100)), 1).await.unwrap();
        tokens.create(&changes(), "cairn_tok_b", wanted("b", None), 2).await.unwrap();
        // Another process sees the same.
        let others = tokens_in(home.path());
        assert_eq!(others.find(b"cairn_tok_a", 99).await.unwrap().unwrap().id, made.token_id);
        assert!(others.find(b"cairn_tok_a", 100).await.unwrap().is_none());
        assert!(others.find(b"cairn_tok_c", 1).await.unwrap().is_none());
        assert!(others.find(b"cairn_tok_b", u64::MAX).await.unwrap().is_some());
        tokens.revoke(&changes(), "b", 3).await.unwrap();
        assert!(others.find(b"cairn_tok_b", 4).await.unwrap().is_none());
        let unknown = tokens.revoke(&changes(), "nobody", 3).await.unwrap_err();
        assert_eq!(unknown.code(), "ACCESS_TOKEN_NOT_FOUND");
        let text = std::fs::read_to_string(home.path().join("keys/tokens.json")).unwrap();
        assert!(!text.contains("cairn_tok_"), "{text}");
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_or_that_is_damaged_opens_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let tokens = tokens_in(home.path());
        tokens.create(&changes(), "cairn_tok_a", wanted("a", None), 1).await.unwrap();
        let path = home.path().join("keys/tokens.json");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let others = tokens_in(home.path());
        assert_eq!(
            others.find(b"cairn_tok_a", 1).await.unwrap_err().code(),
            "ACCESS_TOKENS_UNUSABLE"
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "{").unwrap();
        let others = tokens_in(home.path());
        assert_eq!(
            others.find(b"cairn_tok_a", 1).await.unwrap_err().code(),
            "ACCESS_TOKENS_UNUSABLE"
        );
    }
}
