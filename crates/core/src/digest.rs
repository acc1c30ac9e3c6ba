//! SHA-256, the one digest of everything durable, written `sha256:<hex>`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "sha256:";

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is written `sha256:` and 64 lower-case hex digits")]
pub struct InvalidDigest;

/// A digest that is being made.
pub struct Running(Sha256, u64);

impl Running {
    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
        self.1 += bytes.len() as u64;
    }

    /// The digest of all bytes so far, and how many they are.
    #[must_use]
    pub fn finish(self) -> (Digest, u64) {
        (Digest(self.0.finalize().into()), self.1)
    }
}

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest of bytes that come one after the other.
    #[must_use]
    pub fn running() -> Running {
        Running(Sha256::new(), 0)
    }

    /// The digest of several byte strings, one behind the other.
    #[must_use]
    pub fn of_all(pieces: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for piece in pieces {
            hasher.update(piece);
        }
        Self(hasher.finalize().into())
    }

    /// The digest of a list of texts; each counts with its length, so bounds matter.
    #[must_use]
    pub fn of_parts(domain: &str, parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        for part in std::iter::once(&domain).chain(parts) {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(hasher.finalize().into())
    }

    /// The digest with exactly these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 128 bits, for ids and in-memory keys.
    #[must_use]
    pub fn leading_bits(&self) -> u128 {
        self.0.iter().take(16).fold(0, |bits, byte| (bits << 8) | u128::from(*byte))
    }

    /// The 64 hex digits without the `sha256:` in front, as file names use them.
    #[must_use]
    pub fn hex(&self) -> String {
        let digits = b"0123456789abcdef";
        self.0
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|digit| char::from(digits.get(usize::from(digit)).copied().unwrap_or(b'0')))
            .collect()
    }

    /// Reads 64 lower-case hex digits.
    pub fn from_hex(hex: &str) -> Result<Self, InvalidDigest> {
        let nibble = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(InvalidDigest),
        };
        let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(InvalidDigest);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (nibble(*high)? << 4) | nibble(*low)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        Self::from_hex(text.strip_prefix(PREFIX).ok_or(InvalidDigest)?)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_str(crate::id::IdVisitor(std::marker::PhantomData))
    }
}

/// The digest of a plan, of a snapshot or of any other blob, kept apart by type.
macro_rules! refs {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub Digest);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidDigest;

            fn from_str(text: &str) -> Result<Self, InvalidDigest> {
                text.parse().map(Self)
            }
        }
    )*};
}

refs! {
    /// Names a plan: the digest of its canonical JSON.
    WorkflowHash;
    /// Names a snapshot: the digest of its canonical JSON.
    SnapshotRef;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_digest_is_the_well_known_one() {
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), text);
        assert_eq!(text.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn upper_case_short_and_unprefixed_texts_are_refused() {
        let good = Digest::of(b"x").to_string();
        let hex = Digest::of(b"x").hex();
        for text in [&good.to_uppercase(), &good[..70], &hex, "sha256:", &format!("{good}0")] {
            assert_eq!(text.parse::<Digest>(), Err(InvalidDigest), "{text}");
        }
    }

    #[test]
    fn pieces_hash_as_one() {
        assert_eq!(Digest::of_all(&[b"ab", b"", b"c"]), Digest::of(b"abc"));
    }
}
