//! What must hold of each event by itself: scope, budgets, closed shapes.

use super::engine::{EarlierValue, Failure, StepInput, Usage};
use super::guided::{
    AdvanceOutcome, ContextSet, DecisionTraceAppended, EdgeCauseKind, EdgeKind, ObservedValue,
    OutputChannel, OutputPayload, PreferenceChange, PreferencesChanged, ProbeResult, Provenance,
};
use super::{Event, EventData, Kind, NewEvent, Scope, Via};
use crate::canonical;

/// Budgets, all in bytes of UTF-8 unless they are counts.
pub mod limits {
    /// A whole event line.
    pub const EVENT: usize = 4 << 20;
    /// `notesMarkdown` of an output; a longer text is cut with the marker.
    pub const NOTES: usize = 4096;
    /// A blocker's message.
    pub const BLOCKER_MESSAGE: usize = 512;
    /// A blocker's suggested fix.
    pub const BLOCKER_FIX: usize = 1024;
    /// Blockers in one report.
    pub const BLOCKERS: usize = 10;
    /// The summary of a gap or a divergence.
    pub const SUMMARY: usize = 1024;
    /// The summary of one decision.
    pub const TRACE_SUMMARY: usize = 512;
    /// Decisions in one trace.
    pub const TRACE_ENTRIES: usize = 25;
    /// References of one decision.
    pub const TRACE_REFS: usize = 10;
    /// A whole trace.
    pub const TRACE: usize = 8192;
    /// A short observed value.
    pub const SHORT_STRING: usize = 80;
    /// An observed path.
    pub const PATH: usize = 512;
    /// A run's context, as canonical JSON.
    pub const CONTEXT: usize = 256 << 10;
    /// All of a run's context at one node, as canonical JSON.
    pub const CONTEXT_TOTAL: usize = 1 << 20;
    /// A failure's message.
    pub const FAILURE_MESSAGE: usize = 4096;
    /// Free text that names somebody or something: ids of workflows, actors, trigger keys.
    pub const NAME: usize = 512;
    /// What a run is for.
    pub const GOAL: usize = 512;
    /// Longest path of a workflow's file.
    pub const SOURCE_REF: usize = 4_096;
}

/// Which rule an event breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The scope is not the one its kind asks for.
    #[error("{kind} must be about {wanted:?}, and is about {found:?}", kind = .kind.name())]
    Scope {
        /// The event's kind.
        kind: Kind,
        /// What its kind asks for.
        wanted: super::ScopeRule,
        /// What it has.
        found: Scope,
    },
    /// A text or list is over its budget.
    #[error("{field} has {found}, and at most {max} are allowed; {hint}")]
    OverBudget {
        /// Which text or list.
        field: &'static str,
        /// How much there is.
        found: usize,
        /// How much there may be.
        max: usize,
        /// What to do about it.
        hint: &'static str,
    },
    /// Something that must not be empty is.
    #[error("{0} must not be empty")]
    Empty(&'static str),
    /// Two parts of the event contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// It has no canonical form.
    #[error(transparent)]
    NotCanonical(#[from] canonical::Error),
}

impl NewEvent {
    /// Whether the event keeps every rule that it can keep by itself.
    pub fn check(&self) -> Result<(), Invalid> {
        check(self.scope, &self.data)
    }
}

impl Event {
    /// Whether the event keeps every rule that it can keep by itself.
    pub fn check(&self) -> Result<(), Invalid> {
        check(self.scope, &self.data)
    }
}

fn check(scope: Scope, data: &EventData) -> Result<(), Invalid> {
    let kind = data.kind();
    let wanted = kind.scope_rule();
    if !wanted.allows(scope) {
        return Err(Invalid::Scope { kind, wanted, found: scope });
    }
    payload(data)
}

const SHORTEN: &str = "shorten it";

fn within(field: &'static str, found: usize, max: usize) -> Result<(), Invalid> {
    if found <= max {
        Ok(())
    } else {
        Err(Invalid::OverBudget { field, found, max, hint: SHORTEN })
    }
}

fn filled(field: &'static str, text: &str, max: usize) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::Empty(field));
    }
    within(field, text.len(), max)
}

fn workflow(id: &str, source_ref: Option<&str>) -> Result<(), Invalid> {
    filled("workflowId", id, limits::NAME)?;
    within("workflowSourceRef", source_ref.map_or(0, str::len), limits::SOURCE_REF)
}

fn require(holds: bool, otherwise: &'static str) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(Invalid::Contradiction(otherwise)) }
}

