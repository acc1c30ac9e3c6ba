//! The keys that sign tokens: a current one, and the one before it.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::canonical;
use crate::digest::Digest;

/// The version of the key ring.
pub const VERSION: u32 = 1;

/// A key of 32 random bytes. It never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey([u8; 32]);

impl SigningKey {
    /// The key with these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key's bytes, to sign with.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for SigningKey {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for SigningKey {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let refuse = || serde::de::Error::custom("a key is 32 bytes in base64");
        let text = String::deserialize(input)?;
        let bytes = STANDARD.decode(text).map_err(|_| refuse())?;
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| refuse())?;
        if is_guessable(&bytes) {
            return Err(serde::de::Error::custom(
                "a key is made of random bytes, and this one is not",
            ));
        }
        Ok(Self(bytes))
    }
}

/// Whether the bytes of a key are none that chance gives: zeros, or a few values again and again.
#[must_use]
pub fn is_guessable(key: &[u8]) -> bool {
    // Of 32 random bytes about 30 differ, and fewer than 8 never do.
    key.iter().collect::<BTreeSet<_>>().len() < 8
}

/// The keys in use. A token signed by either is valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keyring {
    /// Signs, and verifies first.
    pub current: SigningKey,
    /// Rises by one with each rotation.
    pub generation: u64,
    /// Only verifies.
    pub previous: Option<SigningKey>,
}

/// The key ring as it is stored; the check shows a changed character.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<Digest>,
    current: SigningKey,
    generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<SigningKey>,
    v: u32,
}

impl Keyring {
    /// A first key ring.
    #[must_use]
    pub const fn new(current: SigningKey) -> Self {
        Self { current, generation: 1, previous: None }
    }

    /// The key ring with a fresh key; what the key before the current one signed ends here.
    #[must_use]
    pub fn rotated(self, fresh: SigningKey) -> Self {
        let generation = self.generation + 1;
        Self { current: fresh, generation, previous: Some(self.current) }
    }

    /// The key ring as it is stored.
    pub fn encode(&self) -> Result<Vec<u8>, canonical::Error> {
        let Self { current, generation, previous } = self.clone();
        let mut wire = Wire { check: None, current, generation, previous, v: VERSION };
        wire.check = Some(canonical::digest(&wire)?);
        canonical::to_vec(&wire)
    }

    /// Reads a stored key ring.
    pub fn decode(bytes: &[u8]) -> Result<Self, canonical::Error> {
        let refuse = |why: String| Err(canonical::Error::Json(why));
        let mut wire: Wire = canonical::parse(bytes)?;
        if wire.v != VERSION {
            return refuse(format!("the key ring is of version {}", wire.v));
        }
        let check = wire.check.take();
        if check != Some(canonical::digest(&wire)?) {
            return refuse("the key ring is not what was written".to_owned());
        }
        let Wire { current, generation, previous, .. } = wire;
        Ok(Self { current, generation, previous })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8) -> SigningKey {
        let mut bytes = [first; 32];
        bytes.iter_mut().zip(0..).for_each(|(byte, at)| *byte += at);
        SigningKey::new(bytes)
    }

    #[test]
    fn a_key_is_valid_until_the_second_rotation() {
        let ring = Keyring::new(key(1)).rotated(key(2));
        assert_eq!((ring.current.clone(), ring.previous.clone()), (key(2), Some(key(1))));
        let ring = ring.rotated(key(3));
        assert_eq!((ring.generation, ring.previous.clone()), (3, Some(key(2))));
        assert_eq!(Keyring::decode(&ring.encode().unwrap()), Ok(ring));
    }

    #[test]
    fn a_key_does_not_print_itself() {
        assert_eq!(format!("{:?}", SigningKey::new([7; 32])), "***");
    }

    // case: keyring.guessable
    #[test]
    fn a_ring_that_anybody_could_guess_is_refused() {
        let few = |i: usize| [1, 2, 3, 4, 5, 6, 7][i % 7];
        for bytes in [[0; 32], [255; 32], [7; 32], std::array::from_fn(few)] {
            let ring = Keyring::new(SigningKey::new(bytes)).encode().unwrap();
            let error = Keyring::decode(&ring).unwrap_err().to_string();
            assert!(error.contains("random"), "{bytes:?}: {error}");
            let ring = Keyring::new(SigningKey::new(bytes)).rotated(key(1)).encode().unwrap();
            assert!(Keyring::decode(&ring).is_err(), "{bytes:?} before it");
        }
    }

    // case: keyring.damaged
    #[test]
    fn a_damaged_ring_is_refused() {
        let good = String::from_utf8(Keyring::new(key(7)).encode().unwrap());
        let good = good.unwrap();
        for bad in [
            &good[..good.len() - 1],
            &good.replace("\"v\":1", "\"v\":2"),
            &good.replace("BwgJ", "Bw"),
            &good.replacen("BwgJ", "BwgK", 1),
            "{}",
        ] {
            assert!(Keyring::decode(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
