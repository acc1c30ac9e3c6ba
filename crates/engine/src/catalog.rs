//! The workflows there are: which directories they come from, and which one a name means.
//!
//! Files are read again when they change, so that nobody has to restart anything.

mod across;
mod good;
mod identity;
mod kept;
mod other;
mod tree;

pub use across::across;
pub use identity::Identity;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cairn_core::catalog as steps;
use cairn_core::digest::WorkflowHash;
use cairn_core::plan::Mode;
use cairn_lang::builtins::{self, Builtins};
use cairn_lang::diagnostic::{Code, Diagnostic, Severity, nearest};
use cairn_lang::ids::{self, IdStatus, SourceKind};
use cairn_lang::source::{self, Position, SourceTree};
use cairn_lang::{Compiled, graph, guided};

use crate::error::{Error, Result};
use tree::{Stamp, Unreadable};

/// The workflow of sessions that only keep notes.
pub(crate) const NOTES: &str = "wr.session-notes";
const NOTES_FILE: &str = "session-notes.yaml";

/// A directory that workflows come from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Directory {
    pub kind: SourceKind,
    pub root: PathBuf,
}

/// The workflows of some directories, the nearest directory first.
pub struct Catalog {
    directories: Vec<Directory>,
    bindings: Option<PathBuf>,
    pinned: Option<Arc<Found>>,
    types: Arc<steps::Catalog>,
    read: Mutex<Option<Read>>,
    /// What compiled last of each file.
    good: Mutex<good::Good>,
    /// Whether it takes no time to see that nothing has changed.
    is_quick: AtomicBool,
}

/// How many files are looked at in no time.
const FEW: usize = 64;

/// What was read, and how the files were then.
struct Read {
    stamps: Vec<Stamp>,
    found: Vec<Arc<Found>>,
}

/// What stands in place of a directory where there is none.
const BUILT_IN: &str = "(built in)";

/// A directory with workflows, or those that are built in.
pub struct Source {
    /// The directory; none for what is built in.
    pub root: Option<PathBuf>,
    /// What is in it.
    pub tree: SourceTree,
    /// The types that its graphs may use.
    types: Arc<steps::Catalog>,
    /// What is in it and cannot be read.
    unreadable: Vec<Unreadable>,
    /// Whether its workflows are found by their ids.
    is_listed: bool,
}

/// A workflow of a source, right or wrong.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its file, for people.
    pub path: PathBuf,
    /// The kind of its source.
    pub kind: SourceKind,
    /// Its id, as far as it has one: its name for people.
    pub id: String,
    /// What tells it from every other.
    identity: Identity,
    /// The old id that it was asked for by.
    pub alias: Option<String>,
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// When the file was last changed; none for one that is in no file.
    pub(crate) changed_ms: Option<u64>,
    /// The files beside it that belong to its plan, by their path from its folder.
    pub assets: BTreeMap<String, Arc<[u8]>>,
    /// What it compiled to, or everything that is wrong with it.
    pub outcome: std::result::Result<Compiled, Vec<Diagnostic>>,
    /// The version of it that compiled last, if it does not and this process has seen one.
    last_good: Option<Arc<Self>>,
    /// The hash of its plan, once somebody asked for it.
    hash: OnceLock<WorkflowHash>,
}

impl Catalog {
    /// The workflows of these directories, the nearest first. Graphs may use the step types
    /// that need no performer.
    #[must_use]
    pub fn new(directories: Vec<Directory>) -> Self {
        let types = Arc::new(steps::Catalog::new(steps::interpreted::all()));
        let (read, is_quick) = (Mutex::new(None), AtomicBool::new(false));
        let (directories, good) = (tree::distinct(directories), Mutex::default());
        Self { directories, bindings: None, pinned: None, types, read, good, is_quick }
    }

    /// The workflows of a tree that is at hand, and of no directory.
    #[must_use]
    pub fn of_tree(tree: SourceTree, types: steps::Catalog) -> Self {
        let catalog = Self::new(Vec::new()).knowing(types);
        let found = list(&[catalog.source(None, tree, Vec::new())]);
        Self { read: Mutex::new(Some(Read { stamps: Vec::new(), found })), ..catalog }
    }