fn payload(data: &EventData) -> Result<(), Invalid> {
    match data {
        EventData::ObservationRecorded(seen) => observation(&seen.value),
        EventData::RunStarted(run) => {
            filled("workflowId", &run.workflow_id, limits::NAME)?;
            within("workflowSourceRef", run.workflow_source_ref.len(), limits::SOURCE_REF)?;
            within("goal", run.goal.as_deref().map_or(0, str::len), limits::GOAL)?;
            workspace(run.workspace.as_deref())
        }
        EventData::EdgeCreated(edge) => require(
            (edge.edge_kind == EdgeKind::Checkpoint)
                == (edge.cause.kind == EdgeCauseKind::CheckpointCreated),
            "an edge is a checkpoint edge exactly when a checkpoint caused it",
        ),
        EventData::AdvanceRecorded(advance) => match &advance.outcome {
            AdvanceOutcome::Blocked { blockers } => blockers.check(),
            AdvanceOutcome::Advanced { .. } => Ok(()),
        },
        EventData::NodeOutputAppended(output) => match (&output.payload, output.output_channel) {
            (OutputPayload::Notes { notes_markdown }, OutputChannel::Recap) => {
                within("notesMarkdown", notes_markdown.len(), limits::NOTES)
            }
            (OutputPayload::ArtifactRef { content_type, .. }, OutputChannel::Artifact) => {
                filled("contentType", content_type, limits::NAME)
            }
            _ => require(false, "notes go to the recap channel, artifacts to the artifact channel"),
        },
        EventData::PreferencesChanged(change) => preferences(change),
        EventData::CapabilityObserved(seen) => {
            let earned = seen.provenance.grade() == seen.provenance.deserved_grade();
            require(earned, "the enforcement grade does not follow from the provenance")?;
            match &seen.provenance {
                Provenance::AttemptedUse { detail, .. } => require(
                    detail.failure_code.is_some() == (detail.result == ProbeResult::Failure),
                    "a failure code is there exactly when the use failed",
                ),
                Provenance::ProbeStep { .. } | Provenance::ManualClaim { .. } => Ok(()),
            }
        }
        EventData::GapRecorded(gap) => filled("summary", &gap.summary, limits::SUMMARY),
        EventData::DivergenceRecorded(divergence) => {
            filled("summary", &divergence.summary, limits::SUMMARY)
        }
        EventData::DecisionTraceAppended(trace) => decision_trace(trace),
        EventData::ContextSet(context) => context_set(context),
        EventData::TriggerReceived(trigger) => {
            filled("key", &trigger.key, limits::NAME)?;
            workflow(&trigger.workflow_id, trigger.workflow_source_ref.as_deref())?;
            said_by(trigger.by.as_deref(), trigger.via.as_ref())
        }
        EventData::RunQueued(run) => {
            workflow(&run.workflow_id, run.workflow_source_ref.as_deref())?;
            workspace(run.workspace.as_deref())?;
            said_by(run.by.as_deref(), run.via.as_ref())
        }
        EventData::Unknown(_) => {
            require(false, "an event whose kind this program does not know cannot be recorded")
        }
        EventData::SessionOwned(owned) => optional("holder", owned.holder.as_deref()),
        EventData::SessionListed(listed) => {
            workflow(&listed.workflow_id, listed.workflow_source_ref.as_deref())
        }
        EventData::StepFailed(step) => {
            used(step.usage.as_ref())?;
            failure(&step.error)
        }
        EventData::StepStarted(step) => match &step.input {
            StepInput::Earlier { earlier: EarlierValue::Attempt(attempt) } => require(
                *attempt < step.attempt,
                "a try can only be given again what an earlier try was given",
            ),
            StepInput::Earlier { .. } | StepInput::Given(_) => Ok(()),
        },
        EventData::StepResolved(step) => said_by(Some(&step.by), step.via.as_ref()),
        EventData::TaskAnswered(task) => said_by(Some(&task.by), task.via.as_ref()),
        EventData::RunPaused(change) => said_by(Some(&change.by), change.via.as_ref()),
        EventData::RunResumed(change) => said_by(Some(&change.by), change.via.as_ref()),
        EventData::RunCancelRequested(request) => {
            said_by(Some(&request.by), request.via.as_ref())?;
            within("reason", request.reason.len(), limits::SUMMARY)
        }
        EventData::RunFailed(run) => failure(&run.error),
        EventData::StepCompleted(step) => {
            used(step.usage.as_ref())?;
            within("case", step.case.as_ref().map_or(0, String::len), limits::NAME)
        }
        EventData::SessionCreated(_)
        | EventData::NodeCreated(_)
        | EventData::StepSkipped(_)
        | EventData::StepWaiting(_)
        | EventData::StepInterrupted(_)
        | EventData::LoopEntered(_)
        | EventData::LoopExited(_)
        | EventData::TimerSet(_)
        | EventData::TimerFired(_)
        | EventData::TimerCancelled(_)
        | EventData::TaskOpened(_)
        | EventData::ChildStarted(_)
        | EventData::ChildFinished(_)
        | EventData::SnapshotTaken(_)
        | EventData::RunCompleted(_)
        | EventData::RunCancelled(_)
        | EventData::RunRetired(_) => Ok(()),
    }
}

