//! Tokens in and out: what they name, and which ones an answer carries.

use cairn_core::guided::label::label;
use cairn_core::id::{AttemptId, NodeId, RunId, SessionId};
use cairn_core::keyring::Keyring;
use cairn_core::token::compact::{Attempt, CompactToken, Kind, Label};
use cairn_core::token::{AttemptToken, Error as Fault, Purpose, StateToken};

use super::answer::TokenSet;
use super::ask::{At, CheckpointAt, Tokens};
use super::session::Session;
use crate::error::{Error, Result};

/// What a call is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    pub(super) session: SessionId,
    pub(super) place: Place,
    /// The attempt; none when the caller only named the node.
    pub(super) attempt: Option<Try>,
}

/// A node, as a token names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// By the event that made it.
    Index(cairn_core::id::EventIndex),
    /// By its id, which the run and the plan must fit.
    Node(RunId, NodeId, cairn_core::digest::WorkflowHash),
}

/// An attempt, as a token names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Try {
    Short(Attempt),
    Long(AttemptId),
}

impl Try {
    pub(super) fn id(self, node: NodeId) -> AttemptId {
        match self {
            Self::Short(attempt) => attempt.id(node),
            Self::Long(id) => id,
        }
    }
}

/// Reads the tokens of a call to go on.
pub(super) fn read(at: &At, keys: &Keyring) -> Result<Target> {
    match at {
        At::Compact(text) => compact(text, Kind::Continue, keys),
        At::Pair { state, ack } => {
            let state = long_state(state, keys)?;
            let ack = ack.as_deref().map(|ack| long_attempt(ack, Purpose::Ack, "ackToken", keys));
            pair(&state, ack.transpose()?)
        }
    }
}

/// Reads the tokens of a call to leave a checkpoint at a node.
pub(super) fn read_checkpoint(at: &CheckpointAt, keys: &Keyring) -> Result<Target> {
    match at {
        CheckpointAt::Compact(text) => compact(text, Kind::Checkpoint, keys),
        CheckpointAt::Pair { state, checkpoint } => {
            let state = long_state(state, keys)?;
            let field = "checkpointToken";
            pair(&state, Some(long_attempt(checkpoint, Purpose::Checkpoint, field, keys)?))
        }
    }
}

fn pair(state: &StateToken, attempt: Option<AttemptToken>) -> Result<Target> {
    if let Some(attempt) = &attempt
        && attempt.belongs_to(state).is_err()
    {
        let message = match attempt.run == state.run {
            true => format!(
                "the two tokens belong to different steps of the run {}: nodes {} and {}",
                state.run, state.node, attempt.node
            ),
            false => format!(
                "the two tokens belong to different runs: `stateToken` to {}, the other to {}",
                state.run, attempt.run
            ),
        };
        let instead = "send both tokens from the same answer, the latest one of the run you mean; when they are lost, send `stateToken` alone to get the step again";
        return Err(Error::TokenScope { message, instead: instead.to_owned() });
    }
    Ok(Target {
        session: state.session,
        place: Place::Node(state.run, state.node, state.workflow_hash),
        attempt: attempt.map(|token| Try::Long(token.attempt)),
    })
}

fn compact(text: &str, kind: Kind, keys: &Keyring) -> Result<Target> {
    let (field, other_kind, other) = match kind {
        Kind::Continue => ("continueToken", Kind::Checkpoint, "checkpointToken"),
        Kind::Checkpoint => ("checkpointToken", Kind::Continue, "continueToken"),
    };
    let text = text.trim();
    for (prefix, name) in
        [("st.v", "stateToken"), ("ack.v", "ackToken"), ("chk.v", "checkpointToken")]
    {
        if text.starts_with(prefix) && (name != field) {
            return Err(misplaced(name, field));
        }
    }
    let token = CompactToken::verify(text, kind, keys).map_err(|source| {
        if source == Fault::BadSignature && CompactToken::verify(text, other_kind, keys).is_ok() {
            return misplaced(other, field);
        }
        Error::Token { field, source, instead: instead(field, source) }
    })?;
    Ok(Target {
        session: token.session,
        place: Place::Index(token.node),
        attempt: Some(Try::Short(token.attempt)),
    })
}

fn misplaced(found: &str, field: &str) -> Error {
    Error::TokenScope {
        message: format!("what came as `{field}` is a `{found}`"),
        instead: format!(
            "send the `{field}` of the latest answer of this run, or put the `{found}` where it belongs"
        ),
    }
}