    /// The same workflows, of which graphs may use these types of steps and triggers.
    #[must_use]
    pub fn knowing(self, types: steps::Catalog) -> Self {
        Self { types: Arc::new(types), ..self }
    }

    /// The same workflows, with what a project's file puts at their extension points.
    #[must_use]
    pub fn bound_by(self, bindings: PathBuf) -> Self {
        Self { bindings: Some(bindings), ..self }
    }

    /// The same workflows, of which this one is found by its id, whoever else has that id.
    #[must_use]
    pub fn pinned(self, found: Arc<Found>) -> Self {
        Self { pinned: Some(found), ..self }
    }

    /// Every workflow, each id once, in order of the ids. The nearest source wins, except
    /// that nothing takes the place of a bundled `wr.*`.
    pub fn list(&self) -> Result<Vec<Arc<Found>>> {
        let stamps = self.stamps();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.as_ref().filter(|known| known.stamps == stamps) {
            return Ok(known.found.clone());
        }
        let sources = self.sources()?;
        let mut unreadable = sources.iter().flat_map(|source| &source.unreadable);
        if let Some(unreadable) = unreadable.find(|unreadable| unreadable.passes) {
            // What is known is still there.
            let source = std::io::Error::other(unreadable.why.clone());
            let failed = || tree::failed(&unreadable.path, source);
            return read.as_ref().map(|known| known.found.clone()).ok_or_else(failed);
        }
        let found = self.good().keep(list(&sources));
        // What cannot be read may become readable without a change of its own, as when a folder
        // above it is opened.
        let whole = |source: &Source| source.unreadable.iter().all(|known| known.is_asset);
        let whole = sources.iter().all(whole);
        *read = whole.then(|| Read { stamps, found: found.clone() });
        Ok(found)
    }

    fn good(&self) -> MutexGuard<'_, good::Good> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the files are now.
    fn stamps(&self) -> Vec<Stamp> {
        let stamps = tree::stamps(&self.directories, self.bindings.as_deref());
        self.is_quick.store(stamps.len() <= FEW, Ordering::Relaxed);
        stamps
    }

    /// The workflow of an id, if that can be said at once: few files are to be looked at, and
    /// none has changed.
    #[must_use]
    pub fn find_at_once(&self, id: &str) -> Option<Arc<Found>> {
        let pinned = self.pinned.as_ref().filter(|found| found.id == id);
        if pinned.is_some() || !self.is_quick.load(Ordering::Relaxed) {
            return pinned.cloned();
        }
        let stamps = self.stamps();
        let read = self.read.try_lock().ok()?;
        let known = read.as_ref().filter(|known| known.stamps == stamps)?;
        known.found.iter().find(|found| found.id == id).cloned()
    }

    /// The workflow that an id, the name part of one, or an old id means.
    pub fn find(&self, given: &str) -> Result<Arc<Found>> {
        if let Some(found) = self.pinned.as_ref().filter(|found| found.id == given) {
            return Ok(Arc::clone(found));
        }
        if given == NOTES {
            return Ok(Arc::new(self.source(None, notes(), Vec::new()).workflow(NOTES_FILE)));
        }
        find(&self.list()?, given)
    }

    /// The workflows that another one can name: those of its own project, wherever this process
    /// stands, and those of no project.
    pub fn around(&self, asker: &Identity) -> Result<Option<Self>> {
        let place = Path::new(asker.place());
        let is_here = |found: &Arc<Found>| found.identity == *asker;
        // One that is told by its id is of no project.
        let is_anywhere = asker.key() == asker.id();
        if is_anywhere || self.pinned.iter().chain(&self.list()?).any(is_here) {
            return Ok(None);
        }
        let folder = place.parent().unwrap_or(place);
        let root = folder.ancestors().find(|above| above.ends_with("workflows"));
        let own = Directory { kind: SourceKind::Project, root: root.unwrap_or(folder).to_owned() };
        let common = self.directories.iter().filter(|known| known.kind != SourceKind::Project);
        let all = Self::new(std::iter::once(own).chain(common.cloned()).collect());
        Ok(Some(Self { types: Arc::clone(&self.types), ..all }))
    }

