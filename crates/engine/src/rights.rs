//! What whoever asked for a run may do, looked up when it is used.
//!
//! A run starts others with the rights of whoever asked for it: the token that it was asked for
//! with is recorded with it and with its children. Runs that a trigger started, and those that take
//! the failure of another, have the rights of their own workflow, which are all there are. So have
//! runs that were asked for without a token: by somebody at this machine, or with the admin token.

use async_trait::async_trait;

use crate::catalog::Identity;
use crate::error::Result;
use crate::flow::Roles;

/// Knows tokens.
#[async_trait]
pub trait Rights: Send + Sync {
    /// What a token allows at this moment.
    async fn of(&self, token_id: &str) -> Result<Grant>;
}

/// There are no tokens: none allows anything.
pub struct NoTokens;

#[async_trait]
impl Rights for NoTokens {
    async fn of(&self, token_id: &str) -> Result<Grant> {
        Ok(Grant::nothing(token_id, "is not known here"))
    }
}

/// What a token allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Whose it is, for people.
    pub who: String,
    /// Why it allows nothing any more, if it does not.
    pub ended: Option<&'static str>,
    /// Whether it allows to start runs.
    pub may_run: bool,
    /// The roles that go with it.
    pub roles: Roles,
    /// The workflows that it is for; all of them when there are none.
    pub workflows: Vec<Limit>,
}

/// A workflow that a token is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Its id.
    pub id: String,
    /// The key of its identity, which tells it from others of the same id. Tokens of earlier
    /// versions have none, and are for every workflow of the id.
    pub key: Option<String>,
}

impl Limit {
    /// The limit to one workflow.
    #[must_use]
    pub fn to(workflow: &Identity) -> Self {
        Self { id: workflow.id().to_owned(), key: Some(workflow.key().to_owned()) }
    }

    /// Whether it is this workflow.
    #[must_use]
    pub fn is(&self, workflow: &Identity) -> bool {
        match &self.key {
            Some(key) => key == workflow.key(),
            None => self.id == workflow.id(),
        }
    }
}

impl From<String> for Limit {
    fn from(id: String) -> Self {
        Self { id, key: None }
    }
}

impl From<&str> for Limit {
    fn from(id: &str) -> Self {
        id.to_owned().into()
    }
}

impl Grant {
    /// A token that allows nothing.
    #[must_use]
    pub fn nothing(token_id: &str, why: &'static str) -> Self {
        Self {
            who: format!("the token {token_id}"),
            ended: Some(why),
            may_run: false,
            roles: Roles::Of(std::collections::BTreeSet::new()),
            workflows: Vec::new(),
        }
    }

    /// What keeps its holder from starting a workflow, roles aside.
    pub(crate) fn obstacle(&self, workflow: &Identity) -> Option<String> {
        let is_covered = self.workflows.is_empty() || self.workflows.iter().any(|l| l.is(workflow));
        match (self.ended, self.may_run, is_covered) {
            (Some(why), ..) => Some(why.to_owned()),
            (None, false, _) => Some("lacks the scope `run`".to_owned()),
            (None, true, false) => Some("is limited to other workflows".to_owned()),
            (None, true, true) => None,
        }
    }
}
