//! What each event says, in one line.

use crate::event::engine::{
    AfterFailure, EndStatus, InterruptDecision, SkipReason, TimerPurpose, WaitingFor,
};
use crate::event::guided::{
    AdvanceOutcome, Capability, CapabilityStatus, EdgeKind, NodeKind, OutputPayload,
    PreferenceChange, Resolution,
};
use crate::event::{EventData, Kind};

/// The longest piece of free text in a line, in characters.
const QUOTE_MAX: usize = 80;

/// What happened, in one line.
pub(super) fn describe(data: &EventData) -> String {
    match data {
        EventData::SessionCreated(_) => "session created".into(),
        EventData::ObservationRecorded(seen) => {
            format!("observed {} {}", seen.key.name(), quote(seen.value.as_str()))
        }
        EventData::RunStarted(run) => format!("run of {} started", quote(&run.workflow_id)),
        EventData::NodeCreated(node) => match node.node_kind {
            NodeKind::Step => "reached a step".into(),
            NodeKind::Checkpoint => "made a checkpoint".into(),
            NodeKind::BlockedAttempt => "kept a blocked attempt".into(),
        },
        EventData::EdgeCreated(edge) => match edge.edge_kind {
            EdgeKind::AckedStep => format!("went on to {}", edge.to_node_id),
            EdgeKind::Checkpoint => format!("linked the checkpoint {}", edge.to_node_id),
        },
        EventData::AdvanceRecorded(advance) => match &advance.outcome {
            AdvanceOutcome::Blocked { blockers } => {
                let first = blockers.blockers().first();
                let why = first.map_or_else(String::new, |blocker| quote(&blocker.message));
                format!("blocked: {why}")
            }
            AdvanceOutcome::Advanced { to_node_id } => format!("advanced to {to_node_id}"),
        },
        EventData::NodeOutputAppended(output) => match &output.payload {
            OutputPayload::Notes { notes_markdown } => format!("noted {}", quote(notes_markdown)),
            OutputPayload::ArtifactRef { byte_length, content_type, .. } => {
                format!("put out {} of {byte_length} bytes", quote(content_type))
            }
        },
        EventData::PreferencesChanged(change) => {
            let keys = change.delta.iter().map(|changed| match changed {
                PreferenceChange::Autonomy(_) => "autonomy",
                PreferenceChange::RiskPolicy(_) => "risk policy",
            });
            format!("changed {}", keys.collect::<Vec<_>>().join(" and "))
        }
        EventData::CapabilityObserved(seen) => {
            let capability = match seen.capability {
                Capability::Delegation => "delegation",
                Capability::WebBrowsing => "web browsing",
            };
            let status = match seen.status {
                CapabilityStatus::Unknown => "unknown",
                CapabilityStatus::Available => "available",
                CapabilityStatus::Unavailable => "unavailable",
            };
            format!("found {capability} {status}")
        }
        EventData::GapRecorded(gap) => match gap.resolution {
            Resolution::Unresolved {} => format!("disclosed a gap: {}", quote(&gap.summary)),
            Resolution::Resolves { resolves_gap_id } => format!("closed {resolves_gap_id}"),
        },
        EventData::DivergenceRecorded(divergence) => {
            format!("left the procedure: {}", quote(&divergence.summary))
        }
        EventData::DecisionTraceAppended(trace) => {
            let first = trace.entries.first().map_or("", |entry| entry.summary.as_str());
            format!("decided: {}", quote(first))
        }
        EventData::ContextSet(set) => {
            let keys = set.context.0.as_object().map_or(0, serde_json::Map::len);
            format!("context given: {keys} {}", if keys == 1 { "key" } else { "keys" })
        }
        EventData::Unknown(kind) => match Kind::named(kind) {
            Some(known) => format!("{}, in a form of a later version", spaced(known)),
            None => format!("unknown kind {}, of a later version", quote(kind)),
        },
        EventData::SessionOwned(owned) => {
            let holder = owned.holder.as_deref().map(|holder| format!(" by {}", quote(holder)));
            format!("owned{}, epoch {}", holder.unwrap_or_default(), owned.epoch)
        }
        EventData::SessionListed(listed) => {
            format!("{} acquired, epoch {}", listed.listed_id, listed.epoch)
        }
        EventData::TriggerReceived(trigger) => {
            format!("trigger {} received for {}", trigger.trigger_id, trigger.run_id)
        }
        _ => performed(data),
    }
}