    /// The file of a workflow, wherever the sources are and whoever else has its id.
    pub fn find_same(&self, workflow: &Identity) -> Result<Arc<Found>> {
        let is_it = |found: &&Arc<Found>| found.identity == *workflow;
        if let Some(found) = self.pinned.iter().chain(&self.list()?).find(is_it) {
            return Ok(Arc::clone(found));
        }
        match Path::new(workflow.place()) {
            place if place.is_file() => self.file(place, &self.sources()?).map(Arc::new),
            place if place.as_os_str().is_empty() => self.find(workflow.id()),
            _ => Err(Error::WorkflowUnknown { given: workflow.place().to_owned(), nearest: None }),
        }
    }

    /// What to say about a workflow's id that is not what it should be. The id that it is
    /// advised to take is nobody's.
    pub(crate) fn id_warning(&self, found: &Found) -> Option<String> {
        let Found { id, kind, bytes, .. } = found;
        if let Some(alias) = &found.alias {
            return Some(format!("`{alias}` is an old id; use `{id}`"));
        }
        if ids::check(id, *kind) != Ok(IdStatus::Legacy) {
            return None;
        }
        let all = self.list().unwrap_or_default();
        let taken: Vec<&str> = all.iter().map(|found| found.id.as_str()).collect();
        let better = ids::suggest(id, *kind, bytes, &taken);
        Some(format!("`{id}` has no namespace; rename the workflow to `{better}`"))
    }

    /// The sources, read now.
    pub fn sources(&self) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        for Directory { kind, root } in self.directories.iter().filter(|d| d.root.is_dir()) {
            let (tree, unreadable) = tree::read(root, *kind);
            sources.push(self.source(Some(root.clone()), tree, unreadable));
        }
        sources.push(self.source(None, builtins::bundled(), Vec::new()));
        let library = library(&sources);
        for source in sources.iter_mut().filter(|s| s.tree.kind != SourceKind::Bundled) {
            source.tree.library.clone_from(&library);
        }
        for source in &mut sources {
            self.bind(&mut source.tree)?;
        }
        Ok(sources)
    }

    fn source(
        &self,
        root: Option<PathBuf>,
        tree: SourceTree,
        unreadable: Vec<Unreadable>,
    ) -> Source {
        Source { root, tree, unreadable, types: Arc::clone(&self.types), is_listed: true }
    }

    /// Adds the bindings of the project, which hold for the workflows of every source.
    fn bind(&self, tree: &mut SourceTree) -> Result<()> {
        let [name, _] = guided::BINDINGS;
        if let Some(path) = self.bindings.as_deref().filter(|path| path.is_file()) {
            let bytes = tree::bytes(path).map_err(|source| tree::failed(path, source))?;
            tree.files.insert(name.to_owned(), bytes);
        }
        Ok(())
    }

    /// The source of a directory that somebody named: one inside a bundled directory is bundled.
    pub fn directory(&self, path: &Path, sources: &[Source]) -> Result<Source> {
        let whole = |path: &Path| std::fs::canonicalize(path).ok();
        let inside = |root: &Path| {
            whole(path).zip(whole(root)).is_some_and(|(path, root)| path.starts_with(root))
        };
        let bundled = |d: &Directory| d.kind == SourceKind::Bundled && inside(&d.root);
        let kind = match self.directories.iter().any(bundled) {
            true => SourceKind::Bundled,
            false => SourceKind::Project,
        };
        let (tree, unreadable) = tree::read(path, kind);
        let mut tree = SourceTree { library: library(sources), ..tree };
        self.bind(&mut tree)?;
        let source = self.source(Some(path.to_owned()), tree, unreadable);
        Ok(Source { is_listed: false, ..source })
    }

    /// The workflow that a text would be, as a file of this name.
    pub fn text(&self, name: &str, bytes: Vec<u8>) -> Result<Found> {
        let files = BTreeMap::from([(name.to_owned(), bytes)]);
        let library = library(&self.sources()?);
        let tree = SourceTree { kind: SourceKind::Project, files, library };
        Ok(self.source(Some(PathBuf::new()), tree, Vec::new()).workflow(name))
    }

    /// The workflow in one file. Routines are looked for in the source that the file is of.
    pub fn file(&self, path: &Path, sources: &[Source]) -> Result<Found> {
        std::fs::metadata(path).map_err(|source| tree::failed(path, source))?;
        let whole = identity::whole(path);
        for source in sources {
            let root = source.root.as_ref().and_then(|root| std::fs::canonicalize(root).ok());
            let Some(root) = root else { continue };
            let inside = whole.strip_prefix(&root).ok().map(tree::relative);
            if let Some(inside) = inside.filter(|inside| source.tree.files.contains_key(inside)) {
                return Ok(Found { path: path.to_owned(), ..source.workflow(&inside) });
            }
        }
        let folder = whole.parent().unwrap_or(&whole);
        // It has the id that it has for those who stand in its project, and a `workflow.yaml`
        // is called after its folder: the folder is part of its path.
        let root = folder.parent().unwrap_or(folder);
        let name = tree::relative(whole.strip_prefix(root).unwrap_or(&whole));
        let (mut tree, left_out) = tree::neighbours(folder, root);
        tree.library = library(sources);
        let bytes = tree::source(folder, path).map_err(|source| tree::failed(path, source))?;
        tree.files.insert(name.clone(), bytes);
        self.bind(&mut tree)?;
        let source = self.source(Some(root.to_owned()), tree, left_out);
        let source = Source { is_listed: false, ..source };
        Ok(Found { path: path.to_owned(), ..source.workflow(&name) })
    }
}

