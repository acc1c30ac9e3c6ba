//! Which workflows a command works with: those of the configured directories, or one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_api::error::{Error, Result};
use cairn_api::workflow::Diagnostic;
use cairn_engine::catalog::{Catalog, Directory, Found};
use cairn_engine::error as engine;
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

/// The workflow whose past is asked for.
pub(crate) struct PastOf {
    /// Its id.
    pub(crate) id: String,
    /// Why it is not found, when it is not: it may be gone, and what it did is there.
    missing: Option<Error>,
}

impl PastOf {
    /// Says that there is no such workflow, when nothing is recorded of it either.
    pub(crate) fn require(self, is_recorded: bool) -> Result<()> {
        match self.missing {
            Some(missing) if !is_recorded => Err(missing),
            _ => Ok(()),
        }
    }
}

/// The workflow that a name means, as everywhere; or one that is gone, by its whole id.
pub(crate) fn past_of(given: &str, config: &Config) -> Result<PastOf> {
    match find(given, config) {
        Ok(found) => Ok(PastOf { id: found.id.clone(), missing: None }),
        Err(error @ Error::Engine(engine::Error::WorkflowUnknown { .. })) => {
            Ok(PastOf { id: given.to_owned(), missing: Some(error) })
        }
        Err(error) => Err(error),
    }
}

/// All workflows, and the one in a file, which they hold by its id, whoever else has that.
pub(crate) fn with_file(file: &Path, config: &Config) -> Result<(Catalog, Arc<Found>)> {
    let catalog = catalog(config);
    let found = Arc::new(catalog.file(file, &catalog.sources()?)?);
    found.compiled()?;
    Ok((catalog.pinned(Arc::clone(&found)), found))
}

/// The workflows whose `on_error` names one that is not there, with the name.
pub(crate) fn without_handler(catalog: &Catalog, found: &[Arc<Found>]) -> Vec<(String, String)> {
    let missing = |found: &Arc<Found>| {
        let plan = &found.in_force().compiled().ok()?.plan.clone();
        let named = plan.policy.error_workflow_id.clone()?;
        let unknown = matches!(catalog.find(&named), Err(engine::Error::WorkflowUnknown { .. }));
        unknown.then(|| (found.id.clone(), named))
    };
    found.iter().filter_map(missing).collect()
}

/// What is worth telling about a workflow.
pub(crate) fn diagnostics(found: &Found) -> Vec<Diagnostic> {
    found.diagnostics().iter().map(Into::into).collect()
}
