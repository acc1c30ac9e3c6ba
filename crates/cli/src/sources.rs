//! Workflow sources: the directories that workflows come from, and those that are built in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cairn_api::error::{Error, Result};
use cairn_api::workflow::{Diagnostic, Summary};
use cairn_lang::Compiled;
use cairn_lang::builtins::{self, Builtins};
use cairn_lang::diagnostic::{self, Code, Severity, nearest};
use cairn_lang::guided;
use cairn_lang::ids::{self, IdStatus, SourceKind};
use cairn_lang::source::{self, BYTES_MAX, Position, SourceTree};

use crate::config::{self, Config};

/// How deep directories are looked into.
const DEPTH_MAX: usize = 8;

/// What stands in place of a directory where there is none.
const BUILT_IN: &str = "(built in)";

/// A directory with workflows, or those that are built in.
pub(crate) struct Source {
    /// The directory; none for what is built in.
    pub(crate) root: Option<PathBuf>,
    pub(crate) tree: SourceTree,
}

/// A workflow of a source, right or wrong.
pub(crate) struct Found {
    /// Its file, for people.
    pub(crate) path: PathBuf,
    pub(crate) kind: SourceKind,
    /// Its id, as far as it has one.
    pub(crate) id: String,
    /// The old id that it was asked for by.
    pub(crate) alias: Option<String>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) outcome: std::result::Result<Compiled, Vec<diagnostic::Diagnostic>>,
}

/// The sources there are, the nearest first.
pub(crate) fn open(config: &Config) -> Result<Vec<Source>> {
    let named = |kind: SourceKind, paths: Vec<PathBuf>| paths.into_iter().map(move |p| (kind, p));
    let project = ["workflows", ".cairn/workflows"].map(PathBuf::from).into();
    let directories = named(SourceKind::Project, project)
        .chain(named(SourceKind::User, config.workflows.value.clone()))
        .chain(named(SourceKind::User, config::user_workflows().into_iter().collect()))
        .chain(named(SourceKind::Bundled, config.bundled.value.clone()));
    let mut sources = Vec::new();
    for (kind, root) in directories.filter(|(_, root)| root.is_dir()) {
        sources.push(Source { tree: read(&root, kind, DEPTH_MAX)?, root: Some(root) });
    }
    sources.push(Source { tree: builtins::bundled(), root: None });
    let library = library(&sources);
    for source in sources.iter_mut().filter(|source| source.tree.kind != SourceKind::Bundled) {
        source.tree.library.clone_from(&library);
    }
    Ok(sources)
}

/// What the bundled sources offer to the others.
fn library(sources: &[Source]) -> BTreeMap<String, Vec<u8>> {
    let bundled = sources.iter().filter(|source| source.tree.kind == SourceKind::Bundled);
    let whole = |source: &Source, path: &str| source.shown(path).display().to_string();
    bundled
        .flat_map(|source| source.tree.files.iter().map(move |file| (source, file)))
        .map(|(source, (path, bytes))| (whole(source, path), bytes.clone()))
        .collect()
}

/// The source of a directory that the user named: one inside a bundled directory is bundled.
pub(crate) fn directory(path: &Path, sources: &[Source], config: &Config) -> Result<Source> {
    let whole = |path: &Path| fs::canonicalize(path).ok();
    let inside = |root: &PathBuf| {
        whole(path).zip(whole(root)).is_some_and(|(path, root)| path.starts_with(root))
    };
    let bundled = config.bundled.value.iter().any(inside);
    let kind = if bundled { SourceKind::Bundled } else { SourceKind::Project };
    let tree = SourceTree { library: library(sources), ..read(path, kind, DEPTH_MAX)? };
    Ok(Source { root: Some(path.to_owned()), tree })
}

/// Every workflow, each id once, in order of the ids. The nearest source wins, except that
/// nothing takes the place of a bundled `wr.*`.
pub(crate) fn list(sources: &[Source]) -> Vec<Found> {
    let reserved = |found: &Found| {
        found.kind == SourceKind::Bundled && ids::namespace(&found.id) == Some(ids::RESERVED)
    };
    let all = sources.iter().flat_map(Source::workflows);
    let (first, rest): (Vec<Found>, Vec<Found>) = all.partition(reserved);
    let mut listed: BTreeMap<String, Found> = BTreeMap::new();
    for found in first.into_iter().chain(rest) {
        listed.entry(found.id.clone()).or_insert(found);
    }
    listed.into_values().collect()
}