/// Where the workflow of notes is. Nobody chooses it, so it is in no list.
fn notes() -> SourceTree {
    let text = include_bytes!("catalog/session-notes.yaml").to_vec();
    SourceTree {
        kind: SourceKind::Bundled,
        files: BTreeMap::from([(NOTES_FILE.to_owned(), text)]),
        library: BTreeMap::new(),
    }
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

fn list(sources: &[Source]) -> Vec<Arc<Found>> {
    let reserved = |found: &Found| {
        found.kind == SourceKind::Bundled && ids::namespace(&found.id) == Some(ids::RESERVED)
    };
    let all = sources.iter().flat_map(Source::workflows);
    let (first, rest): (Vec<Found>, Vec<Found>) = all.partition(reserved);
    let mut listed: BTreeMap<String, Arc<Found>> = BTreeMap::new();
    for found in first.into_iter().chain(rest) {
        listed.entry(found.id.clone()).or_insert_with(|| Arc::new(found));
    }
    listed.into_values().collect()
}

fn find(all: &[Arc<Found>], given: &str) -> Result<Arc<Found>> {
    if let Some(found) = all.iter().find(|found| found.id == given) {
        return Ok(Arc::clone(found));
    }
    let name = |found: &Found| found.id.split_once('.').map(|(_, name)| name.to_owned());
    let named: Vec<&Arc<Found>> =
        all.iter().filter(|found| name(found).as_deref() == Some(given)).collect();
    match named.as_slice() {
        [found] => Ok(Arc::clone(found)),
        [] => {
            let canonical = builtins::canonical(given);
            if let Some(found) = all.iter().find(|found| Some(found.id.as_str()) == canonical) {
                return Ok(Arc::new(Found::clone(found).asked_for_by(given)));
            }
            if let Some(found) = all.iter().find(|found| found.is_broken_one(given)) {
                return Ok(Arc::clone(found));
            }
            let near = meant(given, all.iter().map(|found| found.id.as_str()));
            Err(Error::WorkflowUnknown {
                given: given.to_owned(),
                nearest: near.map(str::to_owned),
            })
        }
        several => {
            let mut matches: Vec<Identity> =
                several.iter().map(|found| found.identity.clone()).collect();
            matches.sort_by(|a, b| a.id().cmp(b.id()));
            Err(Error::WorkflowAmbiguous { given: given.to_owned(), matches })
        }
    }
}

impl Source {
    /// A file of it, for people.
    fn shown(&self, path: &str) -> PathBuf {
        self.root.as_deref().unwrap_or(Path::new(BUILT_IN)).join(path)
    }

    /// The workflows in it, in order of their files, and what may be one but cannot be read.
    /// Files that are something else are passed over.
    #[must_use]
    pub fn workflows(&self) -> Vec<Found> {
        let mut found: Vec<Found> = self.readable().collect();
        let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for workflow in &found {
            places.entry(workflow.id.clone()).or_default().push(workflow.path.clone());
        }
        for workflow in &mut found {
            let of_id = places.get(&workflow.id).map(Vec::as_slice).unwrap_or_default();
            // Nobody can tell which of them is meant.
            if let Some(other) = of_id.iter().find(|path| **path != workflow.path) {
                workflow.has_the_id_of(other, of_id.first() != Some(&workflow.path));
            }
        }
        let broken = self.unreadable.iter().filter(|unreadable| !unreadable.is_asset);
        found.extend(broken.map(|unreadable| self.broken(unreadable)));
        found
    }

    /// What stands in the list for something that cannot be read.
    fn broken(&self, Unreadable { path, why, .. }: &Unreadable) -> Found {
        let shown = path.display().to_string();
        let problem = Diagnostic {
            suggestion: Some("give yourself access to it, or move it elsewhere".to_owned()),
            ..about(path, Severity::Error, Code::Unreadable, format!("it cannot be read: {why}"))
        };
        Found {
            path: path.clone(),
            kind: self.tree.kind,
            identity: Identity::of_file(self.tree.kind, &shown, path, self.is_listed),
            id: shown,
            alias: None,
            bytes: Vec::new(),
            changed_ms: None,
            assets: BTreeMap::new(),
            outcome: Err(vec![problem]),
            last_good: None,
            hash: OnceLock::new(),
        }
    }

    fn readable(&self) -> impl Iterator<Item = Found> {
        let files = self.tree.files.iter();
        let files = files.filter(|(path, _)| !guided::BINDINGS.contains(&path.as_str()));
        let files = files.filter(|(path, _)| tree::is_source(Path::new(path)));
        let files = files.filter(|(path, bytes)| match source::parse(path, bytes) {
            Ok(document) => cairn_lang::is_workflow(&document),
            Err(_) => true,
        });
        files.map(|(path, _)| self.workflow(path))
    }

    fn workflow(&self, path: &str) -> Found {
        let mut bytes = self.tree.files.get(path).cloned().unwrap_or_default();
        let document = source::parse(path, &bytes);
        let foreign = other::is(document.as_ref().ok(), &bytes);
        let at = document.as_ref().err().map(|fault| (fault.line, fault.column));
        let document = document.ok().filter(|_| !foreign);
        let builtins = Builtins::standard();
        let known = cairn_lang::Known { types: &self.types, builtins: &builtins };
        let compile = || cairn_lang::compile(&self.tree, path, known);
        let outcome = match cairn_lang::dialect_of(document.as_ref()).mode() {
            _ if foreign => Err(vec![other::told(path, at)]),
            Mode::Performed => with(compile(), self.left_out(path)),
            Mode::Guided => compile(),
        };
        if foreign {
            // What is no workflow is nobody's to show.
            bytes.clear();
        }
        let given = document.as_ref().and_then(|document| document.get("id")?.as_text());
        let id = outcome.as_ref().ok().map(|compiled| compiled.plan.workflow_id.as_str()).or(given);
        let id = id.unwrap_or(path).to_owned();
        let shown = self.shown(path);
        let identity = match &self.root {
            Some(_) => Identity::of_file(self.tree.kind, &id, &shown, self.is_listed),
            None => Identity::built_in(&id, &shown),
        };
        Found {
            changed_ms: self.root.as_ref().and_then(|_| tree::changed_ms(&shown)),
            path: shown,
            kind: self.tree.kind,
            id,
            identity,
            alias: None,
            assets: self.assets(path, outcome.as_ref().ok()),
            outcome,
            bytes,
            last_good: None,
            hash: OnceLock::new(),
        }
    }

    /// A word on each file beside a workflow that is not taken for one of its own.
    fn left_out(&self, path: &str) -> Vec<Diagnostic> {
        let folder = self.shown(path).parent().map(Path::to_owned).unwrap_or_default();
        let own = |unreadable: &&Unreadable| {
            unreadable.is_asset && unreadable.path.starts_with(folder.join(tree::ASSETS))
        };
        let told = |Unreadable { path, why, .. }: &Unreadable| {
            let message = format!("the file is left out: {why}");
            Diagnostic {
                suggestion: Some("put a copy of it there".to_owned()),
                ..about(path, Severity::Warning, Code::Unreadable, message)
            }
        };
        self.unreadable.iter().filter(own).map(told).collect()
    }

    /// The files that a workflow's plan names, by their path from its folder.
    fn assets(&self, path: &str, compiled: Option<&Compiled>) -> BTreeMap<String, Arc<[u8]>> {
        let folder = path.rfind('/').map_or("", |end| path.get(..=end).unwrap_or_default());
        let assets = compiled.into_iter().flat_map(|compiled| &compiled.plan.assets);
        let bytes = |path: &str| self.tree.files.get(&format!("{folder}{path}"));
        assets
            .filter_map(|asset| {
                Some((asset.path.clone(), Arc::from(bytes(&asset.path)?.as_slice())))
            })
            .collect()
    }
}

/// The id of the workflow that was most likely meant, by its id or the name part of it.
fn meant<'a>(given: &str, mut ids: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let name = |id: &'a str| id.split_once('.').map(|(_, name)| name);
    let near = nearest(given, ids.clone().chain(ids.clone().filter_map(name)))?;
    ids.find(|id| *id == near || name(id) == Some(near))
}

