//! What can be said to a run, and what it leaves to be done.

use serde_json::Value;

use super::begin::recordable;
use crate::catalog::Class;
use crate::digest::Digest;
use crate::event::engine::{EndStatus, Failure, InterruptDecision, Payload, Usage};
use crate::event::guided::RunStarted;
use crate::event::{By, limits};
use crate::id::{ChangeId, EventId, RunId, SessionId, TaskId, TimerId};
use crate::instance::StepInstanceKey;
use crate::plan::FailureKind;

/// What is said to a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// It is pinned to its plan and begins.
    Start(RunStarted),
    /// Whoever performed it is gone: what was under way is looked at again.
    Recover,
    /// A step was performed.
    Complete {
        /// Which instance of which step.
        instance: StepInstanceKey,
        /// What came of it.
        result: Result<Outcome, Fault>,
        /// How long it took.
        duration_ms: u64,
    },
    /// A worker evaluated something.
    Evaluated {
        /// For which instance.
        instance: StepInstanceKey,
        /// What it was.
        ask: Ask,
        /// Its value.
        result: Result<Value, Fault>,
    },
    /// A timer's time came.
    FireTimer(TimerId),
    /// A person answered.
    Answer {
        /// What was asked.
        task: TaskId,
        /// Who answered.
        by: By,
        /// What.
        answer: Answer,
    },
    /// An agent did a step that was handed to it.
    Acknowledge {
        /// Which.
        instance: StepInstanceKey,
        /// Who did it.
        by: By,
        /// What came of it.
        output: Value,
    },
    /// A child run is there.
    ChildStarted {
        /// The child.
        child: RunId,
        /// The log it lives in.
        session: SessionId,
        /// The step that waits for it.
        instance: StepInstanceKey,
    },
    /// A child run cannot be started.
    ChildRefused {
        /// The step that waits for it.
        instance: StepInstanceKey,
        /// Why.
        fault: Fault,
    },
    /// A child run ended.
    ChildFinished {
        /// The child.
        child: RunId,
        /// How.
        status: EndStatus,
        /// What came out.
        output: Value,
    },
    /// Somebody says what became of a step that a crash cut off.
    Resolve {
        /// Which.
        instance: StepInstanceKey,
        /// Who says it.
        by: By,
        /// What is done about it.
        decision: InterruptDecision,
    },
    /// It begins no more steps until it is resumed.
    Pause {
        /// The pause's own id.
        change: ChangeId,
        /// Who asks.
        by: By,
    },
    /// It goes on.
    Resume {
        /// The resumption's own id.
        change: ChangeId,
        /// Who asks.
        by: By,
        /// What a run is given here that came from elsewhere; nothing for any other.
        input: Option<Value>,
    },
    /// It ends.
    Cancel {
        /// Who asks.
        by: By,
        /// Why.
        reason: String,
    },
    /// What was under way when it was cancelled has stopped.
    Stopped,
}

impl Command {
    /// The same, said by somebody else's word: as it stands on record, for example.
    #[must_use]
    pub fn said_by(mut self, name: By) -> Self {
        if let Self::Acknowledge { by, .. }
        | Self::Answer { by, .. }
        | Self::Resolve { by, .. }
        | Self::Pause { by, .. }
        | Self::Resume { by, .. }
        | Self::Cancel { by, .. } = &mut self
        {
            *by = name;
        }
        self
    }

    /// Whether what it says can be recorded.
    pub(super) fn check(&self) -> Result<(), Rejection> {
        let unfit = |message: String| Rejection::Unfit(vec![message]);
        let value = |what: &str, value: &Value| {
            recordable(what, value).map_err(|fault| unfit(fault.error.message))
        };
        match self {
            Self::Answer { answer, .. } => value("the answer", &answer.values)?,
            Self::Acknowledge { output, .. } => value("the output", output)?,
            Self::Resume { input: Some(input), .. } => value("what the run is given", input)?,
            Self::Cancel { reason, .. } if reason.len() > limits::SUMMARY => {
                let max = limits::SUMMARY;
                return Err(unfit(format!(
                    "the reason has {} bytes; at most {max} may be",
                    reason.len()
                )));
            }
            _ => {}
        }
        let (Self::Acknowledge { by, .. }
        | Self::Answer { by, .. }
        | Self::Resolve { by, .. }
        | Self::Pause { by, .. }
        | Self::Resume { by, .. }
        | Self::Cancel { by, .. }) = self
        else {
            return Ok(());
        };
        match by.name.len() {
            1..=limits::NAME => Ok(()),
            length => Err(unfit(format!(
                "who says it is a name of 1 to {} bytes, not of {length}",
                limits::NAME
            ))),
        }
    }
}

