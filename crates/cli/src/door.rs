//! The engine, ready for the doors that agents come in by.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_api::error::Result;
use cairn_api::token::{self, Holder, Scope};
use cairn_core::guided::decide::Wanted;
use cairn_engine::catalog::Catalog;
use cairn_engine::flow::Automations;
use cairn_engine::guided::{Guide, Options};
use cairn_engine::host::SystemHost;
use cairn_mcp::{Door, Reach};
use cairn_store::Store;
use cairn_triggers::channel::Channels;

use crate::config::Config;
use crate::{automate, sources};

/// Opens the door to a store. Agents that do not name their project work on `workspace`.
pub(crate) fn open(config: &Config, store: Store, workspace: Option<PathBuf>) -> Result<Door> {
    let catalog = Arc::new(sources::catalog(config));
    let automations = automate::open(config, store.clone(), Arc::clone(&catalog))?;
    let guide = guide(config, store, Arc::clone(&catalog), workspace)?;
    let holder = Holder { scopes: vec![Scope::Read, Scope::Run], by: token::agent("agent", None) };
    Ok(with(guide, automations, catalog, (holder, Reach::User)))
}

/// The door to a guide and an engine, for somebody.
pub(crate) fn with(
    guide: Guide,
    automations: Automations,
    catalog: Arc<Catalog>,
    (holder, reach): (Holder, Reach),
) -> Door {
    let triggers = cairn_triggers::catalog::all(Channels::default());
    Door { guide, automations, triggers, catalog, holder, reach }
}

/// The engine over a store, with the preferences of the configuration.
pub(crate) fn guide(
    config: &Config,
    store: Store,
    catalog: Arc<Catalog>,
    workspace: Option<PathBuf>,
) -> Result<Guide> {
    let preferences = Wanted {
        autonomy: Some(config.autonomy.value),
        risk_policy: Some(config.risk_policy.value),
    };
    let options = Options { preferences, workspace };
    let performers = cairn_steps::catalog::all(&config.step_settings()?);
    Ok(Guide::new(store, catalog, performers, SystemHost::shared(), options))
}