/// The same outcome with more said about it.
fn with(
    outcome: std::result::Result<Compiled, Vec<Diagnostic>>,
    more: Vec<Diagnostic>,
) -> std::result::Result<Compiled, Vec<Diagnostic>> {
    match outcome {
        Ok(mut compiled) => {
            compiled.warnings.extend(more);
            Ok(compiled)
        }
        Err(mut found) => {
            found.extend(more);
            Err(found)
        }
    }
}

/// A word on a whole file.
fn about(path: &Path, severity: Severity, code: Code, message: String) -> Diagnostic {
    let Position { line, column } = Position::START;
    Diagnostic {
        path: path.display().to_string(),
        line,
        column,
        severity,
        code,
        pointer: String::new(),
        message,
        suggestion: None,
    }
}

impl Found {
    /// What tells it from every other, wherever one stands and however it was named. What
    /// belongs to it is kept under this, not under its id.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The hash of its plan.
    pub fn hash(&self) -> Result<WorkflowHash> {
        if let Some(hash) = self.hash.get() {
            return Ok(*hash);
        }
        let hash = self.compiled()?.plan.hash();
        let hash = hash.map_err(|error| Error::Broken(error.to_string()))?;
        Ok(*self.hash.get_or_init(|| hash))
    }

    /// Whether it does not compile, and would likely be called this if it did.
    fn is_broken_one(&self, given: &str) -> bool {
        let namespace = self.kind.namespace();
        let bare = |id: &str| match id.split_once('.') {
            Some((first, rest)) if first == namespace => rest.to_owned(),
            _ => id.to_owned(),
        };
        let path = tree::relative(&self.path);
        let usual = graph::usual_id(&path, self.kind, &self.bytes);
        self.outcome.is_err() && [self.id.as_str(), &usual].map(bare).contains(&bare(given))
    }

