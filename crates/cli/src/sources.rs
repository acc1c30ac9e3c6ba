//! Which workflows a command works with: those of the configured directories, or one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_api::error::Result;
use cairn_api::workflow::Diagnostic;
use cairn_engine::catalog::{Catalog, Directory, Found};
use cairn_lang::guided;
use cairn_lang::ids::SourceKind;

use crate::config::{self, Config};

/// The workflows of the configured directories, the nearest first.
pub(crate) fn catalog(config: &Config) -> Catalog {
    let named = |kind: SourceKind, paths: Vec<PathBuf>| {
        paths.into_iter().map(move |root| Directory { kind, root })
    };
    let project = ["workflows", ".cairn/workflows"].map(PathBuf::from).into();
    let directories = named(SourceKind::Project, project)
        .chain(named(SourceKind::User, config.workflows.value.clone()))
        .chain(named(SourceKind::User, config::user_workflows().into_iter().collect()))
        .chain(named(SourceKind::Bundled, config.bundled.value.clone()));
    let [bindings, _] = guided::BINDINGS;
    Catalog::new(directories.collect()).bound_by(bindings.into())
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

/// What is worth telling about a workflow.
pub(crate) fn diagnostics(found: &Found) -> Vec<Diagnostic> {
    found.diagnostics().iter().map(Into::into).collect()
}
