//! Who asked for something, and through which door.

use serde::{Deserialize, Serialize};

use super::engine::ENGINE;
use crate::digest::Digest;

/// Who says something to a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct By {
    /// The name, as people know it.
    pub name: String,
    /// What is known of how it was said; logs from before it was recorded have none.
    pub via: Option<Via>,
}

impl By {
    /// The engine, of its own accord.
    #[must_use]
    pub fn engine() -> Self {
        let via = Via { actor: ActorKind::Engine, door: Door::Engine, line: None, token_id: None };
        Self { name: ENGINE.to_owned(), via: Some(via) }
    }

    /// The same, once a line of the audit record says so.
    #[must_use]
    pub fn on_record(self, line: AuditLine) -> Self {
        let via = self.via.map(|via| Via { line: Some(line), ..via });
        Self { via, ..self }
    }
}

impl From<String> for By {
    fn from(name: String) -> Self {
        Self { name, via: None }
    }
}

impl From<&str> for By {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

impl From<&String> for By {
    fn from(name: &String) -> Self {
        name.as_str().into()
    }
}

/// How something was said: by what kind of actor, through which door.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Via {
    /// What kind of actor.
    pub actor: ActorKind,
    /// Through which door.
    pub door: Door,
    /// The line of the audit record that let it through. A record that was cut or deleted is
    /// known by the lines that events name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<AuditLine>,
    /// The token that let it in, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
}

/// A line of the audit record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditLine {
    /// Its own digest, which vouches for all lines before it.
    pub digest: Digest,
    /// Its place; the first is 0.
    pub index: u64,
}

/// The kinds of actors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A person.
    Person,
    /// An agent that a model drives.
    Agent,
    /// A program that came with a token.
    Program,
    /// The engine itself.
    Engine,
    /// Another run: the parent of a child, or one that failed.
    Run,
}

/// The ways in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// The command line.
    Cli,
    /// The HTTP interface, which the console uses too.
    Http,
    /// MCP.
    Mcp,
    /// A webhook.
    Webhook,
    /// A schedule.
    Schedule,
    /// A message in a channel.
    Channel,
    /// A step of another run that starts this one as its child.
    Child,
    /// A run that failed and whose workflow names this one for that.
    Error,
    /// None: the engine decided it.
    Engine,
}
