//! The keys to providers: secrets for every workflow, or else variables of the same name.

use async_trait::async_trait;
use cairn_engine::secrets::{Scope, Secret, Vault};
use cairn_steps::agents::Credentials;

/// The keys of a vault.
pub(crate) struct Keys {
    vault: Vault,
}

impl Keys {
    pub(crate) const fn new(vault: Vault) -> Self {
        Self { vault }
    }
}

#[async_trait]
impl Credentials for Keys {
    async fn reveal(&self, name: &str) -> Result<Option<Secret>, String> {
        let held = self.vault.list().await.map_err(|error| error.to_string())?;
        if held.iter().any(|held| held.scope == Scope::Global && held.name == name) {
            let revealed = self.vault.reveal(&Scope::Global, name).await;
            return revealed.map(Some).map_err(|error| error.to_string());
        }
        let set = std::env::var(name).ok().filter(|value| !value.is_empty());
        Ok(set.map(Secret::new))
    }
}
