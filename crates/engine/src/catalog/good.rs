//! What compiled last of each file, so that a save that does not compile takes nothing down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cairn_lang::Compiled;
use cairn_lang::diagnostic::{Code, Severity};

use super::kept::Kept;
use super::{Found, Identity, about};

/// What compiled last, by file.
#[derive(Default)]
pub(super) struct Good {
    found: BTreeMap<PathBuf, Arc<Found>>,
    /// What compiled last before this process began, as far as no newer version did.
    kept: BTreeMap<String, Kept>,
}

impl Good {
    /// Takes in what compiled last before this process began.
    pub(super) fn recall(&mut self, kept: Vec<Kept>) {
        self.kept = kept.into_iter().map(|kept| (kept.key.clone(), kept)).collect();
    }

    /// Notes what compiles, and gives what does not together with what did.
    pub(super) fn keep(&mut self, mut found: Vec<Arc<Found>>) -> Vec<Arc<Found>> {
        self.found.retain(|path, _| path.is_file());
        for workflow in &mut found {
            match workflow.outcome {
                Ok(_) => {
                    self.kept.remove(workflow.identity.key());
                    self.found.insert(workflow.path.clone(), Arc::clone(workflow));
                }
                Err(_) => {
                    if let Some(kept) = self.kept.remove(workflow.identity.key()) {
                        self.found.insert(workflow.path.clone(), Arc::new(kept.found(workflow)));
                    }
                    if let Some(good) = self.found.get(&workflow.path) {
                        let last_good = Some(Arc::clone(good));
                        *workflow = Arc::new(Found { last_good, ..Found::clone(workflow) });
                    }
                }
            }
        }
        let is_listed = |path: &Path| found.iter().any(|workflow| workflow.path == path);
        let gone: Vec<Arc<Found>> =
            self.found.iter().filter(|(path, _)| !is_listed(path)).map(emptied).collect();
        found.extend(gone);
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found
    }
}

/// What stands in the list for a file that held a workflow and holds none any more, as while it is
/// being written.
fn emptied((path, good): (&PathBuf, &Arc<Found>)) -> Arc<Found> {
    let message = "it holds no workflow any more".to_owned();
    let problem = about(path, Severity::Error, Code::Unreadable, message);
    Arc::new(Found {
        outcome: Err(vec![problem]),
        last_good: Some(Arc::clone(good)),
        ..Found::clone(good)
    })
}

impl Kept {
    /// The version that it is of a file that does not compile now.
    fn found(self, now: &Found) -> Found {
        let Self { plan, source, assets, .. } = self;
        let id = plan.workflow_id.clone();
        let identity = Identity::of_file(now.kind, &id, &now.path, true);
        let outcome = Ok(Compiled { plan, warnings: Vec::new() });
        let (last_good, hash) = (None, OnceLock::new());
        Found { bytes: source, outcome, id, identity, assets, last_good, hash, ..now.clone() }
    }
}

impl Found {
    /// The version that its triggers start: the one that compiled last. None when it is this one,
    /// or this process has seen none.
    #[must_use]
    pub const fn last_good(&self) -> Option<&Arc<Self>> {
        self.last_good.as_ref()
    }

    /// The version of a workflow that its triggers start.
    #[must_use]
    pub fn in_force(self: &Arc<Self>) -> Arc<Self> {
        Arc::clone(self.last_good.as_ref().unwrap_or(self))
    }
}
