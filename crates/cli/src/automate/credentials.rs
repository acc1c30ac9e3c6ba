//! The keys to providers: secrets for every workflow, or else variables of the same name.

use std::collections::BTreeMap;

use async_trait::async_trait;
use cairn_engine::environment::ModelKeys;
use cairn_engine::error::Result;
use cairn_engine::secrets::{Scope, Secret, Vault};
use cairn_steps::agents::{Configuration, Credentials, key_names};

/// The keys of a vault.
pub(crate) struct ProviderKeys {
    vault: Vault,
    /// The names of all that the configuration may need.
    names: Vec<String>,
}

impl ProviderKeys {
    pub(crate) fn new(vault: Vault, configuration: &Configuration) -> Self {
        Self { vault, names: key_names(configuration) }
    }

    async fn find(&self, name: &str) -> Result<Option<Secret>> {
        let held = self.vault.list().await?;
        if held.iter().any(|held| held.scope == Scope::Global && held.name == name) {
            return self.vault.reveal(&Scope::Global, name).await.map(Some);
        }
        let set = std::env::var(name).ok().filter(|value| !value.is_empty());
        Ok(set.map(Secret::new))
    }
}

#[async_trait]
impl ModelKeys for ProviderKeys {
    async fn all(&self) -> Result<BTreeMap<String, Secret>> {
        let mut found = BTreeMap::new();
        for name in &self.names {
            found.extend(self.find(name).await?.map(|key| (name.clone(), key)));
        }
        Ok(found)
    }
}

#[async_trait]
impl Credentials for ProviderKeys {
    async fn reveal(&self, name: &str) -> std::result::Result<Option<Secret>, String> {
        self.find(name).await.map_err(|error| error.to_string())
    }
}
