//! Dedupe keys: the name of a fact, equal whenever somebody tries to record it again.

use std::fmt::{self, Write as _};

use super::{EventData, Scope};
use crate::digest::Digest;
use crate::id::SessionId;

/// The name of a fact within its session.
///
/// Made of the kind of event and of stable ids, never of times or of the event's own id:
/// at most 256 of `a-z`, `0-9`, `_`, `:`, `>` and `-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DedupeKey(String);

impl DedupeKey {
    /// The longest key there may be, in bytes.
    pub const LEN_MAX: usize = 256;

    /// The key of a fact.
    #[must_use]
    pub fn of(session: SessionId, scope: Scope, data: &EventData) -> Self {
        let mut key = Key(String::with_capacity(128));
        key.0.push_str(data.kind().name());
        if !key.step(scope, data) {
            key.add(session);
            name(&mut key, scope, data);
        }
        Self(key.0)
    }

    /// The key that a line has, if it can be one.
    pub(super) fn read(text: &str) -> Option<Self> {
        Self::is_well_formed(text).then(|| Self(text.to_owned()))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a text could be a key.
    #[must_use]
    pub fn is_well_formed(text: &str) -> bool {
        let safe = |b: u8| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b':' | b'>' | b'-')
        };
        (1..=Self::LEN_MAX).contains(&text.len()) && text.bytes().all(safe)
    }
}

impl fmt::Display for DedupeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DedupeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A key under construction.
struct Key(String);

impl Key {
    fn add(&mut self, part: impl fmt::Display) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, ":{part}");
    }

    fn run(&mut self, scope: Scope) {
        if let Some(run) = scope.run() {
            self.add(run);
        }
    }

    /// Free text is never embedded, only its digest.
    fn digest(&mut self, text: &str) {
        self.add(Digest::of(text.as_bytes()).hex());
    }

    /// What the engine does with steps is most of what a log of automations holds, so the keys
    /// of that are short: run and instance together, as a digest.
    fn step(&mut self, scope: Scope, data: &EventData) -> bool {
        let (instance, attempt) = match data {
            EventData::StepStarted(step) => (&step.instance, Some(step.attempt)),
            EventData::StepFailed(step) => (&step.instance, Some(step.attempt)),
            EventData::StepWaiting(step) => (&step.instance, Some(step.attempt)),
            EventData::StepInterrupted(step) => (&step.instance, Some(step.attempt)),
            EventData::StepResolved(step) => (&step.instance, Some(step.attempt)),
            EventData::StepCompleted(step) => (&step.instance, None),
            EventData::StepSkipped(step) => (&step.instance, None),
            EventData::LoopEntered(step) => (&step.instance, None),
            EventData::LoopExited(step) => (&step.instance, None),
            _ => return false,
        };
        let Some(run) = scope.run() else { return false };
        self.add(format_args!("{:032x}", instance.within(run).leading_bits()));
        if let Some(attempt) = attempt {
            self.add(attempt);
        }
        true
    }
}

/// What makes each fact one of a kind within its session.
fn name(key: &mut Key, scope: Scope, data: &EventData) {
    match data {
        EventData::SessionCreated(_) => {}
        EventData::ObservationRecorded(seen) => {
            key.add(seen.key.name());
            key.digest(seen.value.as_str());
            if let Some(node) = scope.node() {
                key.add(node);
            }
        }
        EventData::RunStarted(_)
        | EventData::RunQueued(_)
        | EventData::RunCancelRequested(_)
        | EventData::RunCompleted(_)
        | EventData::RunFailed(_)
        | EventData::RunCancelled(_)
        | EventData::RunRetired(_) => key.run(scope),
        EventData::NodeCreated(_) => {
            key.run(scope);
            if let Some(node) = scope.node() {
                key.add(node);
            }
        }
        EventData::EdgeCreated(edge) => {
            key.run(scope);
            key.add(format_args!("{}->{}", edge.from_node_id, edge.to_node_id));
            key.add(edge.edge_kind.name());
        }
        EventData::AdvanceRecorded(advance) => {
            if let Some(node) = scope.node() {
                key.add(node);
            }
            key.add(advance.attempt_id);
        }
        EventData::NodeOutputAppended(output) => key.add(output.output_id),
        EventData::PreferencesChanged(change) => key.add(change.change_id),
        EventData::CapabilityObserved(seen) => key.add(seen.cap_obs_id),
        EventData::GapRecorded(gap) => key.add(gap.gap_id),
        EventData::DivergenceRecorded(divergence) => key.add(divergence.divergence_id),
        EventData::DecisionTraceAppended(trace) => key.add(trace.trace_id),
        EventData::ContextSet(context) => key.add(context.context_id),
        // Such an event has its key with it, and is never recorded.
        EventData::Unknown(kind) => key.digest(kind),
        EventData::SessionOwned(owned) => key.add(owned.epoch),
        EventData::SessionListed(listed) => {
            key.add(listed.listed_id);
            key.add(listed.epoch);
        }
        EventData::TriggerReceived(trigger) => {
            key.digest(trigger.trigger_id.as_str());
            key.digest(&trigger.key);
        }
        // Named by run and instance alone.
        EventData::StepStarted(_)
        | EventData::StepFailed(_)
        | EventData::StepWaiting(_)
        | EventData::StepInterrupted(_)
        | EventData::StepResolved(_)
        | EventData::StepCompleted(_)
        | EventData::StepSkipped(_)
        | EventData::LoopEntered(_)
        | EventData::LoopExited(_) => {}
        EventData::TimerSet(timer) => key.add(timer.timer_id),
        EventData::TimerFired(timer) => key.add(timer.timer_id),
        EventData::TimerCancelled(timer) => key.add(timer.timer_id),
        EventData::TaskOpened(task) => key.add(task.task_id),
        EventData::TaskAnswered(task) => key.add(task.task_id),
        EventData::ChildStarted(child) => key.add(child.child_run_id),
        EventData::ChildFinished(child) => key.add(child.child_run_id),
        EventData::SnapshotTaken(snapshot) => {
            key.run(scope);
            key.add(snapshot.through);
        }
        EventData::RunPaused(change) => key.add(change.change_id),
        EventData::RunResumed(change) => key.add(change.change_id),
    }
}
