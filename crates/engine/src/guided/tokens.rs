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
    /// The same node, as a second token names it.
    pub(super) beside: Option<Place>,
    /// The attempt; none when the caller only named the node.
    pub(super) attempt: Option<Try>,
}

/// A node, as a token names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// By the event that made it.
    Index(cairn_core::id::EventIndex),
    /// By its id, which the run and, where it is told, the plan must fit.
    Node(RunId, NodeId, Option<cairn_core::digest::WorkflowHash>),
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
        At::Compact(text) => short(text.trim(), Kind::Continue, keys),
        At::Pair { state, ack: None } => Ok(of_state(&state_token(state.trim(), keys)?)),
        At::Pair { state, ack: Some(ack) } => {
            let state = state_token(state.trim(), keys)?;
            let tried = of_attempt(&attempt_token(ack.trim(), Purpose::Ack, keys)?);
            both(&state, tried, ack)
        }
    }
}

/// Reads the tokens of a call to leave a checkpoint at a node. Either form of the token names
/// it, alone or beside the state.
pub(super) fn read_checkpoint(at: &CheckpointAt, keys: &Keyring) -> Result<Target> {
    let of_checkpoint = |text: &str| match text.starts_with("chk.v") {
        true => Ok(of_attempt(&attempt_token(text, Purpose::Checkpoint, keys)?)),
        false => short(text, Kind::Checkpoint, keys),
    };
    match at {
        CheckpointAt::Compact(text) => of_checkpoint(text.trim()),
        CheckpointAt::Pair { state, checkpoint } => {
            let state = state_token(state.trim(), keys)?;
            both(&state, of_checkpoint(checkpoint.trim())?, checkpoint)
        }
    }
}

fn of_state(token: &StateToken) -> Target {
    let place = Place::Node(token.run, token.node, Some(token.workflow_hash));
    Target { session: token.session, place, beside: None, attempt: None }
}

fn of_attempt(token: &AttemptToken) -> Target {
    let place = Place::Node(token.run, token.node, None);
    let attempt = Some(Try::Long(token.attempt));
    Target { session: token.session, place, beside: None, attempt }
}

/// A state and an attempt at it, which must name one node.
fn both(state: &StateToken, tried: Target, text: &str) -> Result<Target> {
    let here = of_state(state);
    match tried.place {
        Place::Node(run, node, _) if (run, node) != (state.run, state.node) => {
            Err(apart((state.run, state.node), (run, node)))
        }
        Place::Index(_) if tried.session != here.session => {
            let label = text.split('.').next().unwrap_or_default();
            Err(of_runs(state.run, &format!("`{label}`")))
        }
        _ => Ok(Target { beside: Some(tried.place), attempt: tried.attempt, ..here }),
    }
}

/// What is told of two tokens that name different nodes.
pub(super) fn apart(state: (RunId, NodeId), other: (RunId, NodeId)) -> Error {
    if state.0 != other.0 {
        return of_runs(state.0, &other.0.to_string());
    }
    mixed(format!(
        "the two tokens belong to different steps of the run {}: nodes {} and {}",
        state.0, state.1, other.1
    ))
}

fn of_runs(state: RunId, other: &str) -> Error {
    mixed(format!(
        "the two tokens belong to different runs: `stateToken` to {state}, the other to {other}"
    ))
}

fn mixed(message: String) -> Error {
    let instead = "send both tokens from the same answer, the latest one of the run you mean; when they are lost, send `stateToken` alone to get the step again";
    Error::TokenScope { message, instead: instead.to_owned() }
}

const STATE: &str = "stateToken";
const ACK: &str = "ackToken";
const CHECKPOINT: &str = "checkpointToken";
const CONTINUE: &str = "continueToken";

/// The field that a token belongs to, as far as it shows.
fn field_of(text: &str, keys: &Keyring) -> Option<&'static str> {
    let long = [("st.v", STATE), ("ack.v", ACK), ("chk.v", CHECKPOINT)];
    let long = long.into_iter().find(|(prefix, _)| text.starts_with(prefix));
    let is = |kind| CompactToken::verify(text, kind, keys).is_ok();
    match long {
        Some((_, field)) => Some(field),
        None if is(Kind::Continue) => Some(CONTINUE),
        None if is(Kind::Checkpoint) => Some(CHECKPOINT),
        None => None,
    }
}

