//! The workflows, looked for beside whatever else goes on.

use std::sync::Arc;

use cairn_core::event::{By, Door};

use crate::catalog::{Catalog, Found, Identity};
use crate::error::Result;
use crate::host::Host;

/// Finds workflows.
pub(super) struct Workflows {
    host: Arc<dyn Host>,
    catalog: Arc<Catalog>,
}

impl Workflows {
    pub(super) const fn new(host: Arc<dyn Host>, catalog: Arc<Catalog>) -> Self {
        Self { host, catalog }
    }

    /// All of them.
    pub(super) fn list(&self) -> Result<Vec<Arc<Found>>> {
        self.catalog.list()
    }

    /// Those that another one can name.
    pub(super) async fn around(&self, asker: &Identity) -> Result<Vec<Arc<Found>>> {
        let (catalog, asker) = (Arc::clone(&self.catalog), asker.clone());
        let all = move || match catalog.around(&asker)? {
            Some(around) => around.list(),
            None => catalog.list(),
        };
        let all: Vec<Arc<Found>> = self.host.wait_for(all).await??;
        Ok(all.iter().map(Found::in_force).collect())
    }

    /// The workflow of an id, a name or an old id.
    pub(super) async fn find(&self, workflow: &str) -> Result<Arc<Found>> {
        if let Some(found) = self.catalog.find_at_once(workflow) {
            return Ok(found);
        }
        let (catalog, workflow) = (Arc::clone(&self.catalog), workflow.to_owned());
        self.host.wait_for(move || catalog.find(&workflow)).await?
    }

    /// The file of a workflow that is known, whoever else has its id.
    pub(super) async fn find_same(&self, workflow: &Identity) -> Result<Arc<Found>> {
        let at_once = self.catalog.find_at_once(workflow.id());
        if let Some(found) = at_once.filter(|found| found.identity() == workflow) {
            return Ok(found);
        }
        let (catalog, workflow) = (Arc::clone(&self.catalog), workflow.clone());
        self.host.wait_for(move || catalog.find_same(&workflow)).await?
    }

    /// The workflow that another one names.
    pub(super) async fn find_for(&self, asker: &Identity, named: &str) -> Result<Arc<Found>> {
        let (catalog, asker) = (Arc::clone(&self.catalog), asker.clone());
        let named = named.to_owned();
        let found = move || match catalog.around(&asker)? {
            Some(around) => around.find(&named),
            None => catalog.find(&named),
        };
        let found: Arc<Found> = self.host.wait_for(found).await??;
        Ok(found.in_force())
    }

    /// The workflow that somebody asks for a run of. Whoever asks by hand is told that its file
    /// does not compile; a trigger starts the version that compiled last.
    pub(super) async fn find_to_run(&self, workflow: &str, by: &By) -> Result<Arc<Found>> {
        let found = self.find(workflow).await?;
        let by_trigger = by.via.as_ref().is_some_and(|via| {
            matches!(
                via.door,
                Door::Webhook | Door::Schedule | Door::Channel | Door::Child | Door::Error
            )
        });
        Ok(if by_trigger { found.in_force() } else { found })
    }
}
