//! What runs by itself behind the server.

use std::sync::Arc;

use cairn_engine::catalog::Catalog;
use cairn_engine::flow::Automations;
use cairn_engine::secrets::Vault;
use cairn_engine::trigger::Triggers;

/// The engine and what starts its runs.
#[derive(Clone)]
pub struct Automation {
    /// What performs runs.
    pub engine: Automations,
    /// The workflows.
    pub catalog: Arc<Catalog>,
    /// The types of triggers.
    pub triggers: Triggers,
    /// The secrets that sign requests.
    pub vault: Vault,
}