fn optional(field: &'static str, text: Option<&str>) -> Result<(), Invalid> {
    text.map_or(Ok(()), |text| filled(field, text, limits::NAME))
}

fn workspace(path: Option<&str>) -> Result<(), Invalid> {
    path.map_or(Ok(()), |path| filled("workspace", path, limits::PATH))
}

fn said_by(name: Option<&str>, via: Option<&Via>) -> Result<(), Invalid> {
    optional("by", name)?;
    optional("tokenId", via.and_then(|via| via.token_id.as_deref()))
}

fn used(usage: Option<&Usage>) -> Result<(), Invalid> {
    optional("model", usage.and_then(|usage| usage.model.as_deref()))?;
    optional("provider", usage.and_then(|usage| usage.provider.as_deref()))
}

fn observation(value: &ObservedValue) -> Result<(), Invalid> {
    let hex = |text: &str, len: usize| {
        text.len() == len && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    match value {
        ObservedValue::ShortString(text) => filled("value", text, limits::SHORT_STRING),
        ObservedValue::Path(text) => filled("value", text, limits::PATH),
        ObservedValue::GitSha1(text) => {
            require(hex(text, 40), "a git_sha1 has 40 lower-case hex digits")
        }
        ObservedValue::Sha256(text) => {
            let digits = text.strip_prefix("sha256:").unwrap_or(text);
            require(hex(digits, 64), "a sha256 has 64 lower-case hex digits")
        }
    }
}

fn preferences(change: &PreferencesChanged) -> Result<(), Invalid> {
    if change.delta.is_empty() {
        return Err(Invalid::Empty("delta"));
    }
    let autonomy = change.delta.iter().filter(|c| matches!(c, PreferenceChange::Autonomy(_)));
    let autonomy = autonomy.count();
    require(
        autonomy <= 1 && change.delta.len() - autonomy <= 1,
        "a delta names each preference at most once",
    )?;
    let kept = change.delta.iter().all(|changed| match changed {
        PreferenceChange::Autonomy(value) => *value == change.effective.autonomy,
        PreferenceChange::RiskPolicy(value) => *value == change.effective.risk_policy,
    });
    require(kept, "the effective preferences do not hold what the delta says")
}

fn decision_trace(trace: &DecisionTraceAppended) -> Result<(), Invalid> {
    if trace.entries.is_empty() {
        return Err(Invalid::Empty("entries"));
    }
    within("entries", trace.entries.len(), limits::TRACE_ENTRIES)?;
    for entry in &trace.entries {
        filled("summary", &entry.summary, limits::TRACE_SUMMARY)?;
        within("refs", entry.refs.len(), limits::TRACE_REFS)?;
    }
    within("decision trace", canonical::to_vec(trace)?.len(), limits::TRACE)
}

fn context_set(set: &ContextSet) -> Result<(), Invalid> {
    let Some(members) = set.context.0.as_object() else {
        return Err(Invalid::Contradiction("a context is an object"));
    };
    let reserved = ["__proto__", "constructor", "prototype"];
    require(
        !reserved.iter().any(|key| members.contains_key(*key)),
        "a context may not use the keys __proto__, constructor and prototype",
    )?;
    let found = canonical::to_vec(&set.context)?.len();
    if found > limits::CONTEXT {
        let hint = "measured as canonical JSON (RFC 8785) in UTF-8: remove blobs, pass references";
        return Err(Invalid::OverBudget { field: "context", found, max: limits::CONTEXT, hint });
    }
    Ok(())
}

fn failure(error: &Failure) -> Result<(), Invalid> {
    filled("code", &error.code, limits::NAME)?;
    within("message", error.message.len(), limits::FAILURE_MESSAGE)
}
