//! Which workflow is meant, however it was named and from wherever.

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};

use cairn_core::digest::Digest;
use cairn_core::event::guided::RunStarted;
use cairn_lang::ids::{self, SourceKind};

/// A workflow, told apart from every other by the place of its file.
///
/// What belongs to one workflow (secrets, settings, lanes, trigger keys) is kept under
/// [`Identity::key`]. An id is a name for people: several projects may use the same one, and
/// which of them is meant depends on where one stands.
#[derive(Clone, Debug)]
pub struct Identity {
    key: String,
    id: String,
    place: String,
    is_listed: bool,
}

impl Identity {
    /// The workflow in a file. A listed one is found by its id.
    pub(super) fn of_file(kind: SourceKind, id: &str, file: &Path, is_listed: bool) -> Self {
        Self::at(kind == SourceKind::Bundled, id, text(&whole(file)), is_listed)
    }

    /// A workflow that is built into the program.
    pub(super) fn built_in(id: &str, place: &Path) -> Self {
        Self::at(true, id, text(place), true)
    }

    /// The workflow that a run was started from.
    #[must_use]
    pub fn of_run(started: &RunStarted) -> Self {
        Self::recorded(&started.workflow_id, Some(&started.workflow_source_ref))
    }

    /// A workflow as an event names it. One of which no place is known is told by its id alone.
    #[must_use]
    pub fn recorded(id: &str, place: Option<&str>) -> Self {
        match place {
            // Whatever runs and has such an id is bundled: others do not compile.
            Some(place) => Self::at(true, id, place.to_owned(), false),
            None => Self::kept(id, id, ""),
        }
    }

    /// The workflow that is or was in a place, whatever its id.
    #[must_use]
    pub fn of_place(file: &Path) -> Self {
        let place = text(&whole(file));
        Self::at(false, &place.clone(), place, false)
    }

    /// What was kept under a key.
    pub(crate) fn kept(key: &str, id: &str, place: &str) -> Self {
        Self { key: key.to_owned(), id: id.to_owned(), place: place.to_owned(), is_listed: false }
    }

    fn at(is_bundled: bool, id: &str, place: String, is_listed: bool) -> Self {
        // Only the program and what the operator declares as bundled may use this namespace, and
        // an update may put it elsewhere: its ids are proof enough.
        let is_reserved = is_bundled && ids::namespace(id) == Some(ids::RESERVED);
        let key = if is_reserved { id.to_owned() } else { key(&place) };
        Self { key, id: id.to_owned(), place, is_listed: is_listed || is_reserved }
    }

    /// A short text that no two workflows share. No id looks like one, except those of bundled
    /// workflows, whose id it is; it can be part of a file name.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The id, for people.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where its file is, for people.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What a command takes for it: its id, or its file when it is in no source.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.is_listed { &self.id } else { &self.place }
    }
}

/// Where a file is: in its folder, whose path has no links and no `..`, under its name there. A
/// link to a file elsewhere is in a place of its own, as what it is given is taken from beside it.
/// What does not exist is where it would be.
pub(super) fn whole(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let Some(name) = path.file_name() else { return path };
    let resolved = path.ancestors().skip(1).find_map(|above| {
        let folder = path.parent()?.strip_prefix(above).ok()?;
        let above = std::fs::canonicalize(above).ok()?;
        let folder = if folder.as_os_str().is_empty() { above } else { above.join(folder) };
        Some(folder.join(name))
    });
    resolved.unwrap_or(path)
}

/// The key of a place.
fn key(place: &str) -> String {
    let digest = Digest::of(format!("cairn/workflow-place/1\0{place}").as_bytes()).hex();
    // Whoever can choose a path must not find one with the key of another's.
    format!("@{}", digest.get(..32).unwrap_or(&digest))
}

