//! The closed union of everything that can have happened.
//!
//! An event is what a log line holds: an envelope and a payload. The payloads of guided
//! runs are in [`guided`], those of engine-performed runs in [`engine`]; `decision 0001`
//! lists them all. An event on disk is never renamed and never changes its meaning.

mod by;
mod check;
mod dedupe;
pub mod engine;
pub mod guided;
mod newer;
mod payload;
mod wire;

pub use by::{ActorKind, AuditLine, By, Door, Via};
pub use check::{Invalid, limits};
pub use dedupe::DedupeKey;
pub use newer::Newer;
pub use wire::{DecodeError, Header, VERSION};

use serde::Serialize;
use serde_json::Value;

use crate::format;
use crate::id::{EventId, EventIndex, NodeId, RunId, SessionId};

/// What an event is about: the session as a whole, a run, or one node of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// The session.
    Session,
    /// A run.
    Run(RunId),
    /// A node of a run.
    Node(RunId, NodeId),
}

impl Scope {
    /// The run, where there is one.
    #[must_use]
    pub const fn run(self) -> Option<RunId> {
        match self {
            Self::Session => None,
            Self::Run(run) | Self::Node(run, _) => Some(run),
        }
    }

    /// The node, where there is one.
    #[must_use]
    pub const fn node(self) -> Option<NodeId> {
        match self {
            Self::Node(_, node) => Some(node),
            Self::Session | Self::Run(_) => None,
        }
    }
}

/// Which scope a kind of event must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScopeRule {
    /// About the session: no run, no node.
    Session,
    /// About a run.
    Run,
    /// About a node of a run.
    Node,
    /// About the session, or about a node where it was seen.
    SessionOrNode,
    /// About anything: what it is is not known.
    Any,
}

impl ScopeRule {
    /// Whether a scope is as this rule asks.
    #[must_use]
    pub const fn allows(self, scope: Scope) -> bool {
        matches!(
            (self, scope),
            (Self::Session | Self::SessionOrNode, Scope::Session)
                | (Self::Run, Scope::Run(_))
                | (Self::Node | Self::SessionOrNode, Scope::Node(..))
                | (Self::Any, _)
        )
    }
}

/// Something that is to be recorded. The store gives it its index.
#[derive(Clone, PartialEq, Debug)]
pub struct NewEvent {
    /// The event's own id, minted by the caller.
    pub id: EventId,
    /// What it is about.
    pub scope: Scope,
    /// What happened.
    pub data: EventData,
}

/// Something that happened, at its place in a session's log.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// The event's own id.
    pub id: EventId,
    /// Its place in the log, dense from 0. The only order there is.
    pub index: EventIndex,
    /// The log it stands in.
    pub session: SessionId,
    /// What it is about.
    pub scope: Scope,
    /// What happened.
    pub data: EventData,
    /// What a later program wrote and this one cannot write again; none where all is known.
    pub newer: Option<Box<Newer>>,
}

impl NewEvent {
    /// The event at its place in a log.
    #[must_use]
    pub fn at(self, session: SessionId, index: EventIndex) -> Event {
        let Self { id, scope, data } = self;
        Event { id, index, session, scope, data, newer: None }
    }

    /// The key by which a retry of the same fact is known.
    #[must_use]
    pub fn dedupe_key(&self, session: SessionId) -> DedupeKey {
        DedupeKey::of(session, self.scope, &self.data)
    }
}

impl Event {
    /// The key by which a retry of the same fact is known.
    #[must_use]
    pub fn dedupe_key(&self) -> DedupeKey {
        match &self.newer {
            Some(newer) => newer.dedupe_key().clone(),
            None => DedupeKey::of(self.session, self.scope, &self.data),
        }
    }

    /// The format that a program must know to write its like.
    #[must_use]
    pub fn needs(&self) -> u32 {
        self.newer.as_ref().map_or(1, |newer| newer.needs())
    }
}