/// The same for events of engine-performed runs.
fn performed(data: &EventData) -> String {
    match data {
        EventData::RunQueued(run) => format!("run of {} queued", quote(&run.workflow_id)),
        EventData::StepStarted(step) => format!("{} started{}", step.instance, nth(step.attempt)),
        EventData::StepCompleted(step) => {
            let case = step.case.as_deref().map(|case| format!(" as {}", quote(case)));
            format!("{} completed{}", step.instance, case.unwrap_or_default())
        }
        EventData::StepFailed(step) => {
            let then = match step.then {
                AfterFailure::Retry => "to be tried again",
                AfterFailure::Stop => "the run stops",
                AfterFailure::Skip => "going on without it",
                AfterFailure::Fallback => "falling back",
            };
            format!(
                "{} failed{}, {then}: {}",
                step.instance,
                nth(step.attempt),
                quote(&step.error.message)
            )
        }
        EventData::StepSkipped(step) => {
            let why = match step.reason {
                SkipReason::Condition => "its condition does not hold",
                SkipReason::Untaken => "no edge leads to it",
                SkipReason::Failed => "it failed",
            };
            format!("{} skipped: {why}", step.instance)
        }
        EventData::StepWaiting(step) => {
            let what = match step.waiting_for {
                WaitingFor::Caller => "its caller",
                WaitingFor::Person => "a person",
                WaitingFor::Timer => "a timer",
                WaitingFor::Child => "a child run",
            };
            format!("{} waits for {what}", step.instance)
        }
        EventData::StepInterrupted(step) => format!("{} was cut off", step.instance),
        EventData::StepResolved(step) => {
            let what = match step.decision {
                InterruptDecision::Retry => "try again",
                InterruptDecision::Fail => "count as failed",
                InterruptDecision::Skip => "skip",
            };
            format!("{} resolved by {}: {what}", step.instance, quote(&step.by))
        }
        EventData::LoopEntered(looped) => format!("loop {} entered", looped.instance),
        EventData::LoopExited(looped) => {
            format!("loop {} exited after {} turns", looped.instance, looped.iterations)
        }
        EventData::TimerSet(timer) => {
            let purpose = match timer.purpose {
                TimerPurpose::Retry => "retry",
                TimerPurpose::Wait => "wait",
                TimerPurpose::StepTimeout => "step timeout",
                TimerPurpose::RunTimeout => "run timeout",
                TimerPurpose::TaskTimeout => "task timeout",
            };
            format!("timer set: {purpose}")
        }
        EventData::TimerFired(timer) => format!("{} fired", timer.timer_id),
        EventData::TimerCancelled(timer) => format!("{} cancelled", timer.timer_id),
        EventData::TaskOpened(task) => format!("{} asks a person", task.instance),
        EventData::TaskAnswered(task) => format!("answered by {}", quote(&task.by)),
        EventData::ChildStarted(child) => {
            format!("{} started the child {}", child.instance, child.child_run_id)
        }
        EventData::ChildFinished(child) => {
            let how = match child.status {
                EndStatus::Succeeded => "succeeded",
                EndStatus::Failed => "failed",
                EndStatus::Cancelled => "was cancelled",
            };
            format!("the child {} {how}", child.child_run_id)
        }
        EventData::SnapshotTaken(snapshot) => {
            format!("state stored through event {}", snapshot.through)
        }
        EventData::RunPaused(change) => format!("paused by {}", quote(&change.by)),
        EventData::RunResumed(change) => format!("resumed by {}", quote(&change.by)),
        EventData::RunCancelRequested(request) => {
            format!("{} asked to cancel: {}", quote(&request.by), quote(&request.reason))
        }
        EventData::RunCompleted(_) => "run completed".into(),
        EventData::RunFailed(run) => format!("run failed: {}", quote(&run.error.message)),
        EventData::RunCancelled(_) => "run cancelled".into(),
        EventData::RunRetired(_) => "run retired".into(),
        _ => spaced(data.kind()),
    }
}

fn spaced(kind: Kind) -> String {
    kind.name().replace('_', " ")
}

/// Free text in one line: no control characters, a bounded length.
fn quote(text: &str) -> String {
    let line: String = text.split(char::is_control).collect::<Vec<_>>().join(" ");
    let mut words = line.trim().chars();
    let short: String = words.by_ref().take(QUOTE_MAX).collect();
    let rest = if words.next().is_some() { "…" } else { "" };
    // Notes are Markdown: what has backticks of its own gets other quotes.
    if short.contains('`') { format!("“{short}{rest}”") } else { format!("`{short}{rest}`") }
}

fn nth(attempt: u32) -> String {
    if attempt == 0 { String::new() } else { format!(" (attempt {})", u64::from(attempt) + 1) }
}