/// The workflow that an id, the name part of one, an old id or a path names.
pub(crate) fn find(given: &str, config: &Config) -> Result<Found> {
    let sources = open(config)?;
    let path = Path::new(given);
    if path.is_file() {
        return file(path, &sources);
    }
    let mut all = list(&sources);
    let name = |found: &Found| found.id.split_once('.').map(|(_, name)| name.to_owned());
    let is_it = |found: &Found| found.id == given;
    let wanted: BTreeSet<String> = match all.iter().find(|found| is_it(found)) {
        Some(found) => BTreeSet::from([found.id.clone()]),
        None => {
            let named = all.iter().filter(|found| name(found).as_deref() == Some(given));
            named.map(|found| found.id.clone()).collect()
        }
    };
    if wanted.len() > 1 {
        let matches = wanted.into_iter().collect();
        return Err(Error::WorkflowAmbiguous { given: given.to_owned(), matches });
    }
    match all.iter().position(|found| wanted.contains(&found.id)) {
        Some(place) => Ok(all.swap_remove(place)),
        None => {
            let canonical = builtins::canonical(given);
            let place = all.iter().position(|found| Some(found.id.as_str()) == canonical);
            if let Some(place) = place {
                return Ok(all.swap_remove(place).asked_for_by(given));
            }
            let near = nearest(given, all.iter().map(|found| found.id.as_str()));
            let near = near.map(str::to_owned);
            Err(Error::WorkflowUnknown { given: given.to_owned(), nearest: near })
        }
    }
}

/// The workflow in one file. Routines are looked for in the source that the file is of.
pub(crate) fn file(path: &Path, sources: &[Source]) -> Result<Found> {
    let whole = fs::canonicalize(path).map_err(|source| failed(path, source))?;
    for source in sources {
        let root = source.root.as_ref().and_then(|root| fs::canonicalize(root).ok());
        let Some(root) = root else { continue };
        let inside = whole.strip_prefix(&root).ok().map(relative);
        if let Some(inside) = inside.filter(|inside| source.tree.files.contains_key(inside)) {
            return Ok(Found { path: path.to_owned(), ..source.workflow(&inside) });
        }
    }
    let folder = whole.parent().unwrap_or(&whole);
    // Its neighbours are only there for the routines they hold, so they may be unreadable.
    let (kind, none) = (SourceKind::Project, BTreeMap::new());
    let files = read(folder, kind, 1).map(|tree| tree.files).unwrap_or(none);
    let mut tree = SourceTree { kind, files, library: library(sources) };
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    tree.files.insert(name.clone(), bytes(path)?);
    let source = Source { root: Some(folder.to_owned()), tree };
    Ok(Found { path: path.to_owned(), ..source.workflow(&name) })
}

impl Source {
    /// A file of it, for people.
    fn shown(&self, path: &str) -> PathBuf {
        self.root.as_deref().unwrap_or(Path::new(BUILT_IN)).join(path)
    }

    /// The workflows in it. Files that are something else are passed over.
    pub(crate) fn workflows(&self) -> impl Iterator<Item = Found> {
        let files = self.tree.files.iter();
        let files = files.filter(|(path, bytes)| match source::parse(path, bytes) {
            Ok(document) => guided::is_workflow(&document),
            Err(_) => true,
        });
        files.map(|(path, _)| self.workflow(path))
    }

    pub(crate) fn workflow(&self, path: &str) -> Found {
        let bytes = self.tree.files.get(path).cloned().unwrap_or_default();
        let outcome = guided::compile(&self.tree, path, &Builtins::standard());
        let document = source::parse(path, &bytes).ok();
        let id = document.as_ref().and_then(|document| document.get("id")?.as_text());
        Found {
            path: self.shown(path),
            kind: self.tree.kind,
            id: id.unwrap_or(path).to_owned(),
            alias: None,
            outcome,
            bytes,
        }
    }
}

