//! Which directories a client may name as its project.

use std::path::{Component, Path, PathBuf};

use cairn_api::Error;
use cairn_api::error::Result;

/// How far a client reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// As far as whoever started this process: it is a program of theirs.
    User,
    /// Into these directories and what is below them; into none when there are none.
    Below(Vec<PathBuf>),
}

impl Reach {
    /// Refuses a project that the client may not work on. Whether it is there is not said, and not
    /// looked at.
    pub(crate) fn require(&self, workspace: Option<&Path>) -> Result<()> {
        let (Self::Below(roots), Some(path)) = (self, workspace) else { return Ok(()) };
        let is_plain = path.components().all(|part| part != Component::ParentDir);
        let root = roots.iter().find(|root| path.starts_with(root)).filter(|_| is_plain);
        let root = root.ok_or(Error::WorkspaceDenied)?;
        // A link may lead out of it. What is not there cannot.
        match (path.canonicalize(), root.canonicalize()) {
            (Ok(path), Ok(root)) if !path.starts_with(&root) => Err(Error::WorkspaceDenied),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: auth.workspace
    // case: path.prefix
    #[test]
    fn a_client_names_what_is_below_a_root_and_learns_nothing_of_the_rest() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for folder in ["roots/mine/src", "roots-evil", "other"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::os::unix::fs::symlink(at("other"), at("roots/link")).unwrap();
        let below = Reach::Below(vec![at("roots")]);
        let code = |reach: &Reach, path: &Path| match reach.require(Some(path)) {
            Ok(()) => "ok",
            Err(error) => error.code(),
        };
        for path in ["roots", "roots/mine", "roots/mine/src", "roots/nobody"] {
            assert_eq!(code(&below, &at(path)), "ok", "{path}");
        }
        for path in
            ["roots-evil", "other", "nobody", "roots/../other", "roots/link", "roots/link/x/.."]
        {
            assert_eq!(code(&below, &at(path)), "WORKSPACE_DENIED", "{path}");
            assert_eq!(code(&Reach::Below(Vec::new()), &at(path)), "WORKSPACE_DENIED", "{path}");
            assert_eq!(code(&Reach::User, &at(path)), "ok", "{path}");
        }
        assert!(below.require(None).is_ok());
    }
}
