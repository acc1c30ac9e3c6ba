//! Which events follow from what was asked: a pure function, whose clock and ids come in.
//!
//! What an attempt leads to is derived from the attempt's id, so that whoever tries it
//! again arrives at the same nodes and outputs.

mod advance;
mod begin;
mod block;
mod checkpoint;
mod perform;
mod record;

pub use advance::{Ack, advance, is_asked, target};
pub use begin::{Start, begin, root};
pub use block::blocked_at;
pub use checkpoint::{Note, checkpoint, correct, correction, kept, spot};
pub use perform::{Held, Outcome, perform};
pub use record::Role;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::judge::Problem;
use super::walk::{Asked, Trouble};
use crate::canonical;
use crate::digest::WorkflowHash;
use crate::event::guided::{
    Autonomy, Capability, CapabilityStatus, PreferenceChange, Preferences, RiskPolicy,
};
use crate::event::{self, NewEvent};
use crate::id::{EventId, NodeId, RunId};
use crate::pin::BlobKind;
use crate::plan::Plan;
use crate::projection::gaps::Gap;
use crate::reason::{Blocker, BlockerReport, Pointer, Reason, Unexpected};
use crate::snapshot::EngineState;
use crate::text::truncate;

/// Where a run stands when somebody speaks to it.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Here<'a> {
    pub plan: &'a Plan,
    pub hash: WorkflowHash,
    pub run: RunId,
    pub node: NodeId,
    pub state: &'a EngineState,
    /// The context at the node.
    pub context: &'a Map<String, Value>,
    /// The preferences at the node.
    pub preferences: Preferences,
    /// Whether other nodes follow already.
    pub has_children: bool,
    /// What is known of capabilities on the way to the node, as far as it may be relied on.
    pub capabilities: &'a BTreeMap<Capability, CapabilityStatus>,
    /// The gaps that are open at the node.
    pub gaps: &'a [Gap],
}

/// What follows: events to append, and the blobs that they need.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Decided {
    pub events: Vec<NewEvent>,
    pub blobs: Vec<(BlobKind, Vec<u8>)>,
}

/// Why nothing follows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The run is over.
    #[error("the run is complete")]
    Complete,
    /// The pending step is not for the one who speaks.
    #[error("the pending step is performed by the engine")]
    NotYours,
    /// The run cannot begin with this context.
    #[error("{0}")]
    Context(String),
    /// Something that was said has no canonical JSON.
    #[error("{0}")]
    Unwritable(#[from] canonical::Error),
    /// Something that was said is over a budget.
    #[error("{0}")]
    OverBudget(#[from] event::Invalid),
}

/// Preferences that somebody asked for; what is left out stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Wanted {
    pub autonomy: Option<Autonomy>,
    pub risk_policy: Option<RiskPolicy>,
}

impl Wanted {
    /// What changes, and what holds then.
    #[must_use]
    pub fn over(self, now: Preferences) -> (Vec<PreferenceChange>, Preferences) {
        let autonomy = self.autonomy.filter(|wanted| *wanted != now.autonomy);
        let risk = self.risk_policy.filter(|wanted| *wanted != now.risk_policy);
        let changes = autonomy.map(PreferenceChange::Autonomy).into_iter();
        let effective = Preferences {
            autonomy: autonomy.unwrap_or(now.autonomy),
            risk_policy: risk.unwrap_or(now.risk_policy),
        };
        (changes.chain(risk.map(PreferenceChange::RiskPolicy)).collect(), effective)
    }
}

/// Gives a fresh event id each time.
pub type Mint<'m> = &'m mut dyn FnMut() -> EventId;

impl Trouble {
    /// The trouble as a problem, with the loop it is about.
    fn problem(&self) -> Problem {
        let (loop_id, message, fix) = match self {
            Self::LoopLimit { by, loop_id, iteration, max_iterations } => {
                let how = match by {
                    Asked::ByArtifact => "`\"decision\": \"stop\"`",
                    Asked::ByContext | Asked::ByPlan => "a context under which the loop ends",
                };
                (
                    loop_id,
                    format!(
                        "the loop `{loop_id}` may make {max_iterations} turns, and iteration {iteration} was asked for"
                    ),
                    format!("answer again with {how}, and say in the notes what is left"),
                )
            }
            Self::LoopSource { loop_id, path, wanted } => (
                loop_id,
                format!(
                    "the loop `{loop_id}` needs {wanted} in the context at `{path}`, and there is none"
                ),
                format!("answer again with `{path}` set in the context"),
            ),
            Self::Endless { loop_id } => (
                loop_id,
                format!("the loop `{loop_id}` turns without a step to do"),
                "look at the run conditions of its steps".to_owned(),
            ),
        };
        Problem {
            reason: Reason::Unexpected(Unexpected::InvariantViolation),
            pointer: Pointer::WorkflowStep { step_id: loop_id.clone() },
            message,
            fix: Some(fix),
        }
    }
}

/// The problems as blockers, as many as a report may hold, within their budgets.
fn report(problems: &[Problem]) -> Result<BlockerReport, event::Invalid> {
    let mut blockers: Vec<Blocker> = problems
        .iter()
        .map(|problem| Blocker {
            code: problem.reason.blocker_code(),
            pointer: problem.pointer.clone(),
            message: truncate(&problem.message, event::limits::BLOCKER_MESSAGE),
            suggested_fix: problem
                .fix
                .as_ref()
                .map(|fix| truncate(fix, event::limits::BLOCKER_FIX)),
        })
        .collect();
    blockers.sort();
    blockers.dedup();
    blockers.truncate(event::limits::BLOCKERS);
    BlockerReport::new(blockers)
}
