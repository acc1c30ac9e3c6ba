//! One value, sealed: XChaCha20-Poly1305 under a nonce of its own, bound to its place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::Secret;
use super::key::random;
use crate::error::Result;

const NONCE: usize = 24;

/// Where a value belongs. Sealed for one place it cannot be opened in another.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) scope: &'a str,
    pub(super) name: &'a str,
    pub(super) version: u64,
}

impl Place<'_> {
    /// The place as bytes; different places have different bytes.
    fn bytes(&self) -> Vec<u8> {
        let parts = ["cairn/secret/1", self.scope, self.name];
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes.extend_from_slice(&self.version.to_be_bytes());
        bytes
    }
}

/// Seals a value for a place.
pub(super) fn seal(key: &[u8; 32], place: Place<'_>, value: &Secret) -> Result<String> {
    let mut nonce = [0; NONCE];
    random(&mut nonce)?;
    let aad = place.bytes();
    let payload = Payload { msg: value.expose().as_bytes(), aad: &aad };
    let sealed = XChaCha20Poly1305::new(&Key::from(*key))
        .encrypt(&XNonce::from(nonce), payload)
        .map_err(|_| crate::Error::Broken("a value is too long to seal".to_owned()))?;
    Ok(STANDARD.encode([&nonce[..], &sealed].concat()))
}

/// Opens a sealed value, if it was sealed for this place under this key.
pub(super) fn open(key: &[u8; 32], place: Place<'_>, sealed: &str) -> Option<Secret> {
    let bytes = STANDARD.decode(sealed).ok()?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
    let aad = place.bytes();
    let text = XChaCha20Poly1305::new(&Key::from(*key))
        .decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: &aad })
        .ok()?;
    let text = Zeroizing::new(text);
    std::str::from_utf8(&text).ok().map(Secret::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { scope: "workflow:project.a", name: "KEY", version: 3 };

    #[test]
    fn a_value_opens_in_its_place_alone() {
        let key = [7; 32];
        let sealed = seal(&key, PLACE, &Secret::new("hush")).unwrap();
        assert_eq!(open(&key, PLACE, &sealed), Some(Secret::new("hush")));
        for (place, key) in [
            (Place { scope: "workflow:project.b", ..PLACE }, key),
            (Place { scope: "workflow:project.aK", name: "EY", ..PLACE }, key),
            (Place { name: "OTHER", ..PLACE }, key),
            (Place { version: 2, ..PLACE }, key),
            (PLACE, [8; 32]),
        ] {
            assert_eq!(open(&key, place, &sealed), None, "{}/{}", place.scope, place.name);
        }
    }

    #[test]
    fn a_changed_bit_or_a_missing_byte_opens_nothing() {
        let key = [7; 32];
        let sealed = STANDARD.decode(seal(&key, PLACE, &Secret::new("hush")).unwrap()).unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&key, PLACE, &STANDARD.encode(changed)), None, "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(open(&key, PLACE, &STANDARD.encode(&sealed[..length])), None, "{length}");
        }
    }

    #[test]
    fn no_two_seals_are_alike() {
        let sealed = || seal(&[7; 32], PLACE, &Secret::new("hush")).unwrap();
        assert_ne!(sealed(), sealed());
    }
}
