//! Performers: what the engine can do by itself, one for each step type.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::digest::Digest;
use serde_json::Value;

/// Does one type of step.
#[async_trait]
pub trait Performer: Send + Sync {
    /// The step type, as plans name it.
    fn name(&self) -> &'static str;

    /// Does the step. Paths in its texts have their values already.
    ///
    /// A step that did not turn out well has an outcome that says so; an error means that
    /// it could not be tried.
    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed>;
}

/// What a performer may know.
#[derive(Clone, Debug)]
pub struct Ctx {
    /// The project that the run is about.
    pub workspace: Option<PathBuf>,
    /// What a repetition of the same step carries too.
    pub idempotency_key: Digest,
}

/// What came of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// What later steps can look at.
    pub output: Value,
    /// What happened, in a few lines for agents and people.
    pub notes: String,
    /// Whether the run ends with it.
    pub ends: bool,
}

/// Why a step could not be tried.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

/// The performers there are, by step type.
#[derive(Clone, Default)]
pub struct Performers(BTreeMap<&'static str, Arc<dyn Performer>>);

impl Performers {
    /// These performers.
    #[must_use]
    pub fn new(all: Vec<Arc<dyn Performer>>) -> Self {
        Self(all.into_iter().map(|performer| (performer.name(), performer)).collect())
    }

    /// The performer of a step type.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Performer>> {
        self.0.get(name)
    }
}