impl Found {
    /// The same workflow, with a word on the old id that led to it.
    fn asked_for_by(mut self, alias: &str) -> Self {
        let Position { line, column } = Position::START;
        let warning = diagnostic::Diagnostic {
            path: self.path.display().to_string(),
            line,
            column,
            severity: Severity::Warning,
            code: Code::LegacyAlias,
            pointer: "/id".to_owned(),
            message: format!("`{alias}` is an old id of `{}`", self.id),
            suggestion: Some(format!("use `{}`", self.id)),
        };
        match &mut self.outcome {
            Ok(compiled) => compiled.warnings.insert(0, warning),
            Err(found) => found.insert(0, warning),
        }
        self.alias = Some(alias.to_owned());
        self
    }

    /// What is worth telling about it, with its path as people see it.
    pub(crate) fn diagnostics(&self) -> Vec<Diagnostic> {
        let found = match &self.outcome {
            Ok(compiled) => &compiled.warnings,
            Err(errors) => errors,
        };
        let shown = self.path.display().to_string();
        let own = |d: &diagnostic::Diagnostic| self.path.ends_with(&d.path);
        found
            .iter()
            .map(|d| match own(d) {
                true => Diagnostic { path: shown.clone(), ..d.into() },
                false => d.into(),
            })
            .collect()
    }

    /// The plan, or an error that holds everything that is wrong.
    pub(crate) fn compiled(&self) -> Result<&Compiled> {
        self.outcome.as_ref().map_err(|_| Error::WorkflowInvalid {
            path: self.path.display().to_string(),
            diagnostics: self.diagnostics(),
        })
    }

    pub(crate) fn summary(&self, taken: &[&str]) -> Summary {
        let plan = self.outcome.as_ref().ok().map(|compiled| &compiled.plan);
        let status = ids::check(&self.id, self.kind).unwrap_or(IdStatus::Legacy);
        let suggested = || ids::suggest(&self.id, self.kind, &self.bytes, taken);
        Summary {
            workflow_id: self.id.clone(),
            id_status: status.name(),
            canonical_id: self.alias.as_ref().map(|_| self.id.clone()),
            suggested_id: (status == IdStatus::Legacy).then(suggested),
            name: plan.map(|plan| plan.name.clone()).unwrap_or_default(),
            description: plan.map(|plan| plan.description.clone()).unwrap_or_default(),
            source_kind: self.kind.name(),
            path: self.path.display().to_string(),
            steps: plan.map(|plan| plan.steps.len()).unwrap_or_default(),
            workflow_hash: plan.and_then(|plan| plan.hash().ok()).map(|hash| hash.to_string()),
            errors: self.outcome.as_ref().err().map(|all| errors(all)).unwrap_or_default(),
        }
    }
}

fn errors(all: &[diagnostic::Diagnostic]) -> usize {
    all.iter().filter(|found| found.severity == Severity::Error).count()
}

/// Reads a directory. What begins with a dot, and links to directories, are passed over.
fn read(root: &Path, kind: SourceKind, depth: usize) -> Result<SourceTree> {
    let mut files = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), 1)];
    while let Some((folder, level)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|source| failed(&folder, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| failed(&folder, source))?;
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let kind = entry.file_type().map_err(|source| failed(&path, source))?;
            if kind.is_dir() && level < depth {
                folders.push((path, level + 1));
            } else if is_source(&path) && path.is_file() {
                let name = relative(path.strip_prefix(root).unwrap_or(&path));
                files.insert(name, bytes(&path)?);
            }
        }
    }
    Ok(SourceTree { kind, files, library: BTreeMap::new() })
}

fn is_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("json" | "yaml" | "yml"))
}

/// No more than shows that a file is too long.
fn bytes(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(BYTES_MAX + 1).unwrap_or(u64::MAX);
    let file = fs::File::open(path).map_err(|source| failed(path, source))?;
    file.take(limit).read_to_end(&mut bytes).map_err(|source| failed(path, source))?;
    Ok(bytes)
}

fn relative(path: &Path) -> String {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), source }
}
