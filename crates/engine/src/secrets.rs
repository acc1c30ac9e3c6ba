//! Secrets: values that are kept encrypted and never show themselves.
//!
//! In reading order: a [`Secret`] in memory, the [`MasterKey`] that everything hangs on
//! (`key`), how one value is sealed (`seal`), and the [`Vault`] that keeps them in one
//! document (`vault`).

mod key;
mod seal;
mod vault;

use std::fmt;

use zeroize::Zeroizing;

pub use key::{KeySource, MasterKey, Purpose};
pub use vault::{Held, Scope, Stamps, Vault};

/// A value that never shows itself, and is wiped from memory when it is no longer needed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A secret of this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The value, to be used and not kept.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