    /// Says that another file of the same source has the id, and is the one that counts; this
    /// one goes by its path from then on.
    fn has_the_id_of(&mut self, other: &Path, is_listed_by_its_path: bool) {
        let other = other.display();
        let message = format!("`{}` is the id of {other} too, so it names neither", self.id);
        let fault = Diagnostic {
            pointer: "/id".to_owned(),
            suggestion: Some("give each workflow an id of its own".to_owned()),
            ..about(&self.path, Severity::Error, Code::DuplicateId, message)
        };
        if is_listed_by_its_path {
            self.id = self.path.display().to_string();
        }
        match &mut self.outcome {
            Ok(_) => self.outcome = Err(vec![fault]),
            Err(found) => found.insert(0, fault),
        }
    }

    /// The same workflow, with a word on the old id that led to it.
    fn asked_for_by(mut self, alias: &str) -> Self {
        let message = format!("`{alias}` is an old id of `{}`", self.id);
        let warning = Diagnostic {
            pointer: "/id".to_owned(),
            suggestion: Some(format!("use `{}`", self.id)),
            ..about(&self.path, Severity::Warning, Code::LegacyAlias, message)
        };
        match &mut self.outcome {
            Ok(compiled) => compiled.warnings.insert(0, warning),
            Err(found) => found.insert(0, warning),
        }
        self.alias = Some(alias.to_owned());
        self
    }

