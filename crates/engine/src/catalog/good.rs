//! What compiled last of each file, so that a save that does not compile takes nothing down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_lang::diagnostic::{Code, Severity};

use super::{Found, about};

/// What compiled last, by file.
#[derive(Default)]
pub(super) struct Good(BTreeMap<PathBuf, Arc<Found>>);

impl Good {
    /// Notes what compiles, and gives what does not together with what did.
    pub(super) fn keep(&mut self, mut found: Vec<Arc<Found>>) -> Vec<Arc<Found>> {
        self.0.retain(|path, _| path.is_file());
        for workflow in &mut found {
            match workflow.outcome {
                Ok(_) => drop(self.0.insert(workflow.path.clone(), Arc::clone(workflow))),
                Err(_) => {
                    if let Some(good) = self.0.get(&workflow.path) {
                        let last_good = Some(Arc::clone(good));
                        *workflow = Arc::new(Found { last_good, ..Found::clone(workflow) });
                    }
                }
            }
        }
        let is_listed = |path: &Path| found.iter().any(|workflow| workflow.path == path);
        let gone: Vec<Arc<Found>> =
            self.0.iter().filter(|(path, _)| !is_listed(path)).map(emptied).collect();
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