fn instead(field: &str, fault: Fault) -> String {
    match fault {
        Fault::InvalidFormat => format!(
            "copy the `{field}` of the latest answer whole: its label, the dot, and everything behind it"
        ),
        Fault::UnsupportedVersion => {
            "use the program that gave the token out, or resume the session for a fresh one (`resume_session`, or `cairn session resume`)"
                .to_owned()
        }
        Fault::BadSignature => format!(
            "copy the `{field}` of the latest answer unchanged; if it came from another machine or from before two key rotations, resume the session for a fresh one (`resume_session`, or `cairn session resume`)"
        ),
        Fault::ScopeMismatch => format!("send the `{field}` of the run that you mean"),
    }
}

fn long_state(text: &str, keys: &Keyring) -> Result<StateToken> {
    let field = "stateToken";
    StateToken::verify(text.trim(), keys).map_err(|source| Error::Token {
        field,
        source,
        instead: instead(field, source),
    })
}

fn long_attempt(
    text: &str,
    purpose: Purpose,
    field: &'static str,
    keys: &Keyring,
) -> Result<AttemptToken> {
    AttemptToken::verify(text.trim(), purpose, keys).map_err(|source| Error::Token {
        field,
        source,
        instead: instead(field, source),
    })
}

/// A node that tokens are made for.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    pub(super) node: NodeId,
    pub(super) label: Label,
}

impl Spot {
    pub(super) fn new(session: &Session, run: RunId, node: NodeId) -> Self {
        let workflow = session.view.runs.get(&run).and_then(|run| run.workflow_id.as_deref());
        let label = label(workflow.unwrap_or_default(), run);
        Self { session: session.id, run, node, label }
    }

    /// The run's label, for people.
    pub(super) fn label(&self) -> String {
        self.label.as_str().to_owned()
    }

    /// The short token of an attempt at the node.
    pub(super) fn token(
        &self,
        session: &Session,
        kind: Kind,
        attempt: Attempt,
        keys: &Keyring,
    ) -> Result<String> {
        let dag = session.dag(self.run)?;
        let node = dag.node(self.node).ok_or_else(|| session.broken("a node is missing"))?;
        let label = self.label.clone();
        let token = CompactToken { label, session: self.session, node: node.created, attempt };
        Ok(token.sign(kind, keys))
    }

    /// The tokens of an answer, for the first attempts at the node.
    pub(super) fn first(
        &self,
        session: &Session,
        keys: &Keyring,
        tokens: Tokens,
    ) -> Result<TokenSet> {
        self.set(session, keys, tokens, Attempt::FIRST, Attempt::FIRST)
    }

    /// The tokens of an answer, for attempts at the node that nobody has made.
    pub(super) fn fresh(
        &self,
        session: &Session,
        keys: &Keyring,
        tokens: Tokens,
    ) -> Result<TokenSet> {
        let note = session.unused_checkpoint(self.run, self.node);
        self.set(session, keys, tokens, session.unused(self.node), note)
    }

    /// The tokens for one attempt to go on and one to leave a checkpoint.
    pub(super) fn set(
        &self,
        session: &Session,
        keys: &Keyring,
        tokens: Tokens,
        go: Attempt,
        note: Attempt,
    ) -> Result<TokenSet> {
        let pair = match tokens {
            Tokens::Compact => None,
            Tokens::Pair => Some(self.pair(session, go, keys)?),
        };
        Ok(TokenSet {
            continue_token: self.token(session, Kind::Continue, go, keys)?,
            checkpoint_token: self.token(session, Kind::Checkpoint, note, keys)?,
            pair,
        })
    }

    /// The long pair for an attempt at the node.
    fn pair(&self, session: &Session, go: Attempt, keys: &Keyring) -> Result<(String, String)> {
        let hash = session.view.runs.get(&self.run).and_then(|run| run.workflow_hash);
        let workflow_hash = hash.ok_or_else(|| session.broken("a run has no plan"))?;
        let unwritable = |_| session.broken("a token has no canonical form");
        let (session_id, run, node) = (self.session, self.run, self.node);
        let state = StateToken { session: session_id, run, node, workflow_hash };
        let ack = AttemptToken { session: session_id, run, node, attempt: go.id(node) };
        Ok((
            state.sign(keys).map_err(unwritable)?,
            ack.sign(Purpose::Ack, keys).map_err(unwritable)?,
        ))
    }
}