    /// The plan, or an error that holds everything that is wrong.
    pub fn compiled(&self) -> Result<&Compiled> {
        self.outcome.as_ref().map_err(|_| Error::WorkflowInvalid {
            path: self.path.clone(),
            diagnostics: self.diagnostics(),
        })
    }

    /// Whether its triggers are to fire. What cannot be read says nothing, so that what compiled
    /// last decides.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        let path = self.path.display().to_string();
        match cairn_lang::source::parse(&path, &self.bytes) {
            Ok(document) => cairn_lang::graph::is_enabled(&document),
            Err(_) => self.last_good.as_ref().is_some_and(|good| good.is_enabled()),
        }
    }

    /// A warning about a part of its source: an item of the list at `list` whose `id` is this, or
    /// the field of it that is named.
    #[must_use]
    pub fn warning_at(
        &self,
        (list, id, field): (&str, &str, &str),
        code: Code,
        (message, hint): (String, String),
    ) -> Diagnostic {
        let path = self.path.display().to_string();
        let document = source::parse(&path, &self.bytes).ok();
        let names = list.split('/').filter(|name| !name.is_empty());
        let items = names.fold(document.as_ref(), |node, name| node?.get(name));
        let items = match items.map(|items| &items.value) {
            Some(source::Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        let is_meant = |item: &source::Node| {
            let own = |name: &str| item.get(name).and_then(source::Node::as_text);
            own("id").or_else(|| own("type")) == Some(id)
        };
        let place = items.iter().position(is_meant).unwrap_or_default();
        let item = items.get(place);
        let at = item.map(|item| item.get(field).unwrap_or(item).at).unwrap_or(Position::START);
        Diagnostic {
            line: at.line,
            column: at.column,
            pointer: format!("{list}/{place}/{field}"),
            suggestion: Some(hint),
            ..about(&self.path, Severity::Warning, code, message)
        }
    }

    /// What is worth telling about it, with its path as people see it.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let found = match &self.outcome {
            Ok(compiled) => &compiled.warnings,
            Err(errors) => errors,
        };
        // It may have been named from inside its folder, or by a link.
        let paths = [self.path.as_path(), Path::new(self.identity.place())];
        let is_own = |found: &Diagnostic| paths.iter().any(|path| path.ends_with(&found.path));
        let shown = |found: &Diagnostic| match is_own(found) {
            true => Diagnostic { path: self.path.display().to_string(), ..found.clone() },
            false => found.clone(),
        };
        found.iter().map(shown).collect()
    }
}
