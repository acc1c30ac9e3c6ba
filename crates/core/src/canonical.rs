//! Canonical JSON (RFC 8785): the one way in and the one way out for whatever is hashed.
//!
//! Writing refuses what another reader could take for something else: numbers that are
//! not finite and integers that a double cannot hold. Reading refuses duplicate keys,
//! such integers, and depth beyond [`DEPTH_MAX`].

mod exact;
mod read;
mod write;

pub use exact::{check, exact, recorded};
pub use read::{StrictValue, parse, parse_exact, parse_foreign};
pub use write::{to_vec, to_vec_within};

use serde::Serialize;

use crate::digest::Digest;

/// How deep arrays and objects may nest.
pub const DEPTH_MAX: usize = 64;

/// How many values one text may hold.
pub const VALUES_MAX: usize = 4_000_000;

/// How many bytes one text that somebody else made may take in memory, by estimate.
pub const ROOM_MAX: usize = 112 << 20;

/// The largest integer that every JSON reader keeps exact: 2^53.
pub const INTEGER_MAX: u64 = 1 << 53;

/// Why a value has no canonical form, or a text is not acceptable JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A number is NaN or infinite.
    #[error("a number is not finite; JSON has no such number")]
    NotFinite,
    /// An integer is beyond what a double keeps exact.
    #[error("the integer {0} is beyond 2^53; write it as a string")]
    IntegerTooLarge(String),
    /// A map's key is not text.
    #[error("an object key is not a string")]
    KeyNotText,
    /// An object names a key twice.
    #[error("the key `{0}` stands twice in one object")]
    DuplicateKey(String),
    /// Arrays and objects nest too deep.
    #[error("the value nests too deep; at most {DEPTH_MAX} levels, less inside an event")]
    TooDeep,
    /// It holds too many values.
    #[error("the text holds more than {VALUES_MAX} values")]
    TooMany,
    /// It would take too much room in memory.
    #[error("the text holds so many small values that it would take more than {ROOM_MAX} bytes")]
    TooMuchRoom,
    /// Anything else that serde reports, with its line and column.
    #[error("{0}")]
    Json(String),
}

/// The digest of a value's canonical JSON.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> Result<Digest, Error> {
    Ok(Digest::of(&to_vec(value)?))
}

#[cfg(test)]
mod tests;