/// A path as a text that no other path has.
fn text(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("bytes:{}", path.as_os_str().as_encoded_bytes().escape_ascii()),
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Identity {}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Identity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.place)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn of(kind: SourceKind, id: &str, file: &Path) -> Identity {
        Identity::of_file(kind, id, file, true)
    }

    #[test]
    fn one_file_has_one_identity_by_whatever_path_and_id() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/w.yaml"), "").unwrap();
        symlink(root.join("a"), root.join("linked")).unwrap();
        symlink(root.join("a/w.yaml"), root.join("named.yaml")).unwrap();
        let paths = ["a/w.yaml", "a/b/../w.yaml", "./a/./w.yaml", "linked/w.yaml"];
        let known = of(SourceKind::Project, "project.w", &root.join("a/w.yaml"));
        for path in paths {
            for (kind, id) in [(SourceKind::Project, "project.w"), (SourceKind::User, "user.other")]
            {
                let found = of(kind, id, &root.join(path));
                assert_eq!((found.key(), found.place()), (known.key(), known.place()), "{path}");
            }
        }
        let linked = of(SourceKind::Project, "project.w", &root.join("named.yaml"));
        assert_ne!(linked.key(), known.key(), "what it runs is taken from beside the link");
        fs::remove_file(root.join("a/w.yaml")).unwrap();
        for path in ["a/w.yaml", "linked/w.yaml"] {
            assert_eq!(Identity::of_place(&root.join(path)), known, "what is gone: {path}");
        }
    }

    #[test]
    fn two_files_have_two_identities_whatever_they_are_called() {
        let bytes = |bytes: &'static [u8]| Path::new(OsStr::from_bytes(bytes));
        let places = [
            Path::new("/x/a/workflow.yaml"),
            Path::new("/x/b/workflow.yaml"),
            Path::new("/x/A/workflow.yaml"),
            Path::new("/x/a/workflow.yml"),
            bytes(b"/x/\xff"),
            bytes(b"/x/\xfe"),
            Path::new("/x/\u{fffd}"),
            Path::new("/x/\\xff"),
        ];
        let all: Vec<Identity> =
            places.iter().map(|place| of(SourceKind::Project, "project.w", place)).collect();
        for (at, one) in all.iter().enumerate() {
            for other in all.iter().skip(at + 1) {
                assert_ne!(one, other, "{one} {other}");
            }
            assert!(ids::check(one.key(), SourceKind::Project).is_err(), "no id looks like it");
            assert!(!one.key().contains(['/', '.', '\0']), "it can name a file: {}", one.key());
        }
    }

    #[test]
    fn only_reserved_ids_of_bundled_sources_stand_for_themselves() {
        let (here, there) = (Path::new("/x/1/w.yaml"), Path::new("/x/2/w.yaml"));
        let bundled = of(SourceKind::Bundled, "wr.w", here);
        assert_eq!(bundled.key(), "wr.w");
        assert_eq!(bundled, of(SourceKind::Bundled, "wr.w", there), "an update may move it");
        assert_eq!(bundled, Identity::built_in("wr.w", Path::new("(built in)/w.yaml")));
        assert_ne!(bundled, of(SourceKind::Project, "wr.w", here));
        let own = of(SourceKind::Bundled, "team.w", here);
        assert_ne!(own, of(SourceKind::Bundled, "team.w", there));
    }

    #[test]
    fn a_run_is_of_the_workflow_it_was_started_from() {
        for (kind, id) in [(SourceKind::Project, "project.w"), (SourceKind::Bundled, "wr.w")] {
            let found = of(kind, id, Path::new("/x/w.yaml"));
            let started = RunStarted {
                assets: Vec::new(),
                goal: None,
                workflow_hash: cairn_core::digest::WorkflowHash(Digest::of(b"plan")),
                workflow_id: id.to_owned(),
                workflow_source_kind: crate::guided::source_kind(kind),
                workflow_source_ref: found.place().to_owned(),
                workspace: None,
            };
            assert_eq!(Identity::of_run(&started), found);
        }
    }
}
