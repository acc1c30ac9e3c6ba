//! Tokens: what their holders may do, and for how long.

use std::fmt;
use std::str::FromStr;

use cairn_core::event::{ActorKind, By, Door, Via};
use cairn_engine::flow::Roles;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Something that a token allows.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
pub enum Scope {
    /// Looking at workflows, runs and sessions.
    #[serde(rename = "read")]
    Read,
    /// Starting and steering runs.
    #[serde(rename = "run")]
    Run,
    /// Changing workflows.
    #[serde(rename = "edit")]
    Edit,
    /// Answering the questions of runs.
    #[serde(rename = "approve")]
    Approve,
    /// Setting secrets.
    #[serde(rename = "secrets:write")]
    SecretsWrite,
    /// Everything.
    #[serde(rename = "admin")]
    Admin,
}

impl Scope {
    /// Every scope there is.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Run, Self::Edit, Self::Approve, Self::SecretsWrite, Self::Admin];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Edit => "edit",
            Self::Approve => "approve",
            Self::SecretsWrite => "secrets:write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who a token is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// A person, or a program that a person answers for.
    #[default]
    Person,
    /// An agent that a model drives. It can work, and decides nothing that is for people.
    Agent,
}

impl TokenKind {
    /// Whether such a token can allow this. What an agent is told may come from anybody, so it
    /// neither approves nor trusts, and gives nobody else rights or secrets.
    #[must_use]
    pub const fn can_hold(self, scope: Scope) -> bool {
        match self {
            Self::Person => true,
            Self::Agent => matches!(scope, Scope::Read | Scope::Run | Scope::Edit),
        }
    }
}

/// Whoever comes in, known by what they may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// What they may do.
    pub scopes: Vec<Scope>,
    /// Who they are, as it is recorded.
    pub by: By,
}

impl Default for Holder {
    /// An agent that nobody knows and that may do nothing.
    fn default() -> Self {
        Self { scopes: Vec::new(), by: agent("agent", None) }
    }
}

/// An agent, by the name and the id of the token that it came with.
#[must_use]
pub fn agent(name: &str, token_id: Option<String>) -> By {
    let via = Via { actor: ActorKind::Agent, door: Door::Mcp, line: None, token_id };
    By { name: name.to_owned(), via: Some(via) }
}

impl Holder {
    /// The roles that they have.
    #[must_use]
    pub fn roles(&self) -> Roles {
        roles(&self.scopes)
    }
}

/// The roles that go with scopes: each is one, and an administrator has all.
#[must_use]
pub fn roles(scopes: &[Scope]) -> Roles {
    match scopes.contains(&Scope::Admin) {
        true => Roles::Any,
        false => Roles::Of(scopes.iter().map(|scope| scope.name().to_owned()).collect()),
    }
}

/// A text that names no scope.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no scope `{0}`; there are read, run, edit, approve, secrets:write and admin")]
pub struct UnknownScope(pub String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let found = Self::ALL.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// A token, as far as it can be shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// Its own id, which is no secret.
    pub token_id: String,
    /// Whose it is, for people.
    pub name: String,
    /// Who it is for.
    pub kind: TokenKind,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// The workflows that it is for; all of them when there are none.
    pub workflows: Vec<String>,
    /// When it was made.
    pub created_at: Option<String>,
    /// Until when it is good; for good when there is no such time.
    pub expires_at: Option<String>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<String>,
    /// Whether it is good no more.
    pub revoked: bool,
}

/// A token that is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MakeToken {
    /// Whose it is; runs and the audit record call its holder by this name.
    pub name: String,
    /// Who it is for; a token of an agent cannot allow to approve, to set secrets or to administer.
    #[serde(default)]
    pub kind: TokenKind,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// The workflows that it is for; all of them when there are none.
    #[serde(default)]
    pub workflows: Vec<String>,
    /// How many seconds it is good; 90 days when nothing is said, and for good with `null`.
    #[serde(default)]
    pub expires_in_sec: GoodFor,
}

/// How many seconds a token is good; for good when there are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GoodFor(pub Option<u64>);

impl GoodFor {
    /// How many seconds a token is good at most, unless it is for good: a hundred years.
    pub const MAX_SEC: u64 = 36_500 * 86_400;

    /// The span in milliseconds, if a token may be good for so long.
    pub fn span_ms(self) -> Result<Option<u64>, Error> {
        match self.0 {
            None => Ok(None),
            Some(seconds @ 1..=Self::MAX_SEC) => Ok(Some(seconds * 1_000)),
            Some(_) => Err(Error::RequestInvalid(format!(
                "`expiresInSec` is a whole number from 1 to {}, or null for good",
                Self::MAX_SEC
            ))),
        }
    }
}

impl Default for GoodFor {
    fn default() -> Self {
        Self(Some(90 * 86_400))
    }
}

/// A token that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenMade {
    /// Its text, which is told this once.
    pub token: String,
    /// The token.
    #[serde(flatten)]
    pub about: Token,
}

/// The tokens there are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// The tokens, oldest first.
    pub items: Vec<Token>,
}
