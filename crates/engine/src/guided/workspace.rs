//! What is seen of the project that an agent works on, so that the work can be found again.

use std::fs;
use std::path::{Path, PathBuf};

use cairn_core::digest::Digest;
use cairn_core::event::guided::{Confidence, ObservationKey, ObservationRecorded, ObservedValue};
use cairn_core::event::{NewEvent, Scope, limits};
use cairn_core::id::{EventId, NodeId, RunId};
use cairn_core::projection::session::SessionView;
use cairn_core::text::truncate;
use cairn_store::regular;

/// How much of a file of the project is read.
const BYTES_MAX: u64 = 16 << 20;

/// What is checked out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Checkout {
    pub(super) root: PathBuf,
    pub(super) branch: Option<String>,
    pub(super) head: Option<String>,
}

/// Looks for a checkout at a path or above it. It asks no program, only files.
pub(super) fn checkout(path: &Path) -> Option<Checkout> {
    let path = fs::canonicalize(path).ok()?;
    let root = path.ancestors().find(|folder| folder.join(".git").exists())?;
    let git = git_folder(&root.join(".git"))?;
    let head = text(&git.join("HEAD"))?;
    let head = head.trim();
    let checkout = |branch, head| Checkout { root: root.to_owned(), branch, head };
    match head.strip_prefix("ref: ") {
        Some(reference) => {
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            Some(checkout(Some(branch.to_owned()), resolve(&git, reference)))
        }
        None => Some(checkout(None, is_sha(head).then(|| head.to_owned()))),
    }
}

/// A small file of the project, if it is one.
fn text(path: &Path) -> Option<String> {
    regular::read_text(path, BYTES_MAX).ok()
}

/// The folder itself, or the one that a worktree's file names.
fn git_folder(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let text = text(path)?;
    let named = text.trim().strip_prefix("gitdir: ")?;
    Some(path.parent()?.join(named))
}

/// What a reference points at: its own file, or its line in the packed ones.
fn resolve(git: &Path, reference: &str) -> Option<String> {
    let common = text(&git.join("commondir"));
    let common = common.map_or_else(|| git.to_owned(), |named| git.join(named.trim()));
    let loose = [git, &common].into_iter().find_map(|folder| {
        let text = text(&folder.join(reference))?;
        is_sha(text.trim()).then(|| text.trim().to_owned())
    });
    loose.or_else(|| {
        let packed = text(&common.join("packed-refs"))?;
        let line = packed.lines().find(|line| line.ends_with(&format!(" {reference}")))?;
        line.split(' ').next().filter(|sha| is_sha(sha)).map(str::to_owned)
    })
}

fn is_sha(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
}

/// The project that a run belongs to: the one it was started in, or was bound to since.
pub(super) fn of_run(view: &SessionView, run: RunId) -> Option<PathBuf> {
    view.workspaces.get(&run).map(PathBuf::from)
}

/// A path as it is recorded.
pub(super) fn recorded(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// That a run belongs to a project, recorded at a node of it; none when the path is too long.
pub(super) fn belongs(
    path: Option<&Path>,
    (run, node): (RunId, NodeId),
    mint: &mut dyn FnMut() -> EventId,
) -> Option<NewEvent> {
    let path = recorded(path?).display().to_string();
    (path.len() <= limits::PATH).then(|| NewEvent {
        id: mint(),
        scope: Scope::Node(run, node),
        data: ObservationRecorded {
            confidence: Confidence::High,
            key: ObservationKey::RepoRoot,
            value: ObservedValue::Path(path),
        }
        .into(),
    })
}

/// The observations of the checkout that the session does not have yet.
pub(super) fn observe(
    path: Option<&Path>,
    view: &SessionView,
    mint: &mut dyn FnMut() -> EventId,
) -> Vec<NewEvent> {
    let Some(found) = path.and_then(checkout) else { return Vec::new() };
    let root = found.root.display().to_string();
    let mut seen = vec![(ObservationKey::RepoRootHash, sha256(&root))];
    if root.len() <= limits::PATH {
        seen.push((ObservationKey::RepoRoot, ObservedValue::Path(root)));
    }
    let short = |name: String| ObservedValue::ShortString(truncate(&name, limits::SHORT_STRING));
    seen.extend(found.branch.map(|name| (ObservationKey::GitBranch, short(name))));
    let head = found.head.map(ObservedValue::GitSha1);
    seen.extend(head.map(|value| (ObservationKey::GitHeadSha, value)));
    let is_new = |(key, value): &(ObservationKey, ObservedValue)| {
        !view.observed.contains(&(*key, value.as_str().to_owned()))
    };
    seen.into_iter()
        .filter(is_new)
        .map(|(key, value)| NewEvent {
            id: mint(),
            scope: Scope::Session,
            data: ObservationRecorded { confidence: Confidence::High, key, value }.into(),
        })
        .collect()
}

fn sha256(text: &str) -> ObservedValue {
    ObservedValue::Sha256(Digest::of(text.as_bytes()).hex())
}
