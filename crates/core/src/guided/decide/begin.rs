//! The beginning of a run.

use serde_json::{Map, Value};

use super::record::{Made, Record};
use super::{Decided, Mint, Rejection, Wanted};
use crate::digest::WorkflowHash;
use crate::event::guided::{
    Autonomy, ContextSource, NodeKind, PreferenceSource, Preferences, RunStarted, SourceKind,
};
use crate::event::limits;
use crate::guided::walk::{self, Trouble};
use crate::id::{NodeId, RunId};
use crate::pin::BlobKind;
use crate::plan::Plan;
use crate::text::truncate;

/// A run that is to begin.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Start<'a> {
    pub plan: &'a Plan,
    pub hash: WorkflowHash,
    pub run: RunId,
    pub source_kind: SourceKind,
    pub source_ref: &'a str,
    /// What the run is for.
    pub goal: Option<&'a str>,
    pub context: &'a Map<String, Value>,
    /// What the installation prefers.
    pub baseline: Wanted,
    /// What the user asked for.
    pub wanted: Wanted,
}

/// The run's first node.
#[must_use]
pub fn root(run: RunId) -> NodeId {
    NodeId::derive(&[&run.to_string(), "root"])
}

/// Begins a run: it stands at its first step, or is over when there is none to do.
pub fn begin(start: Start<'_>, mint: Mint<'_>) -> Result<Decided, Rejection> {
    let walk = walk::begin(start.plan, start.context);
    let (baseline_changes, baseline) = start.baseline.over(Preferences::default());
    let (changes, effective) = start.wanted.over(baseline);
    let problems: Vec<_> = walk.trouble.iter().map(Trouble::problem).collect();
    if let Some(problem) = problems.first()
        && effective.autonomy != Autonomy::FullAutoNeverStop
    {
        return Err(Rejection::Context(problem.message.clone()));
    }
    let (all, source) = match changes.is_empty() {
        true => (baseline_changes, PreferenceSource::System),
        // One change tells both, and the user's word is the one that counts.
        false => (start.differs(effective), PreferenceSource::User),
    };
    let node = root(start.run);
    let mut record = Record::new(start.run, node, start.run.to_string(), mint);
    record.blob(BlobKind::Plan, start.plan.encode()?);
    record.at_run(RunStarted {
        assets: start.plan.assets.iter().map(|asset| asset.sha256).collect(),
        goal: start.goal.map(str::to_owned),
        workflow_hash: start.hash,
        workflow_id: start.plan.workflow_id.clone(),
        workflow_source_kind: start.source_kind,
        workflow_source_ref: truncate(start.source_ref, limits::SOURCE_REF),
        workspace: None,
    });
    record.context(start.context, ContextSource::Initial);
    record.node(Made {
        kind: NodeKind::Step,
        parent: None,
        state: &walk.state,
        hash: start.hash,
    })?;
    record.preferences(all, effective, source);
    record.gaps(&problems);
    record.trace(walk.trace);
    Ok(record.done())
}

impl Start<'_> {
    /// Everything that is not as it is by default.
    fn differs(&self, effective: Preferences) -> Vec<crate::event::guided::PreferenceChange> {
        let wanted =
            Wanted { autonomy: Some(effective.autonomy), risk_policy: Some(effective.risk_policy) };
        wanted.over(Preferences::default()).0
    }
}
