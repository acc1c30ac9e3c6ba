//! Compact tokens: a readable label of the run, and 46 bytes that are signed with it.
//!
//! The label is for whoever has tokens of several runs in one conversation. It is signed
//! too, so that it cannot lie.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Error, VERSION, mac, signed};
use crate::id::{AttemptId, EventIndex, NodeId, SessionId};
use crate::keyring::Keyring;

/// The longest label.
pub const LABEL_MAX: usize = 28;
/// The longest token.
pub const LEN_MAX: usize = 96;

/// How much of the signature a token carries.
pub(super) const SIGNATURE_LEN: usize = 16;
const INDEX_LEN: usize = 5;
const BODY_LEN: usize = 1 + 16 + INDEX_LEN + 8;

/// What a compact token is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// To go on, or to come back to.
    Continue,
    /// To leave a checkpoint.
    Checkpoint,
    /// To go on with a step that an automation hands over, or to come back to the run.
    Hand,
}

impl Kind {
    const fn name(self) -> &'static [u8] {
        match self {
            Self::Continue => b"continue",
            Self::Checkpoint => b"checkpoint",
            Self::Hand => b"hand",
        }
    }
}

/// One attempt at a node, as a compact token names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactToken {
    /// The run, for people and agents.
    pub label: Label,
    /// The log.
    pub session: SessionId,
    /// The event that made the node.
    pub node: EventIndex,
    /// Which attempt at it.
    pub attempt: Attempt,
}

/// An attempt in short: with its node it names an [`AttemptId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Attempt(pub u64);

impl Attempt {
    /// The attempt's id in the log.
    #[must_use]
    pub fn id(self, node: NodeId) -> AttemptId {
        AttemptId::derive(&[&node.to_string(), &format!("{:016x}", self.0)])
    }

    /// The attempt that a node is first left with.
    pub const FIRST: Self = Self(0);

    /// The attempt after this one, equal whenever it is asked for.
    #[must_use]
    pub fn next(self, node: NodeId) -> Self {
        Self::after(self.id(node))
    }

    /// The attempt after the one with this id.
    #[must_use]
    pub fn after(id: AttemptId) -> Self {
        Self(u64::try_from(id.bits() >> 64).unwrap_or_default())
    }
}

/// A readable name of a run: lower-case letters, digits and `-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label(String);

impl Default for Label {
    fn default() -> Self {
        Self("run".to_owned())
    }
}

impl Label {
    /// A label with this text, if it is one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let safe = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let is_label = (1..=LABEL_MAX).contains(&text.len()) && text.bytes().all(safe);
        is_label.then(|| Self(text.to_owned()))
    }

    /// The label as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl CompactToken {
    /// The token as text, signed by the current key.
    #[must_use]
    pub fn sign(&self, kind: Kind, keys: &Keyring) -> String {
        let mut bytes = self.body().to_vec();
        let signature = mac(&keys.current, &[&bytes, kind.name(), self.label.0.as_bytes()]);
        bytes.extend(signature.iter().take(SIGNATURE_LEN));
        format!("{}.{}", self.label.0, URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a token that one of the keys signed.
    pub fn verify(text: &str, kind: Kind, keys: &Keyring) -> Result<Self, Error> {
        let (label, body) = text.split_once('.').ok_or(Error::InvalidFormat)?;
        let label = Label::new(label).ok_or(Error::InvalidFormat)?;
        let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| Error::InvalidFormat)?;
        match bytes.first() {
            Some(version) if u64::from(*version) == VERSION => {}
            Some(_) if bytes.len() == BODY_LEN + SIGNATURE_LEN => {
                return Err(Error::UnsupportedVersion);
            }
            _ => return Err(Error::InvalidFormat),
        }
        let (body, signature) = bytes.split_at_checked(BODY_LEN).ok_or(Error::InvalidFormat)?;
        if signature.len() != SIGNATURE_LEN {
            return Err(Error::InvalidFormat);
        }
        if !signed::<SIGNATURE_LEN>(keys, &[body, kind.name(), label.0.as_bytes()], signature) {
            return Err(Error::BadSignature);
        }
        Self::read(label, body).ok_or(Error::InvalidFormat)
    }

    fn body(&self) -> [u8; BODY_LEN] {
        let version = u8::try_from(VERSION).unwrap_or_default();
        let index = self.node.0.to_be_bytes();
        let bytes = std::iter::once(version)
            .chain(self.session.bits().to_be_bytes())
            .chain(index.into_iter().skip(index.len() - INDEX_LEN))
            .chain(self.attempt.0.to_be_bytes());
        let mut body = [0; BODY_LEN];
        body.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        body
    }

    fn read(label: Label, body: &[u8]) -> Option<Self> {
        let number =
            |bytes: &[u8]| bytes.iter().fold(0u128, |n, byte| (n << 8) | u128::from(*byte));
        let (_, rest) = body.split_at_checked(1)?;
        let (session, rest) = rest.split_at_checked(16)?;
        let (node, attempt) = rest.split_at_checked(INDEX_LEN)?;
        Some(Self {
            label,
            session: SessionId::from_bits(number(session)),
            node: EventIndex(u64::try_from(number(node)).ok()?),
            attempt: Attempt(u64::try_from(number(attempt)).ok()?),
        })
    }
}
