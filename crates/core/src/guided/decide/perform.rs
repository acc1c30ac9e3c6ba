//! A step that the engine performed: its outcome is recorded and the run goes on.
//!
//! The node at which such a step is pending is its durable intent, so nothing more is
//! recorded before it is performed.

use serde_json::{Map, Value, json};

use super::advance::target;
use super::record::{Made, Record};
use super::{Decided, Here, Mint, Rejection};
use crate::event::Scope;
use crate::event::guided::{
    AdvanceIntent, AdvanceOutcome, AdvanceRecorded, ContextSource, EdgeCauseKind, EdgeKind,
    NodeKind,
};
use crate::guided::walk;
use crate::id::AttemptId;
use crate::projection::context::merge;
use crate::snapshot::EngineState;

/// What came of a step that the engine performed.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The one attempt that the engine makes at the node.
    pub attempt: AttemptId,
    /// The context key under which later steps find it.
    pub save_as: Option<&'a str>,
    /// What came out.
    pub output: &'a Value,
    /// What happened, for people and agents.
    pub notes: &'a str,
    /// Whether the run is to end here.
    pub ends: bool,
}

/// Records an outcome. Whatever it is, the run goes on: conditions may look at it.
pub fn perform(here: Here<'_>, outcome: Outcome<'_>, mint: Mint<'_>) -> Result<Decided, Rejection> {
    let EngineState::Running(running) = here.state else { return Err(Rejection::Complete) };
    let instance = running.pending().ok_or(Rejection::Complete)?;
    let mut delta = Map::new();
    if let Some(key) = outcome.save_as {
        delta.insert(key.to_owned(), outcome.output.clone());
    }
    let mut context = here.context.clone();
    merge(&mut context, &delta);
    let walk = match outcome.ends {
        true => walk::end(running),
        false => walk::after(here.plan, &context, running, &[]),
    };
    let problems: Vec<_> = walk.trouble.iter().map(walk::Trouble::problem).collect();
    let to = target(outcome.attempt);
    let mut record = Record::new(here.run, to, outcome.attempt.to_string(), mint);
    let cause = record.push(
        Scope::Node(here.run, here.node),
        AdvanceRecorded {
            attempt_id: outcome.attempt,
            input_digest: None,
            intent: AdvanceIntent::AckPending,
            outcome: AdvanceOutcome::Advanced { to_node_id: to },
        },
    );
    record.node(Made {
        kind: NodeKind::Step,
        parent: Some(here.node),
        state: &walk.state,
        hash: here.hash,
    })?;
    let why = match here.has_children {
        true => EdgeCauseKind::NonTipAdvance,
        false => EdgeCauseKind::IntentionalFork,
    };
    record.edge(here.node, EdgeKind::AckedStep, why, cause);
    record.context(&delta, ContextSource::Merge);
    let artifact = json!({
        "kind": "wr.step_outcome", "stepId": instance.step.as_str(), "outcome": outcome.output,
    });
    record.outputs(Some(outcome.notes), &[artifact])?;
    record.gaps(&problems);
    record.trace(walk.trace);
    Ok(record.done())
}