/// What is told of a token that could not be read in a field.
fn unread(text: &str, field: &'static str, source: Fault, keys: &Keyring) -> Error {
    match field_of(text, keys) {
        Some(found) if found != field => Error::TokenScope {
            message: format!("what came as `{field}` is {} `{found}`", article(found)),
            instead: format!(
                "send the `{field}` of the latest answer of this run, or put the `{found}` where it belongs"
            ),
        },
        _ => Error::Token { field, source, instead: instead(field, source) },
    }
}

fn article(name: &str) -> &'static str {
    if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn short(text: &str, kind: Kind, keys: &Keyring) -> Result<Target> {
    let field = match kind {
        Kind::Continue | Kind::Hand => CONTINUE,
        Kind::Checkpoint => CHECKPOINT,
    };
    let token = CompactToken::verify(text, kind, keys);
    let token = token.map_err(|source| unread(text, field, source, keys))?;
    let (place, attempt) = (Place::Index(token.node), Some(Try::Short(token.attempt)));
    Ok(Target { session: token.session, place, beside: None, attempt })
}

fn state_token(text: &str, keys: &Keyring) -> Result<StateToken> {
    StateToken::verify(text, keys).map_err(|source| unread(text, STATE, source, keys))
}

fn attempt_token(text: &str, purpose: Purpose, keys: &Keyring) -> Result<AttemptToken> {
    let field = match purpose {
        Purpose::Ack => ACK,
        Purpose::Checkpoint => CHECKPOINT,
    };
    AttemptToken::verify(text, purpose, keys).map_err(|source| unread(text, field, source, keys))
}

fn instead(field: &str, fault: Fault) -> String {
    match (fault, field) {
        (Fault::InvalidFormat, STATE | ACK) => format!(
            "copy the `{field}` of the latest answer whole: `{}`, and everything behind it up to the last character",
            if field == STATE { "st.v1." } else { "ack.v1." }
        ),
        (Fault::InvalidFormat, _) => format!(
            "copy the `{field}` of the latest answer whole: its label, the dot, and everything behind it"
        ),
        (Fault::UnsupportedVersion, _) => {
            "use the program that gave the token out, or resume the session for a fresh one (`resume_session`, or `cairn session resume`)"
                .to_owned()
        }
        (Fault::BadSignature, _) => format!(
            "copy the `{field}` of the latest answer unchanged; if it came from another machine or from before two key rotations, resume the session for a fresh one (`resume_session`, or `cairn session resume`)"
        ),
        (Fault::ScopeMismatch, _) => format!("send the `{field}` of the run that you mean"),
    }
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

    /// The tokens of an answer, for attempts at the node that nobody else is given: whoever
    /// comes back gets a branch of their own.
    pub(super) fn fresh(
        &self,
        session: &Session,
        keys: &Keyring,
        tokens: Tokens,
        attempt: Attempt,
    ) -> Result<TokenSet> {
        self.set(session, keys, tokens, attempt, attempt)
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
        let continue_token = self.token(session, Kind::Continue, go, keys)?;
        match tokens {
            Tokens::Compact => Ok(TokenSet {
                continue_token,
                checkpoint_token: Some(self.token(session, Kind::Checkpoint, note, keys)?),
                pair: None,
            }),
            Tokens::Pair => self.long(session, go, note, keys, continue_token),
        }
    }

    /// The long tokens for attempts at the node, beside the short one to go on with.
    fn long(
        &self,
        session: &Session,
        go: Attempt,
        note: Attempt,
        keys: &Keyring,
        continue_token: String,
    ) -> Result<TokenSet> {
        let hash = session.view.runs.get(&self.run).and_then(|run| run.workflow_hash);
        let workflow_hash = hash.ok_or_else(|| session.broken("a run has no plan"))?;
        let unwritable = |_| session.broken("a token has no canonical form");
        let (session_id, run, node) = (self.session, self.run, self.node);
        let state = StateToken { session: session_id, run, node, workflow_hash };
        let state = state.sign(keys).map_err(unwritable)?;
        let signed = |attempt: Attempt, purpose| {
            let token = AttemptToken { session: session_id, run, node, attempt: attempt.id(node) };
            token.sign(purpose, keys).map_err(unwritable)
        };
        Ok(TokenSet {
            continue_token,
            checkpoint_token: Some(signed(note, Purpose::Checkpoint)?),
            pair: Some((state, signed(go, Purpose::Ack)?)),
        })
    }
}
