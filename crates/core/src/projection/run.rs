//! The state of an engine-performed run.

mod fold;
mod part;

pub use part::Held;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::event::Event;
use crate::event::engine::{
    EndStatus, Failure, InterruptDecision, Payload, RunQueued, TimerPurpose, WaitingFor,
};
use crate::event::guided::RunStarted;
use crate::id::{ChangeId, NodeId, RunId, SessionId, TaskId, TimerId};
use crate::instance::{LoopTurn, StepInstanceKey};
use crate::text::Slug;

/// Where an engine-performed run stands.
///
/// It is stored in snapshots, so it keeps what later decisions need and nothing else:
/// when a turn of a loop is over its steps leave, and a finished loop stands for them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunState {
    /// Whether somebody asked for its end.
    pub cancel_requested: bool,
    /// Child runs that have not ended.
    pub children: BTreeMap<RunId, Child>,
    /// What was begun elsewhere, while a run that came from there rests: every step, and every
    /// loop.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub elsewhere: BTreeSet<StepInstanceKey>,
    /// How it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// The step outside of all loops that was the last to be over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<StepInstanceKey>,
    /// How many events it has.
    #[serde(default)]
    pub events: u32,
    /// Whether it came from elsewhere, and nobody has resumed it since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// The last completed step's node, which the next step starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_node_id: Option<NodeId>,
    /// Loops that have not made their last turn, by their own key. When the run is over they
    /// are cancelled steps too.
    pub loops: BTreeMap<StepInstanceKey, Loop>,
    /// Whether it rests.
    pub paused: bool,
    /// How it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<RunQueued>,
    /// How many instances of steps were reached.
    pub reached: u32,
    /// The pause with which it came from elsewhere, if it did. What is named after the run and a
    /// step is named after that as well, so that it has no name that was recorded elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebegun: Option<ChangeId>,
    /// Whether its time to be kept is over.
    pub retired: bool,
    /// Whether a cycle came back to a step. From then on the order of steps is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revisits: bool,
    /// Which run this is.
    pub run_id: RunId,
    /// What it is pinned to, once it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<RunStarted>,
    /// Steps that were reached.
    pub steps: BTreeMap<StepInstanceKey, StepState>,
    /// Questions that wait for a person.
    pub tasks: BTreeMap<TaskId, Task>,
    /// Timers that have neither fired nor been cancelled.
    pub timers: BTreeMap<TimerId, Timer>,
}

/// Where a run stands, in one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RunStatus {
    Queued,
    Running,
    Waiting,
    Paused,
    Succeeded,
    Failed,
    Cancelled,
}

impl RunStatus {
    /// Every status there is.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The status of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the run is over.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// The name that people and clients see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Where a step stands, in one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum StepStatus {
    Pending,
    Running,
    Waiting,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
    Unknown,
}

impl StepStatus {
    /// Whether nothing more will happen to the step.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Skipped | Self::Cancelled)
    }

    /// Where a step stands that was cut off, once it is decided what is done about it.
    #[must_use]
    pub const fn after(decision: InterruptDecision) -> Self {
        match decision {
            InterruptDecision::Retry => Self::Pending,
            InterruptDecision::Fail => Self::Failed,
            InterruptDecision::Skip => Self::Skipped,
        }
    }
}

/// One instance of a step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepState {
    /// How many tries were begun.
    pub attempts: u32,
    /// The outcome's label, which picks the edges that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// How many of the tries were cut off by a crash and made again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_off: u32,
    /// What went wrong at the last try, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// What the step was given; kept until it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// How many turns it made, when it is a loop that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// The node that its completion made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// Its place among the instances that were reached, counted from 1; 0 for one that was
    /// reached before a cycle came back to any step.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub order: u32,
    /// What came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Payload>,
    /// The digest of what its question showed, when it asked one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Digest>,
    /// Where it stands.
    pub status: StepStatus,
    /// What it waits for, while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A loop under way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Loop {
    /// What it goes over, when it goes over a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Payload>,
    /// The turn it is in; turns follow one another.
    pub iteration: u32,
    /// The output of the step of this turn that was the last to be over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Payload>,
    /// What came of the turns that are over.
    pub results: Vec<Payload>,
}

/// A timer that is set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timer {
    /// When, in milliseconds since 1970.
    pub due_ms: u64,
    /// The step it belongs to; none when it is the run's own limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<StepInstanceKey>,
    /// What for.
    pub purpose: TimerPurpose,
}

/// A question that waits for a person.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Task {
    /// Which step asks.
    pub instance: StepInstanceKey,
    /// The question.
    pub request: Payload,
}

/// A child run under way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Child {
    /// The step that waits for it.
    pub instance: StepInstanceKey,
    /// The log it lives in.
    pub session_id: SessionId,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// Well.
    Succeeded {
        /// What came out.
        result: Payload,
    },
    /// With an error.
    Failed {
        /// What went wrong.
        error: Failure,
        /// The step at which it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance: Option<StepInstanceKey>,
    },
    /// By request.
    Cancelled {},
}

