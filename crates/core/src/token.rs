//! Tokens: opaque, signed references into the log. They hold no state and nobody keeps them.
//!
//! There are two spellings of one thing. The long ones (`st.v1.`, `ack.v1.`, `chk.v1.`) sign
//! canonical JSON; [`compact`] ones are short, since every byte costs an agent's context.

pub mod compact;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::canonical;
use crate::digest::WorkflowHash;
use crate::id::{AttemptId, NodeId, RunId, SessionId};
use crate::keyring::{Keyring, SigningKey};

/// The version of both spellings.
pub const VERSION: u64 = 1;

/// Why a token is not accepted by itself, before anybody looks into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not a token, or not the bytes that were given out.
    #[error("the token is not one that was given out: copy it whole and unchanged")]
    InvalidFormat,
    /// A later version gave it out.
    #[error("the token is of a version that this program does not know")]
    UnsupportedVersion,
    /// Neither key signed it.
    #[error("the token's signature does not match: it was changed, or its key is no longer valid")]
    BadSignature,
    /// It is valid, and belongs elsewhere.
    #[error("the token belongs to another run or step")]
    ScopeMismatch,
}

impl Error {
    /// The stable name of the error: programs compare it, so it stays as it is for good.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidFormat => "TOKEN_INVALID_FORMAT",
            Self::UnsupportedVersion => "TOKEN_UNSUPPORTED_VERSION",
            Self::BadSignature => "TOKEN_BAD_SIGNATURE",
            Self::ScopeMismatch => "TOKEN_SCOPE_MISMATCH",
        }
    }
}

/// Names a node, to come back to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct StateToken {
    pub session: SessionId,
    pub run: RunId,
    pub node: NodeId,
    pub workflow_hash: WorkflowHash,
}

/// Names one attempt at a node: to go on from it, or to leave a checkpoint at it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct AttemptToken {
    pub session: SessionId,
    pub run: RunId,
    pub node: NodeId,
    pub attempt: AttemptId,
}

/// What an attempt is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To go on.
    Ack,
    /// To leave a checkpoint.
    Checkpoint,
}

impl Purpose {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Checkpoint => "chk",
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Checkpoint => "checkpoint",
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StateWire {
    node_id: NodeId,
    run_id: RunId,
    session_id: SessionId,
    token_kind: String,
    token_version: u64,
    workflow_hash: WorkflowHash,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AttemptWire {
    attempt_id: AttemptId,
    node_id: NodeId,
    run_id: RunId,
    session_id: SessionId,
    token_kind: String,
    token_version: u64,
}

impl StateToken {
    /// The token as text, signed by the current key.
    pub fn sign(&self, keys: &Keyring) -> Result<String, canonical::Error> {
        let payload = canonical::to_vec(&StateWire {
            node_id: self.node,
            run_id: self.run,
            session_id: self.session,
            token_kind: "state".to_owned(),
            token_version: VERSION,
            workflow_hash: self.workflow_hash,
        })?;
        Ok(seal("st", &payload, keys))
    }

    /// Reads a token that one of the keys signed.
    pub fn verify(text: &str, keys: &Keyring) -> Result<Self, Error> {
        let wire: StateWire = open("st", text, keys)?;
        if wire.token_kind != "state" || wire.token_version != VERSION {
            return Err(Error::InvalidFormat);
        }
        let StateWire { node_id: node, run_id: run, session_id: session, workflow_hash, .. } = wire;
        Ok(Self { session, run, node, workflow_hash })
    }
}

impl AttemptToken {
    /// The token as text, signed by the current key.
    pub fn sign(&self, purpose: Purpose, keys: &Keyring) -> Result<String, canonical::Error> {
        let payload = canonical::to_vec(&AttemptWire {
            attempt_id: self.attempt,
            node_id: self.node,
            run_id: self.run,
            session_id: self.session,
            token_kind: purpose.kind().to_owned(),
            token_version: VERSION,
        })?;
        Ok(seal(purpose.prefix(), &payload, keys))
    }

    /// Reads a token that one of the keys signed.
    pub fn verify(text: &str, purpose: Purpose, keys: &Keyring) -> Result<Self, Error> {
        let wire: AttemptWire = open(purpose.prefix(), text, keys)?;
        if wire.token_kind != purpose.kind() || wire.token_version != VERSION {
            return Err(Error::InvalidFormat);
        }
        let AttemptWire { attempt_id, node_id, run_id, session_id, .. } = wire;
        Ok(Self { session: session_id, run: run_id, node: node_id, attempt: attempt_id })
    }

    /// Whether the attempt is at the node that a state token names.
    pub fn belongs_to(&self, state: &StateToken) -> Result<(), Error> {
        let same = (self.session, self.run, self.node) == (state.session, state.run, state.node);
        if same { Ok(()) } else { Err(Error::ScopeMismatch) }
    }
}

fn seal(prefix: &str, payload: &[u8], keys: &Keyring) -> String {
    let signature = mac(&keys.current, &[payload]);
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    format!("{prefix}.v{VERSION}.{}.{}", encode(payload), encode(&signature))
}

/// Reads a token of one kind: format first, then signature, then content, so that nothing
/// that was not signed is ever looked into.
fn open<T: Serialize + DeserializeOwned>(
    prefix: &str,
    text: &str,
    keys: &Keyring,
) -> Result<T, Error> {
    let mut parts = text.split('.');
    let mut next = || parts.next().ok_or(Error::InvalidFormat);
    let (kind, version, payload, signature) = (next()?, next()?, next()?, next()?);
    if kind != prefix || parts.next().is_some() {
        return Err(Error::InvalidFormat);
    }
    if version != format!("v{VERSION}") {
        let known = version.strip_prefix('v').is_some_and(|n| n.parse::<u64>().is_ok());
        return Err(if known { Error::UnsupportedVersion } else { Error::InvalidFormat });
    }
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| Error::InvalidFormat);
    let (payload, signature) = (decode(payload)?, decode(signature)?);
    if !signed::<SIGNATURE_LEN>(keys, &[&payload], &signature) {
        return Err(Error::BadSignature);
    }
    let wire: T = canonical::parse(&payload).map_err(|_| Error::InvalidFormat)?;
    // One token has one spelling.
    match canonical::to_vec(&wire) {
        Ok(again) if again == payload => Ok(wire),
        _ => Err(Error::InvalidFormat),
    }
}

/// The signature of these pieces, one behind the other.
fn mac(key: &SigningKey, pieces: &[&[u8]]) -> [u8; 32] {
    signer(key, pieces).finalize().into_bytes().into()
}

fn signer(key: &SigningKey, pieces: &[&[u8]]) -> Hmac<Sha256> {
    // A shorter key counts as one that ends with zeros.
    let mut block = [0; 64];
    block.iter_mut().zip(key.expose()).for_each(|(place, byte)| *place = *byte);
    let mut signer = <Hmac<Sha256>>::new(&block.into());
    for piece in pieces {
        signer.update(piece);
    }
    signer
}

/// How many bytes of its signature a token of the long form carries: all of them.
const SIGNATURE_LEN: usize = 32;

/// Whether either key made this signature, of which the first `LEN` bytes are given and neither
/// more nor fewer; in constant time.
fn signed<const LEN: usize>(keys: &Keyring, pieces: &[&[u8]], signature: &[u8]) -> bool {
    let made_by = |key: &SigningKey| {
        signature.len() == LEN && signer(key, pieces).verify_truncated_left(signature).is_ok()
    };
    made_by(&keys.current) || keys.previous.as_ref().is_some_and(made_by)
}

#[cfg(test)]
mod tests;