/// What came of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// What later steps can look at.
    pub output: Value,
    /// The label by which edges are picked.
    pub case: Option<String>,
    /// What it used up of a model.
    pub usage: Option<Usage>,
}

/// Why a try at a step failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What went wrong.
    pub error: Failure,
    /// Whether another try may help.
    pub kind: FailureKind,
    /// How long the other side wants to be left alone.
    pub after_ms: Option<u64>,
    /// What came out all the same.
    pub output: Option<Value>,
    /// What it used up of a model all the same.
    pub usage: Option<Box<Usage>>,
}

impl Fault {
    /// A failure that another try does not mend.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Failure { code: code.into(), message: message.into() };
        Self { error, kind: FailureKind::Permanent, after_ms: None, output: None, usage: None }
    }
}

/// What a person answers.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Yes or no.
    pub verdict: Verdict,
    /// The fields of the form, or a remark.
    pub values: Value,
}

/// Yes or no.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Verdict {
    Approved,
    Rejected,
}

impl Verdict {
    /// The case that it leads to.
    #[must_use]
    pub const fn case(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }
}

/// What a worker process is asked to evaluate for a step or loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ask {
    /// Whether it is done at all.
    Condition,
    /// Its settings; of a loop, what it goes over.
    Settings,
    /// Whether a loop makes another turn.
    Again,
}

/// What the world owes a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// A step is to be performed.
    Perform {
        /// Which instance of which step.
        instance: StepInstanceKey,
        /// Which try; counts from 0.
        attempt: u32,
        /// What a repetition carries too.
        key: Digest,
        /// What it needs.
        class: Class,
    },
    /// A worker is to evaluate something; [`super::Run::question`] says what.
    Evaluate {
        /// For which instance.
        instance: StepInstanceKey,
        /// What.
        ask: Ask,
    },
    /// The run is to be told when a time has come.
    Timer {
        /// Which timer.
        timer: TimerId,
        /// When, in milliseconds since 1970.
        due_ms: u64,
    },
    /// A child run is to be started; doing so again changes nothing.
    Child {
        /// The step that waits for it.
        instance: StepInstanceKey,
        /// The child.
        child: RunId,
        /// Its workflow.
        workflow: String,
        /// What it is given.
        input: Value,
    },
    /// Whoever waits for an answer to the webhook gets this one.
    Respond {
        /// Status, headers and body.
        response: Value,
    },
    /// A person is asked.
    Task(TaskId),
    /// The run is cancelled, with its steps under way.
    CallOff,
    /// The run is over.
    End(EndStatus),
}

/// Why a command means nothing to a run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejection {
    /// It is over.
    #[error("the run is over")]
    Ended,
    /// It was begun already, or not yet.
    #[error("the run has {0}")]
    OutOfPlace(&'static str),
    /// The step is not where the command thinks it is.
    #[error("`{0}` is not waiting for that")]
    NotPending(StepInstanceKey),
    /// There is no such question, or it was answered.
    #[error("there is no open question {0}")]
    NoTask(TaskId),
    /// The step is for an agent, which no answer of a person stands in for.
    #[error("`{0}` is for an agent")]
    ForAgent(StepInstanceKey),
    /// Somebody else is asked.
    #[error("this question is for {}", .0.join(", "))]
    NotAsked(Vec<String>),
    /// An answer or output is not as it was asked for.
    #[error("{}", .0.join("; "))]
    Unfit(Vec<String>),
    /// The run came from elsewhere, and people there decided these steps.
    #[error(
        "the run was imported, and what people decided elsewhere counts for nothing here: {}",
        listed(.0)
    )]
    Elsewhere(Vec<StepInstanceKey>),
    /// The run came from elsewhere, and its plan cannot have led to what it says.
    #[error("the run was imported, and its history does not fit its plan: {}", .0.join("; "))]
    Foreign(Vec<String>),
}

/// When a decision is made, and the chance in it.
pub struct Moment<'a> {
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
    /// Random bits, fresh ones each time.
    pub random: &'a mut dyn FnMut() -> u128,
}

impl Moment<'_> {
    pub(super) fn event_id(&mut self) -> EventId {
        EventId::mint(self.now_ms, (self.random)())
    }
}

/// How much a run may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many steps it may begin.
    pub steps_max: u32,
    /// How many events its history may have before it begins no more steps.
    pub events_max: u32,
    /// How many runs may stand above a child.
    pub depth_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps_max: 10_000, events_max: 50_000, depth_max: 16 }
    }
}

/// A value that stands in an event.
pub(super) fn inline(value: Value) -> Payload {
    Payload::inline(value)
}

fn listed(steps: &[StepInstanceKey]) -> String {
    steps.iter().map(|step| format!("`{step}`")).collect::<Vec<_>>().join(", ")
}