impl End {
    /// The end without its particulars.
    #[must_use]
    pub const fn status(&self) -> EndStatus {
        match self {
            Self::Succeeded { .. } => EndStatus::Succeeded,
            Self::Failed { .. } => EndStatus::Failed,
            Self::Cancelled {} => EndStatus::Cancelled,
        }
    }
}

/// Takes one event in. There is no way to refuse it: recorded is recorded.
pub fn apply(run: &mut RunState, event: &Event) {
    run.apply(event);
}

impl RunState {
    /// A run of which nothing is known yet.
    #[must_use]
    pub const fn new(run_id: RunId) -> Self {
        Self {
            cancel_requested: false,
            children: BTreeMap::new(),
            elsewhere: BTreeSet::new(),
            end: None,
            ended_by: None,
            events: 0,
            imported: false,
            last_node_id: None,
            loops: BTreeMap::new(),
            paused: false,
            queued: None,
            reached: 0,
            rebegun: None,
            retired: false,
            revisits: false,
            run_id,
            started: None,
            steps: BTreeMap::new(),
            tasks: BTreeMap::new(),
            timers: BTreeMap::new(),
        }
    }

    /// Every step and loop that was begun.
    fn begun(&self) -> BTreeSet<StepInstanceKey> {
        self.steps.keys().chain(self.loops.keys()).cloned().collect()
    }

    /// The latest visit of a step in these turns that was reached.
    #[must_use]
    pub fn last_visit(&self, path: &[LoopTurn], step: &Slug) -> Option<(u32, &StepState)> {
        self.visits(path, step).next()
    }

    /// What is known of a step to those who read it: its last visit that is over, or else the
    /// one under way.
    #[must_use]
    pub fn last_over(&self, path: &[LoopTurn], step: &Slug) -> Option<&StepState> {
        let mut visits = self.visits(path, step);
        let (_, latest) = visits.next()?;
        match latest.status.is_final() {
            true => Some(latest),
            false => visits.next().map_or(Some(latest), |(_, earlier)| Some(earlier)),
        }
    }

    /// The visits of a step that are kept, latest first: the one under way, and the last that is
    /// over.
    fn visits(&self, path: &[LoopTurn], step: &Slug) -> impl Iterator<Item = (u32, &StepState)> {
        let key = |visit| StepInstanceKey { loop_path: path.to_vec(), step: step.clone(), visit };
        let visits = self.steps.range(key(0)..=key(u32::MAX)).rev();
        visits.map(|(key, state)| (key.visit, state))
    }

    /// Whether it came from elsewhere, and nobody has let it go on since: nothing of it moves.
    #[must_use]
    pub const fn is_untouched(&self) -> bool {
        self.paused && self.imported
    }

    /// Takes everything so far as recorded elsewhere: what is over is history to be read, and of
    /// what is not, nothing is left but that it was tried. Its settings, questions, timers and
    /// child runs are made again here, from the plan.
    pub fn from_elsewhere(&mut self) {
        self.elsewhere = self.begun();
        (self.children, self.tasks, self.timers) = Default::default();
        for step in self.steps.values_mut().filter(|step| !step.status.is_final()) {
            step.leave_elsewhere();
        }
    }

    /// Whether something was over elsewhere, in whichever way, or has turns that are.
    pub(crate) fn was_over_elsewhere(&self, key: &StepInstanceKey) -> bool {
        let is_over = |step: &StepState| step.status.is_final();
        self.elsewhere.contains(key)
            && match (self.loops.get(key), self.steps.get(key)) {
                (Some(looped), _) => looped.iteration > 0,
                (None, step) => step.is_none_or(is_over),
            }
    }

    /// How many runs led to this one.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.queued.as_ref().map_or(0, |queued| queued.depth)
    }

    /// The run as these events leave it; those of other runs change nothing.
    #[must_use]
    pub fn fold<'e>(run_id: RunId, events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut run = Self::new(run_id);
        events.into_iter().for_each(|event| run.apply(event));
        run
    }

    /// Where the run stands, in one word.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        match &self.end {
            Some(End::Succeeded { .. }) => return RunStatus::Succeeded,
            Some(End::Failed { .. }) => return RunStatus::Failed,
            Some(End::Cancelled {}) => return RunStatus::Cancelled,
            None if self.paused => return RunStatus::Paused,
            None if self.started.is_none() => return RunStatus::Queued,
            None => {}
        }
        let any = |wanted: &[StepStatus]| self.steps.values().any(|s| wanted.contains(&s.status));
        if !any(&[StepStatus::Pending, StepStatus::Running])
            && any(&[StepStatus::Waiting, StepStatus::Unknown])
        {
            RunStatus::Waiting
        } else {
            RunStatus::Running
        }
    }
}

#[cfg(test)]
mod tests;
