//! What the vault was when it was last written, kept apart from it: an older copy that is put
//! back is noticed, and so is one that is gone.
//!
//! The anchor has no key. Whoever puts both back, as with a backup of the whole data directory,
//! is not noticed, and is not meant to be.

use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_store::port::documents::{Documents, Name};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub(super) static DOCUMENT: Name = Name::fixed("keys/vault.anchor.json");
const VERSION: u32 = 1;

/// Which vault was written last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Anchor {
    digest: Digest,
    generation: u64,
    v: u32,
}

impl Anchor {
    /// The anchor, if there is one. It is read before the vault, which may be written meanwhile
    /// and is then a later one.
    pub(super) async fn read(documents: &dyn Documents) -> Result<Option<Self>> {
        let Some(found) = documents.read(&DOCUMENT).await? else { return Ok(None) };
        let anchor: Option<Self> = canonical::parse(found.bytes.trim_ascii_end()).ok();
        let anchor = anchor.filter(|anchor| anchor.v == VERSION);
        let place = documents.place(&DOCUMENT);
        let damaged = || refused(format!("{place} is damaged; remove it if you trust the vault"));
        anchor.map(Some).ok_or_else(damaged)
    }

    /// Keeps which vault was written.
    pub(super) async fn write(
        documents: &dyn Documents,
        generation: u64,
        vault: &[u8],
    ) -> Result<()> {
        let anchor = Self { digest: Digest::of(vault), generation, v: VERSION };
        let bytes = canonical::to_vec(&anchor).map_err(|error| Error::Broken(error.to_string()))?;
        documents.update(&DOCUMENT, |_| Ok((Some(bytes.clone()), ()))).await
    }

    /// Refuses a vault that is not the one that was written last, or a later one: a crash can
    /// come between the vault and its anchor.
    pub(super) fn require(
        &self,
        found: Option<(u64, &[u8])>,
        documents: &dyn Documents,
        place: &str,
    ) -> Result<()> {
        let known = self.generation;
        let what = match found {
            Some((generation, _)) if generation > known => return Ok(()),
            Some((generation, vault))
                if generation == known && Digest::of(vault) == self.digest =>
            {
                return Ok(());
            }
            Some((generation, _)) if generation < known => {
                format!(
                    "{place} is an older copy: change {generation}, and {known} was written here"
                )
            }
            Some(_) => format!("{place} is not the one that was written here"),
            None => format!("{place} is gone, and {known} changes were written to it"),
        };
        let anchor = documents.place(&DOCUMENT);
        Err(refused(format!("{what}; if that is meant, remove {anchor}")))
    }
}

fn refused(what: String) -> Error {
    Error::SecretDecrypt { name: None, what }
}
