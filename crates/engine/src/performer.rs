//! Performers: what the engine can do by itself, one for each step type.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::catalog::StepType;
use cairn_core::digest::Digest;
use cairn_core::event::engine::Usage;
use cairn_core::id::{RunId, SessionId};
use serde_json::Value;

use crate::flow::trace::Try;

/// Does one type of step.
#[async_trait]
pub trait Performer: Send + Sync {
    /// The step type: its name, its settings, what comes out.
    fn kind(&self) -> StepType;

    /// Does the step. Templates in its settings have their values already.
    ///
    /// A step that did not turn out well has an outcome that says so; an error means that
    /// nothing came out. Whoever drops the future calls the step off: what it started ends.
    async fn perform(&self, config: Value, ctx: &Ctx) -> Result<Outcome, Failed>;

    /// Whether a step with these settings works in the folder of its run, which is made for the
    /// first one that does.
    fn needs_workspace(&self, _config: &Value) -> bool {
        false
    }

    /// How long a step may prepare itself, such as by installing what it needs, before its own time
    /// begins.
    fn preparation(&self, _config: &Value) -> Duration {
        Duration::ZERO
    }

    /// How long a step is left to itself once its time is over, to end what it started and to
    /// give out what it has.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }
}

/// Evaluates expressions that only a worker process may: an expression can be made to use
/// up whatever it gets.
#[async_trait]
pub trait Evaluator: Send + Sync {
    /// What a jq program makes of a value. Several results are a list.
    async fn jq(&self, expression: &str, input: Value) -> Result<Value, Failed>;

    /// What a JSONPath picks from a value, as a list.
    async fn jsonpath(&self, expression: &str, input: Value) -> Result<Value, Failed>;

    /// The text, or the value, that a template makes of a value's members.
    async fn template(&self, template: &str, input: Value) -> Result<Value, Failed>;
}

/// The processes that steps started, as far as they are recorded.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Ends what former owners of a session left running.
    ///
    /// Processes of an owner that is alive are not touched, nor is anything that is not
    /// recorded. Whoever takes a session over calls this before it repeats a try: on success
    /// nothing of the earlier try runs any more. An error means that something may still run,
    /// and that the try must not be repeated now.
    async fn end_left(&self, session: SessionId) -> Result<(), Failed>;
}

/// The folders that runs work in. Each belongs to one run and lives as long as it.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// The folder of a run, made when it is not there. That of a fork begins as a copy of the
    /// folder of the run it was forked from, as that is now.
    async fn open(&self, run: RunId, forked_from: Option<RunId>) -> Result<PathBuf, Failed>;

    /// Removes the folders of runs that are retired.
    async fn remove(&self, runs: &[RunId]);
}

/// What a performer may know.
#[derive(Clone, Debug)]
pub struct Ctx {
    /// The workflow that the step belongs to.
    pub workflow_id: String,
    /// What tells it from others of the same id.
    pub workflow_key: String,
    /// The session that its run is recorded in.
    pub session: SessionId,
    /// The project or folder that the run works in.
    pub workspace: Option<PathBuf>,
    /// What a repetition of the same step carries too.
    pub idempotency_key: Digest,
    /// How many runs led to this one, which whatever the step starts is told.
    pub chain: u32,
    /// The try, which whatever the step sends or starts belongs to.
    pub trace: Option<Try>,
    /// How long the step may take; the engine calls it off then, or when its grace is over.
    pub timeout: Duration,
    /// The files that belong to the workflow, as they were when it was compiled, by path.
    pub assets: Arc<BTreeMap<String, Arc<[u8]>>>,
    /// The secrets that are in the settings.
    pub secrets: Vec<UsedSecret>,
    /// The hosts that the workflow limits itself to; any host when it says nothing.
    pub hosts: Option<Vec<String>>,
}

/// A secret that is in a step's settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsedSecret {
    /// Its name.
    pub name: String,
    /// The hosts that it may be sent to; any host when there are none.
    pub hosts: Vec<String>,
}

/// What came of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// What later steps can look at.
    pub output: Value,
    /// The label by which the edges that follow are picked.
    pub case: Option<String>,
    /// What happened, in a few lines for agents and people.
    pub notes: String,
    /// Whether the run ends with it.
    pub ends: bool,
    /// Why it does not count as done in an automation, though something came out.
    pub fault: Option<Failed>,
    /// What it used up of a model.
    pub usage: Option<Usage>,
}

impl Outcome {
    /// An outcome that went well.
    #[must_use]
    pub fn new(output: Value, notes: impl Into<String>) -> Self {
        Self { output, case: None, notes: notes.into(), ends: false, fault: None, usage: None }
    }
}

/// Why a step was not done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// A stable name, such as `HTTP_CONNECT`.
    pub code: &'static str,
    /// In words: what, why, and what to do about it.
    pub message: String,
    /// Whether another try may help.
    pub kind: FailureKind,
    /// How long the other side asks to be left alone before that.
    pub after_ms: Option<u64>,
}

pub use cairn_core::plan::FailureKind;

impl Failed {
    /// A failure that another try does not mend.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self::of(FailureKind::Permanent, code, message)
    }

    /// A failure of this kind.
    #[must_use]
    pub fn of(kind: FailureKind, code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), kind, after_ms: None }
    }
}

/// The performers there are, by step type.
#[derive(Clone, Default)]
pub struct Performers {
    by_type: BTreeMap<String, Arc<dyn Performer>>,
    processes: Option<Arc<dyn Processes>>,
    workspaces: Option<Arc<dyn Workspaces>>,
}

impl Performers {
    /// These performers, none of which starts processes.
    #[must_use]
    pub fn new(all: Vec<Arc<dyn Performer>>) -> Self {
        let by_type = all.into_iter().map(|performer| (performer.kind().name, performer));
        Self { by_type: by_type.collect(), processes: None, workspaces: None }
    }

    /// The same performers, whose processes are recorded there.
    #[must_use]
    pub fn with_processes(self, processes: Arc<dyn Processes>) -> Self {
        Self { processes: Some(processes), ..self }
    }

    /// The same performers, whose runs have folders there.
    #[must_use]
    pub fn with_workspaces(self, workspaces: Arc<dyn Workspaces>) -> Self {
        Self { workspaces: Some(workspaces), ..self }
    }

    /// The folder of a run, as [`Workspaces::open`] says; none where runs have no folders.
    pub async fn workspace(
        &self,
        run: RunId,
        forked_from: Option<RunId>,
    ) -> Result<Option<PathBuf>, Failed> {
        match &self.workspaces {
            Some(workspaces) => workspaces.open(run, forked_from).await.map(Some),
            None => Ok(None),
        }
    }

    /// Removes the folders of runs that are retired.
    pub async fn remove_workspaces(&self, runs: &[RunId]) {
        if let Some(workspaces) = &self.workspaces {
            workspaces.remove(runs).await;
        }
    }

    /// Ends what former owners of a session left running, as [`Processes::end_left`] says.
    pub async fn end_left(&self, session: SessionId) -> Result<(), Failed> {
        match &self.processes {
            Some(processes) => processes.end_left(session).await,
            None => Ok(()),
        }
    }

    /// The performer of a step type.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Performer>> {
        self.by_type.get(name)
    }

    /// The step types, by name.
    pub fn kinds(&self) -> impl Iterator<Item = StepType> {
        self.by_type.values().map(|performer| performer.kind())
    }
}
