//! The state of a guided run: at its beginning, under way, or at its end.

use serde::{Deserialize, Serialize};

use crate::instance::{LoopTurn, StepInstanceKey};
use crate::text::Slug;

/// Which rule a state breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A loop is inside itself.
    #[error("the loop `{0}` stands twice in the loop stack")]
    LoopTwice(Slug),
    /// The pending step is already done.
    #[error("the pending step `{0}` is already completed")]
    PendingCompleted(StepInstanceKey),
    /// The pending step is in other turns than the run.
    #[error("the loop path of the pending step `{0}` is not the loop stack")]
    PendingElsewhere(Slug),
    /// The completed steps are out of order, or one stands twice.
    #[error("completed steps must stand in order, each once")]
    Unsorted,
}

/// Where a guided run stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineState {
    /// Nothing has happened yet.
    Init,
    /// It is under way.
    Running(Running),
    /// It is over.
    Complete {
        /// The steps that were done.
        completed: Completed,
    },
}

impl EngineState {
    /// Whether the run is over.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self, Self::Complete { .. })
    }

    /// The step that is to be done next.
    #[must_use]
    pub fn pending(&self) -> Option<StepInstanceKey> {
        match self {
            Self::Running(running) => running.pending(),
            Self::Init | Self::Complete { .. } => None,
        }
    }

    pub(super) fn to_wire(&self) -> Wire {
        match self {
            Self::Init => Wire::Init {},
            Self::Running(running) => Wire::Running {
                completed: running.completed.to_wire(),
                decisions: running.decisions.clone(),
                loop_stack: running.loop_stack.clone(),
                pending: running.pending.as_ref().map_or(PendingWire::None {}, |step| {
                    let step =
                        PendingStep { loop_path: running.loop_path(), step_id: step.clone() };
                    PendingWire::Some { step }
                }),
            },
            Self::Complete { completed } => Wire::Complete { completed: completed.to_wire() },
        }
    }

    pub(super) fn from_wire(wire: Wire) -> Result<Self, Invalid> {
        match wire {
            Wire::Init {} => Ok(Self::Init),
            Wire::Running { completed, decisions, loop_stack, pending } => {
                let (path, step) = match pending {
                    PendingWire::None {} => (None, None),
                    PendingWire::Some { step } => (Some(step.loop_path), Some(step.step_id)),
                };
                let running = Running::new(Completed::from_wire(completed)?, loop_stack, step)?
                    .with_decisions(decisions);
                match (path, &running.pending) {
                    (Some(path), Some(step)) if path != running.loop_path() => {
                        Err(Invalid::PendingElsewhere(step.clone()))
                    }
                    _ => Ok(Self::Running(running)),
                }
            }
            Wire::Complete { completed } => {
                Ok(Self::Complete { completed: Completed::from_wire(completed)? })
            }
        }
    }
}

/// A run under way. The pending step stands in the turns of the loop stack and is not
/// among the completed ones; no loop is inside itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Running {
    completed: Completed,
    decisions: Vec<LoopDecision>,
    loop_stack: Vec<LoopFrame>,
    pending: Option<Slug>,
}

impl Running {
    /// A run under way in these loops, with this step to be done next.
    pub fn new(
        completed: Completed,
        loop_stack: Vec<LoopFrame>,
        pending: Option<Slug>,
    ) -> Result<Self, Invalid> {
        for (place, frame) in loop_stack.iter().enumerate() {
            if loop_stack.iter().skip(place + 1).any(|inner| inner.loop_id == frame.loop_id) {
                return Err(Invalid::LoopTwice(frame.loop_id.clone()));
            }
        }
        let running = Self { completed, decisions: Vec::new(), loop_stack, pending };
        match running.pending() {
            Some(step) if running.completed.contains(&step) => Err(Invalid::PendingCompleted(step)),
            _ => Ok(running),
        }
    }

    /// The run with these decisions, which no loop has acted on yet.
    #[must_use]
    pub fn with_decisions(self, decisions: Vec<LoopDecision>) -> Self {
        Self { decisions, ..self }
    }

    /// What was decided about loops and not acted on yet, oldest first.
    #[must_use]
    pub fn decisions(&self) -> &[LoopDecision] {
        &self.decisions
    }

    /// The steps that are done.
    #[must_use]
    pub const fn completed(&self) -> &Completed {
        &self.completed
    }

    /// The loops the run is in, outermost first.
    #[must_use]
    pub fn loop_stack(&self) -> &[LoopFrame] {
        &self.loop_stack
    }

    /// The step that is to be done next, in the turns of the loops around it.
    #[must_use]
    pub fn pending(&self) -> Option<StepInstanceKey> {
        let step = self.pending.clone()?;
        Some(StepInstanceKey { loop_path: self.loop_path(), step, visit: 0 })
    }

    fn loop_path(&self) -> Vec<LoopTurn> {
        let turn = |f: &LoopFrame| LoopTurn {
            iteration: f.iteration,
            loop_id: f.loop_id.clone(),
            visit: 0,
        };
        self.loop_stack.iter().map(turn).collect()
    }
}

/// One loop that a run is in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopFrame {
    /// How far the run is in the loop's body.
    pub body_index: u32,
    /// Which turn; counts from 0.
    pub iteration: u32,
    /// Which loop.
    pub loop_id: Slug,
}

/// What an artifact said about a loop, until the loop acts on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoopDecision {
    /// What was decided.
    pub decision: Verdict,
    /// What the artifact called the loop; without a name the next loop that asks is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_id: Option<String>,
}

/// Whether a loop goes round again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Verdict {
    Continue,
    Stop,
}

/// A set of step instances, in the order of their keys as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Completed(Vec<StepInstanceKey>);

impl Completed {
    /// Whether the step is in the set.
    #[must_use]
    pub fn contains(&self, step: &StepInstanceKey) -> bool {
        self.0.contains(step)
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[StepInstanceKey] {
        &self.0
    }

    fn to_wire(&self) -> CompletedWire {
        CompletedWire::Set { values: self.0.clone() }
    }

    fn from_wire(wire: CompletedWire) -> Result<Self, Invalid> {
        let CompletedWire::Set { values } = wire;
        let set: Self = values.iter().cloned().collect();
        if set.0 == values { Ok(set) } else { Err(Invalid::Unsorted) }
    }
}

impl FromIterator<StepInstanceKey> for Completed {
    fn from_iter<I: IntoIterator<Item = StepInstanceKey>>(steps: I) -> Self {
        let mut steps: Vec<_> = steps.into_iter().collect();
        steps.sort_by_cached_key(ToString::to_string);
        steps.dedup();
        Self(steps)
    }
}

/// How a state is written.
#[derive(Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(super) enum Wire {
    Init {},
    Running {
        completed: CompletedWire,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        decisions: Vec<LoopDecision>,
        loop_stack: Vec<LoopFrame>,
        pending: PendingWire,
    },
    Complete {
        completed: CompletedWire,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum CompletedWire {
    Set { values: Vec<StepInstanceKey> },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum PendingWire {
    None {},
    Some { step: PendingStep },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PendingStep {
    loop_path: Vec<LoopTurn>,
    step_id: Slug,
}
