//! Typed ids: 128 bits, shown as a prefix and 26 characters of lower-case Crockford.
//!
//! The first 48 bits of a minted id are a time in milliseconds, for people only:
//! nothing is ordered or decided by it. A derived id is a digest of what it stands
//! for, so that a retry arrives at the same one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LEN: usize = 26;
const RANDOM_BITS: u32 = 80;

/// Why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {kind} id; one looks like `{prefix}_01j9zt3v5n8q4rk2m6x7c0d1ef`")]
pub struct InvalidId {
    /// What was given, cut to a readable length.
    pub text: String,
    /// What kind of id was wanted.
    pub kind: &'static str,
    /// The prefix that kind carries.
    pub prefix: &'static str,
}

/// Writes 128 bits as 26 characters of lower-case Crockford base 32.
#[must_use]
pub fn crockford(bits: u128) -> String {
    (0..TEXT_LEN)
        .map(|place| {
            let shift = 5 * (TEXT_LEN - 1 - place);
            let digit = usize::try_from((bits >> shift) & 31).unwrap_or_default();
            char::from(ALPHABET.get(digit).copied().unwrap_or(b'0'))
        })
        .collect()
}

/// Reads 26 characters of lower-case Crockford; `None` when it is anything else.
#[must_use]
pub fn from_crockford(text: &str) -> Option<u128> {
    if text.len() != TEXT_LEN || text.as_bytes().first().is_none_or(|first| *first > b'7') {
        return None;
    }
    text.bytes().try_fold(0u128, |bits, byte| {
        let digit = ALPHABET.iter().position(|known| *known == byte)?;
        Some((bits << 5) | u128::try_from(digit).ok()?)
    })
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// What the text of such an id starts with.
            pub const PREFIX: &'static str = $prefix;

            /// An id minted now: the time is informational, the random bits make it unique.
            #[must_use]
            pub const fn mint(time_ms: u64, random: u128) -> Self {
                let low = random & ((1 << RANDOM_BITS) - 1);
                Self((((time_ms as u128) & 0xffff_ffff_ffff) << RANDOM_BITS) | low)
            }

            /// The id that stands for exactly these parts, equal on every retry.
            #[must_use]
            pub fn derive(parts: &[&str]) -> Self {
                Self(Digest::of_parts($prefix, parts).leading_bits())
            }

            /// The id with exactly these bits.
            #[must_use]
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The id's 128 bits.
            #[must_use]
            pub const fn bits(self) -> u128 {
                self.0
            }

            /// When the id was minted, in milliseconds since 1970. Meaningless for a derived id.
            #[must_use]
            pub const fn minted_ms(self) -> u64 {
                (self.0 >> RANDOM_BITS) as u64
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", $prefix, crockford(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix($prefix)
                    .and_then(|rest| rest.strip_prefix('_'))
                    .and_then(from_crockford)
                    .map(Self)
                    .ok_or_else(|| InvalidId {
                        text: text.chars().take(64).collect(),
                        kind: $kind,
                        prefix: $prefix,
                    })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                input.deserialize_str(crate::id::IdVisitor(std::marker::PhantomData))
            }
        }
    )*};
}

ids! {
    /// One append-only event log.
    SessionId = "sess", "session";
    /// One execution of a plan.
    RunId = "run", "run";
    /// A durable point in a run's history.
    NodeId = "node", "node";
    /// One event of a log.
    EventId = "evt", "event";
    /// One durable output of a node.
    OutputId = "out", "output";
    /// One disclosed gap.
    GapId = "gap", "gap";
    /// One attempt at advancing a node.
    AttemptId = "att", "attempt";
    /// One change of preferences.
    ChangeId = "prefchg", "preference change";
    /// One observation of a capability.
    CapObsId = "capobs", "capability observation";
    /// One divergence from the procedure.
    DivergenceId = "div", "divergence";
    /// One trace of decisions.
    TraceId = "trace", "trace";
    /// One recorded change of a run's context.
    ContextId = "ctx", "context";
    /// One timer of a run.
    TimerId = "timer", "timer";
    /// One question to a person.
    TaskId = "task", "task";
    /// One exported bundle.
    BundleId = "bundle", "bundle";
}

/// Reads an id from a string without copying it.
pub(crate) struct IdVisitor<T>(pub(crate) std::marker::PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> serde::de::Visitor<'_> for IdVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id as text")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Where in a session's log an event stands, counted from 0.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct EventIndex(pub u64);

impl EventIndex {
    /// No position is behind this one.
    pub const LAST: Self = Self(u64::MAX);

    /// The position right behind this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for EventIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_lower_case_and_carries_its_prefix() {
        let id = SessionId::mint(1_700_000_000_000, 7);
        assert_eq!(id.to_string(), "sess_01hf7yat000000000000000007");
        assert_eq!(id.minted_ms(), 1_700_000_000_000);
    }

    #[test]
    fn only_the_exact_text_is_taken() {
        for text in [
            "",
            "sess_",
            "run_01hf7yat000000000000000007",
            "sess_01HF7YAT000000000000000007",
            "sess_81hf7yat000000000000000007",
            "sess_01hf7yat00000000000000000i",
            "sess_01hf7yat000000000000000007 ",
            "sess_01hf7yat00000000000000007",
            "sess_01hf7yat000000000000000007\0",
            "../sess_01hf7yat00000000000000007",
        ] {
            assert!(text.parse::<SessionId>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn derived_ids_depend_on_every_part_and_on_its_bounds() {
        assert_eq!(OutputId::derive(&["a", "b"]), OutputId::derive(&["a", "b"]));
        assert_ne!(OutputId::derive(&["a", "b"]), OutputId::derive(&["ab"]));
        assert_ne!(OutputId::derive(&["a", "b"]).bits(), GapId::derive(&["a", "b"]).bits());
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(bits: u128) {
            let id = RunId::from_bits(bits);
            prop_assert_eq!(id.to_string().parse::<RunId>(), Ok(id));
        }
    }
}
