//! A step that the engine performed: its outcome is recorded, and the run goes on or is told
//! what keeps it.
//!
//! The node at which such a step is pending is its durable intent, so nothing more is
//! recorded before it is performed.

use serde_json::{Value, json};

use super::advance::{Ack, stops, target};
use super::block::{Blocked, block};
use super::checkpoint::{self, Note};
use super::record::{Made, Record, Role};
use super::{Decided, Here, Mint, Rejection, Wanted, report};
use crate::event::Scope;
use crate::event::guided::{
    AdvanceIntent, AdvanceOutcome, AdvanceRecorded, ContextSource, EdgeCauseKind, EdgeKind,
    NodeKind, PreferenceSource,
};
use crate::guided::judge::{Problem, Submission, at_step};
use crate::guided::walk;
use crate::id::AttemptId;
use crate::plan::{OnFailure, Step};
use crate::projection::context::merge;
use crate::reason::{ContractViolation, Reason};
use crate::snapshot::EngineState;

/// The kind of the artifact that keeps an outcome.
const KIND: &str = "wr.step_outcome";

/// What came of a step that the engine performed.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The attempt at the node that it was performed in.
    pub attempt: AttemptId,
    /// The context key under which later steps find it.
    pub save_as: Option<&'a str>,
    /// What came out.
    pub output: &'a Value,
    /// What happened, for people and agents.
    pub notes: &'a str,
    /// Whether it did not turn out well.
    pub failed: bool,
    /// Whether the run is to end here.
    pub ends: bool,
}

/// An outcome at a node where the run stayed, so that the step need not be performed again.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Held {
    pub output: Value,
    pub notes: String,
    pub failed: bool,
}

impl Held {
    /// The artifact that keeps it.
    fn artifact(step: &Step, outcome: Outcome<'_>) -> Value {
        json!({
            "failed": outcome.failed, "kind": KIND, "notes": outcome.notes,
            "outcome": outcome.output, "stepId": step.id.as_str(),
        })
    }

    /// Reads a kept artifact.
    #[must_use]
    pub fn read(artifact: &Value) -> Option<Self> {
        Some(Self {
            output: artifact.get("outcome")?.clone(),
            notes: artifact.get("notes")?.as_str()?.to_owned(),
            failed: artifact.get("failed")?.as_bool()?,
        })
    }
}

/// Records an outcome. The run goes on whatever it is, as conditions may look at it, unless
/// the step must turn out well or a loop behind it lacks what it needs.
///
/// With `ack` somebody goes on from the node: what they bring along is taken in.
pub fn perform(
    here: Here<'_>,
    outcome: Outcome<'_>,
    ack: Option<Ack<'_>>,
    mint: Mint<'_>,
) -> Result<Decided, Rejection> {
    let EngineState::Running(running) = here.state else { return Err(Rejection::Complete) };
    let instance = running.pending().ok_or(Rejection::Complete)?;
    let step = here.plan.step(&instance.step).ok_or(Rejection::Complete)?;
    let mut delta = ack.map(|ack| ack.context.clone()).unwrap_or_default();
    if let Some(key) = outcome.save_as {
        delta.insert(key.to_owned(), outcome.output.clone());
    }
    let mut context = here.context.clone();
    merge(&mut context, &delta);
    let walk = match outcome.ends {
        true => walk::end(running),
        false => walk::after(here.plan, &context, running, &[]),
    };
    let wanted = ack.map_or_else(Wanted::default, |ack| ack.wanted);
    let (changes, preferences) = wanted.over(here.preferences);
    let mut problems: Vec<_> = fault(step, outcome).into_iter().collect();
    let trouble: Vec<_> = walk.trouble.iter().map(walk::Trouble::problem).collect();
    let stops = stops(&problems, &trouble, preferences.autonomy);
    problems.extend(trouble);
    let recorded = |result| {
        let input_digest = ack.map(|ack| ack.digest()).transpose()?;
        let intent = AdvanceIntent::AckPending;
        let attempt_id = outcome.attempt;
        Ok::<_, Rejection>(AdvanceRecorded { attempt_id, input_digest, intent, outcome: result })
    };
    let seed = outcome.attempt.to_string();
    if stops {
        let recorded = recorded(AdvanceOutcome::Blocked { blockers: report(&problems)? })?;
        let held = Some(Held::artifact(step, outcome));
        return block(here, Blocked { recorded, ack, claims: &[], held }, mint);
    }
    let to = target(outcome.attempt);
    let noted = match ack {
        Some(ack) => noted(here, ack, &mut *mint)?,
        None => None,
    };
    let mut record = Record::new(here.run, to, seed, mint);
    let advanced = recorded(AdvanceOutcome::Advanced { to_node_id: to })?;
    let cause = record.push(Scope::Node(here.run, here.node), advanced);
    let (state, hash) = (&walk.state, here.hash);
    record.node(Made { kind: NodeKind::Step, parent: Some(here.node), state, hash })?;
    let why = match here.has_children {
        true => EdgeCauseKind::NonTipAdvance,
        false => EdgeCauseKind::IntentionalFork,
    };
    record.edge(here.node, EdgeKind::AckedStep, why, cause);
    record.context(&delta, ContextSource::Merge);
    record.preferences(changes, preferences, PreferenceSource::User);
    let artifact = json!({
        "kind": KIND, "stepId": instance.step.as_str(), "outcome": outcome.output,
    });
    record.outputs(Some(outcome.notes), &[(Role::Sent, artifact)])?;
    record.gaps(&problems);
    record.trace(walk.trace);
    let mut decided = record.done();
    if let Some(noted) = noted {
        decided.events.splice(0..0, noted.events);
        decided.blobs.extend(noted.blobs);
    }
    Ok(decided)
}

/// The notes and artifacts of whoever went on over the step. The engine's own outcome is the
/// output of the node that follows, so these are a checkpoint in front of it.
fn noted(here: Here<'_>, ack: Ack<'_>, mint: Mint<'_>) -> Result<Option<Decided>, Rejection> {
    let Submission { notes, artifacts } = ack.submission;
    let notes = notes.filter(|notes| !notes.trim().is_empty());
    if notes.is_none() && artifacts.is_empty() {
        return Ok(None);
    }
    let note = Note { attempt: ack.attempt, notes, artifacts };
    checkpoint::beside(here, note, mint).map(Some)
}

/// What is wrong with an outcome, where the plan asks that it be right.
fn fault(step: &Step, outcome: Outcome<'_>) -> Option<Problem> {
    let must_pass = step.on_failure == OnFailure::Stop {};
    let said = outcome.notes.lines().next().unwrap_or_default();
    (must_pass && outcome.failed).then(|| Problem {
        reason: Reason::Contract(ContractViolation::InvalidRequiredOutput),
        pointer: at_step(&step.id),
        message: format!("`{}` did not pass: {said}", step.id),
        fix: Some(
            "send the token alone to see the whole output; fix what is wrong, then send the \
             output again: the engine runs it again"
                .to_owned(),
        ),
    })
}