macro_rules! kinds {
    ($($variant:ident = $name:literal, $payload:path, $rule:ident;)*) => {
        /// The name of what happened, as the log spells it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kind {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// One that a later program wrote and that this one does not know.
            Unknown,
        }

        impl Kind {
            /// Every kind that this program knows.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in the log.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Unknown => "unknown" }
            }

            /// Whether only runs that the engine performs, and what starts them, have such events.
            #[must_use]
            pub fn is_performed(self) -> bool {
                let place = |kind| Self::ALL.iter().position(|other| *other == kind);
                place(self) >= place(Self::SessionOwned)
            }

            /// The kind with this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// Which scope such an event must have.
            #[must_use]
            pub const fn scope_rule(self) -> ScopeRule {
                match self { $(Self::$variant => ScopeRule::$rule,)* Self::Unknown => ScopeRule::Any }
            }
        }

        /// What happened, with its particulars.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(untagged)]
        pub enum EventData {
            $(#[doc = concat!("`", $name, "`")] $variant($payload),)*
            /// Something of this kind, which this program does not know or cannot read. It is
            /// carried and passed over, and can never be recorded.
            Unknown(String),
        }

        impl EventData {
            /// The name of what happened.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$variant(_) => Kind::$variant,)* Self::Unknown(_) => Kind::Unknown }
            }

            /// Reads the payload of an event of this kind.
            pub(crate) fn read(kind: Kind, json: &str) -> serde_json::Result<Self> {
                match kind {
                    $(Kind::$variant => serde_json::from_str::<$payload>(json).map(Self::$variant),)*
                    Kind::Unknown => Err(serde::de::Error::custom("its kind is not known")),
                }
            }

            /// Reads what is known of the payload of an event of this kind.
            pub(crate) fn read_known(kind: Kind, json: Value) -> serde_json::Result<Self> {
                match kind {
                    $(Kind::$variant => format::known::<$payload>(json).map(Self::$variant),)*
                    Kind::Unknown => Err(serde::de::Error::custom("its kind is not known")),
                }
            }
        }

        $(impl From<$payload> for EventData {
            fn from(payload: $payload) -> Self {
                Self::$variant(payload)
            }
        })*
    };
}

kinds! {
    SessionCreated = "session_created", guided::SessionCreated, Session;
    ObservationRecorded = "observation_recorded", guided::ObservationRecorded, SessionOrNode;
    RunStarted = "run_started", guided::RunStarted, Run;
    NodeCreated = "node_created", guided::NodeCreated, Node;
    EdgeCreated = "edge_created", guided::EdgeCreated, Run;
    AdvanceRecorded = "advance_recorded", guided::AdvanceRecorded, Node;
    NodeOutputAppended = "node_output_appended", guided::NodeOutputAppended, Node;
    PreferencesChanged = "preferences_changed", guided::PreferencesChanged, Node;
    CapabilityObserved = "capability_observed", guided::CapabilityObserved, Node;
    GapRecorded = "gap_recorded", guided::GapRecorded, Node;
    DivergenceRecorded = "divergence_recorded", guided::DivergenceRecorded, Node;
    DecisionTraceAppended = "decision_trace_appended", guided::DecisionTraceAppended, Node;
    ContextSet = "context_set", guided::ContextSet, Run;

    SessionOwned = "session_owned", engine::SessionOwned, Session;
    SessionListed = "session_listed", engine::SessionListed, Session;
    TriggerReceived = "trigger_received", engine::TriggerReceived, Session;
    RunQueued = "run_queued", engine::RunQueued, Run;
    StepStarted = "step_started", engine::StepStarted, Run;
    StepCompleted = "step_completed", engine::StepCompleted, Run;
    StepFailed = "step_failed", engine::StepFailed, Run;
    StepSkipped = "step_skipped", engine::StepSkipped, Run;
    StepWaiting = "step_waiting", engine::StepWaiting, Run;
    StepInterrupted = "step_interrupted", engine::StepInterrupted, Run;
    StepResolved = "step_resolved", engine::StepResolved, Run;
    LoopEntered = "loop_entered", engine::LoopEntered, Run;
    LoopExited = "loop_exited", engine::LoopExited, Run;
    TimerSet = "timer_set", engine::TimerSet, Run;
    TimerFired = "timer_fired", engine::TimerFired, Run;
    TimerCancelled = "timer_cancelled", engine::TimerCancelled, Run;
    TaskOpened = "task_opened", engine::TaskOpened, Run;
    TaskAnswered = "task_answered", engine::TaskAnswered, Run;
    ChildStarted = "child_started", engine::ChildStarted, Run;
    ChildFinished = "child_finished", engine::ChildFinished, Run;
    SnapshotTaken = "snapshot_taken", engine::SnapshotTaken, Run;
    RunPaused = "run_paused", engine::RunPaused, Run;
    RunResumed = "run_resumed", engine::RunResumed, Run;
    RunCancelRequested = "run_cancel_requested", engine::RunCancelRequested, Run;
    RunCompleted = "run_completed", engine::RunCompleted, Run;
    RunFailed = "run_failed", engine::RunFailed, Run;
    RunCancelled = "run_cancelled", engine::RunCancelled, Run;
    RunRetired = "run_retired", engine::RunRetired, Run;
}

#[cfg(test)]
pub(crate) mod tests;
