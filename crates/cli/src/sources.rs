//! Which workflows a command works with: those of the configured directories, or one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_api::error::Result;
use cairn_api::workflow::Diagnostic;
use cairn_engine::catalog::{Catalog, Directory, Found};
use cairn_lang::guided;
use cairn_lang::ids::SourceKind;
use cairn_triggers::channel::Channels;

use crate::config::{self, Config};

/// The workflows of the configured directories, the nearest first.
pub(crate) fn catalog(config: &Config) -> Catalog {
    let [bindings, _] = guided::BINDINGS;
    let triggers = cairn_triggers::catalog::all(Channels::default());
    let types = cairn_steps::catalog::types().with_triggers(triggers.kinds());
    Catalog::new(directories(config).collect()).knowing(types).bound_by(bindings.into())
}

fn directories(config: &Config) -> impl Iterator<Item = Directory> {
    let named = |kind: SourceKind, paths: Vec<PathBuf>| {
        paths.into_iter().map(move |root| Directory { kind, root })
    };
    let project = ["workflows", ".cairn/workflows"].map(PathBuf::from).into();
    named(SourceKind::Project, project)
        .chain(named(SourceKind::User, config.workflows.value.clone()))
        .chain(named(SourceKind::User, config::user_workflows().into_iter().collect()))
        .chain(named(SourceKind::Bundled, config.bundled.value.clone()))
}

/// The workflow that an id, the name part of one, an old id or a path names.
pub(crate) fn find(given: &str, config: &Config) -> Result<Arc<Found>> {
    let catalog = catalog(config);
    let path = Path::new(given);
    if path.is_file() {
        return Ok(Arc::new(catalog.file(path, &catalog.sources()?)?));
    }
    Ok(catalog.find(given)?)
}

/// All workflows, and the one in a file, which they hold by its id, whoever else has that.
pub(crate) fn with_file(file: &Path, config: &Config) -> Result<(Catalog, Arc<Found>)> {
    let catalog = catalog(config);
    let found = Arc::new(catalog.file(file, &catalog.sources()?)?);
    found.compiled()?;
    Ok((catalog.pinned(Arc::clone(&found)), found))
}

/// What is worth telling about a workflow.
pub(crate) fn diagnostics(found: &Found) -> Vec<Diagnostic> {
    found.diagnostics().iter().map(Into::into).collect()
}
