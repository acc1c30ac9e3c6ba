//! The master key, from which a key for each purpose is made.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_core::keyring::is_guessable;
use cairn_store::regular;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::Secret;
use crate::error::{Error, Result};
use crate::file;

/// Where the master key comes from.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// Somebody gave it.
    Given(Secret),
    /// A file, which is made when it is first needed.
    File(PathBuf),
}

/// What a key is for. No key is used for two things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Telling one master key from another.
    KeyId,
    /// Sealing the values of secrets.
    Secrets,
    /// Vouching for the vault as a whole.
    Vault,
    /// Signing what webhooks are sent.
    Webhooks,
    /// Signing the sessions of the console.
    Sessions,
    /// Keeping tokens.
    Tokens,
}

impl Purpose {
    /// What makes its key another than those of the other purposes. Never changed.
    const fn label(self) -> &'static str {
        match self {
            Self::KeyId => "cairn/key-id/1",
            Self::Secrets => "cairn/secrets/1",
            Self::Vault => "cairn/vault/1",
            Self::Webhooks => "cairn/webhooks/1",
            Self::Sessions => "cairn/sessions/1",
            Self::Tokens => "cairn/tokens/1",
        }
    }
}

/// 32 random bytes that everything hangs on. It never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl MasterKey {
    /// A fresh key.
    pub fn fresh() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        random(bytes.as_mut_slice())?;
        Ok(Self(bytes))
    }

    /// The key that text stands for: 32 bytes in base64 or hex.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let decoded = match text.len() {
            64 => hex(text),
            _ => STANDARD.decode(text).ok(),
        };
        let decoded = Zeroizing::new(decoded?);
        let mut bytes = Zeroizing::new([0; 32]);
        (decoded.len() == 32).then(|| bytes.copy_from_slice(&decoded))?;
        Some(Self(bytes))
    }

    /// The key, unless anybody could guess it.
    pub(super) fn require_random(self, path: Option<&Path>) -> Result<Self> {
        if is_guessable(self.0.as_slice()) {
            let what = "its bytes are not random; make one with `head -c 32 /dev/urandom | base64`";
            return Err(unusable(path, what));
        }
        Ok(self)
    }

    /// The key as text.
    pub(super) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(*self.0))
    }

    /// The key for one purpose. Whoever has it has no other.
    #[must_use]
    pub fn purpose(&self, purpose: Purpose) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        // 32 bytes are fewer than the 8160 that there can be.
        let _ = Hkdf::<Sha256>::new(None, self.0.as_slice())
            .expand(purpose.label().as_bytes(), key.as_mut_slice());
        key
    }

    /// What tells it from another key, and nothing else of it.
    #[must_use]
    pub fn id(&self) -> String {
        let id = self.purpose(Purpose::KeyId);
        id.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let digits = pair.iter().all(u8::is_ascii_hexdigit);
        u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| digits)
    };
    pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty())
}

/// Fills bytes with chance.
#[expect(clippy::disallowed_methods, reason = "what secrets hang on comes from the system alone")]
pub(super) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| Error::SecretKey {
        path: None,
        what: format!("the system gives no random bytes: {error}"),
    })
}

/// Says that a key cannot be used.
pub(super) fn unusable(path: Option<&Path>, what: impl Into<String>) -> Error {
    Error::SecretKey { path: path.map(Path::to_owned), what: what.into() }
}

/// Refuses a file that others may have read.
pub(super) fn require_private(path: &Path) -> Result<()> {
    match regular::exposed(path) {
        Some(what) => Err(unusable(Some(path), what)),
        None => Ok(()),
    }
}

/// The key in a file.
pub(super) fn read(path: &Path) -> Result<Option<MasterKey>> {
    require_private(path)?;
    let Some(bytes) = file::read_if_there(path)? else { return Ok(None) };
    let bytes = Zeroizing::new(bytes);
    let key = std::str::from_utf8(&bytes).ok().and_then(MasterKey::parse);
    let damaged = "it does not hold 32 bytes in base64 or hex; put a backup in its place";
    let key = key.ok_or_else(|| unusable(Some(path), damaged))?;
    key.require_random(Some(path)).map(Some)
}

/// Puts a key into a file that only its owner can read.
pub(super) fn write(path: &Path, key: &MasterKey) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        file::private_dir(folder)?;
    }
    file::replace(path, format!("{}\n", *key.text()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trigger::HookSecret;

    // case: secret.types
    #[test]
    fn nothing_that_holds_a_secret_shows_it() {
        let word = "CANARY-7f3a";
        let shown = [
            format!("{:?}", Secret::new(word)),
            format!("{:#?}", KeySource::Given(Secret::new(word))),
            format!("{:?}", HookSecret { secret: Secret::new(word), until_ms: None }),
            format!("{:?}", MasterKey::parse(&"c4".repeat(32)).unwrap()),
        ];
        for shown in shown {
            assert!(shown.contains("***"), "{shown}");
            // 0xc4 is 196.
            assert!([word, "c4", "196"].iter().all(|part| !shown.contains(part)), "{shown}");
        }
    }

    #[test]
    fn every_purpose_has_a_key_of_its_own() {
        let key = MasterKey::parse(&"07".repeat(32)).unwrap();
        let all = [
            Purpose::KeyId,
            Purpose::Secrets,
            Purpose::Vault,
            Purpose::Webhooks,
            Purpose::Sessions,
            Purpose::Tokens,
        ];
        let keys: std::collections::BTreeSet<_> = all.map(|p| *key.purpose(p)).into();
        assert_eq!(keys.len(), all.len());
        assert!(!keys.contains(&[7; 32]));
        insta::assert_snapshot!(key.id(), @"2dff919db7ef14f4");
        assert_eq!(format!("{key:?}"), "***");
    }

    #[test]
    fn a_key_is_read_in_base64_and_in_hex() {
        let key = MasterKey::fresh().unwrap();
        assert_eq!(MasterKey::parse(&format!(" {}\n", *key.text())), Some(key.clone()));
        let hex: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(MasterKey::parse(&hex), Some(key));
        for bad in ["", "abc", &"0".repeat(63), &"g".repeat(64), &"+1".repeat(32), "AAAA"] {
            assert_eq!(MasterKey::parse(bad), None, "{bad}");
        }
    }
}
