//! The engine of automations, as commands and the server have it.

pub(crate) mod credentials;
mod workers;

use std::path::Path;
use std::sync::Arc;

use cairn_api::error::Result;
use cairn_engine::catalog::{Catalog, Found};
use cairn_engine::environment::Kept;
use cairn_engine::flow::trace::{self, TraceParent};
use cairn_engine::flow::{Automations, Options, Parts, chain};
use cairn_engine::host::SystemHost;
use cairn_server::tokens::Tokens;
use cairn_store::Store;

use crate::config::Config;
use crate::sources;
use credentials::ProviderKeys;
use workers::Workers;

/// The engine over a store.
pub(crate) fn open(config: &Config, store: Store, catalog: Arc<Catalog>) -> Result<Automations> {
    let documents = Arc::clone(&store.documents);
    let tokens = Arc::clone(&documents);
    let workers = Arc::new(Workers::new());
    let mut steps = config.step_settings()?;
    let keys = || -> Result<_> { Ok(ProviderKeys::new(config.vault(&store)?, &steps.agents)) };
    let environment = Kept::new(documents, config.vault(&store)?, Arc::new(keys()?));
    let credentials = keys()?;
    steps.evaluator = Some(Arc::clone(&workers) as _);
    steps.credentials = Some(Arc::new(credentials));
    // An engine that was killed together with its supervisors left their commands behind. What
    // cannot be ended now keeps those from going on who would repeat it.
    if let Err(failed) = steps.process.records.end_all_left() {
        trouble(&failed.to_string());
    }
    let parts = Parts {
        host: SystemHost::shared(),
        store,
        catalog,
        types: cairn_steps::catalog::types(),
        performers: cairn_steps::catalog::all(&steps),
        environment: Arc::new(environment),
        evaluator: workers,
        rights: Arc::new(Tokens::new(tokens)),
    };
    let options = Options { trouble, news, ..Options::default() };
    Ok(Automations::new(parts, config.limits.options(options)))
}

/// The engine, and the workflow of it that is given by id or file.
pub(crate) fn with_workflow(
    config: &Config,
    store: Store,
    given: &str,
) -> Result<(Automations, Arc<Found>)> {
    let path = Path::new(given);
    let (catalog, found) = if path.is_file() {
        sources::with_file(path, config)?
    } else {
        let catalog = sources::catalog(config);
        let found = catalog.find(given)?;
        (catalog, found)
    };
    Ok((open(config, store, Arc::new(catalog))?, found))
}

/// Where a run that is started here stands in its chain.
pub(crate) fn chain() -> u32 {
    let said = std::env::var_os(chain::VARIABLE);
    chain::after(said.map(|said| said.to_string_lossy().into_owned()).as_deref())
}

/// What a run that is started here belongs to.
pub(crate) fn trace() -> Option<TraceParent> {
    TraceParent::read(&std::env::var(trace::VARIABLE).ok()?)
}

/// Tells whoever reads the log of this process.
#[expect(clippy::print_stderr, reason = "that is where the log of a process goes")]
fn news(what: &str) {
    eprintln!("{}", crate::output::plain(what));
}

/// Tells them of trouble.
#[expect(clippy::print_stderr, reason = "that is where the log of a process goes")]
fn trouble(what: &str) {
    eprintln!("trouble: {}", crate::output::plain(what));
}
