//! Every step type there is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use cairn_core::catalog::{Catalog, interpreted};
use cairn_engine::performer::{Evaluator, Performer, Performers};

use crate::db_query::{Database, DbQuery};
use crate::end::End;
use crate::guard::{Guard, Policy};
use crate::http::Http;
use crate::log::Log;
use crate::process;
use crate::python::{self, Python};
use crate::shell::Shell;
use crate::transform::Transform;

/// What the operator says about steps.
#[derive(Clone)]
pub struct Settings {
    /// The databases that workflows may ask, by name.
    pub databases: BTreeMap<String, Database>,
    /// Who evaluates expressions that are not evaluated in this process.
    pub evaluator: Option<Arc<dyn Evaluator>>,
    /// Where requests may go.
    pub guard: Guard,
    /// How commands are run.
    pub process: process::Options,
    /// How Python scripts are run.
    pub python: python::Options,
}

impl Settings {
    /// The settings of an operator who says nothing.
    ///
    /// `supervisor` is the program that is one when it is started as [`process::NAME`], and
    /// `data` a folder for what can be made again.
    #[must_use]
    pub fn new(supervisor: PathBuf, data: PathBuf) -> Self {
        Self {
            databases: BTreeMap::new(),
            evaluator: None,
            guard: Guard::new(Policy::default()),
            process: process::Options { supervisor, allow_env: Vec::new() },
            python: python::Options::new(data.join("python")),
        }
    }
}

/// Every performer, in alphabetical order.
#[must_use]
pub fn all(settings: &Settings) -> Performers {
    Performers::new(list(settings))
}

/// Every step type, those included that need no performer.
#[must_use]
pub fn types() -> Catalog {
    // What a step type is does not depend on what the operator says.
    let settings = Settings::new(PathBuf::new(), PathBuf::new());
    let performed = list(&settings).into_iter().map(|performer| performer.kind());
    Catalog::new(performed.chain(interpreted::all()))
}

fn list(settings: &Settings) -> Vec<Arc<dyn Performer>> {
    let process = || settings.process.clone();
    vec![
        Arc::new(DbQuery::new(settings.databases.clone())),
        Arc::new(End),
        Arc::new(Http::new(settings.guard.clone())),
        Arc::new(Log),
        Arc::new(Python::new(settings.python.clone(), process())),
        Arc::new(Shell { options: process() }),
        Arc::new(Transform { evaluator: settings.evaluator.clone() }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn performers_are_in_order_and_say_what_they_do() {
        let settings = Settings::new(PathBuf::new(), PathBuf::new());
        let kinds: Vec<_> = list(&settings).iter().map(|performer| performer.kind()).collect();
        assert!(kinds.is_sorted_by(|a, b| a.name < b.name));
        for kind in kinds {
            assert!(kind.input.get("description").is_some(), "{}", kind.name);
            assert!(kind.input.pointer("/examples/0").is_some(), "{}", kind.name);
        }
    }
}
