//! What is worth knowing beside a step, and stops nothing.

use std::path::Path;

use cairn_core::event::guided::{
    CapabilityStatus, EdgeCauseKind, OutputChannel, OutputPayload, Preferences,
};
use cairn_core::event::limits;
use cairn_core::guided::decide::{self, Ack};
use cairn_core::guided::judge::Submission;
use cairn_core::guided::probe;
use cairn_core::id::{AttemptId, NodeId, OutputId, RunId, SessionId};
use cairn_core::plan::{Need, Plan, Step};
use cairn_core::projection::gaps::Gap;
use cairn_core::text::{TRUNCATED, truncate};

use super::super::answer::{Behind, Reference, Warning, WarningCode};
use super::super::ask::{Checkpoint, Output, Wanted};
use super::super::position::Position;
use super::super::session::Session;

/// How much of the names of what was not recorded is told.
const NAMED_MAX: usize = 256;

/// A warning of a value that a prompt mentions.
pub(super) fn unset(name: &str) -> Warning {
    let message =
        format!("the prompt mentions `{name}`, which the context does not have; set it there");
    Warning { code: WarningCode::ContextUnset, message }
}

/// A warning of a key of the context that a step which was done asks for.
pub(super) fn unset_key(step: &Step, fault: &str, is_complete: bool) -> Warning {
    let then = match is_complete {
        true => "the run is complete without it",
        false => "send it in `context` with the next step, or what reads it goes on without it",
    };
    let message = format!("`{}` asks for a context key: {fault}; {then}", step.id);
    Warning { code: WarningCode::ContextUnset, message }
}

/// What a step that was done closed.
pub(super) fn closed(session: &Session, to: NodeId) -> Vec<Warning> {
    let closed = session.view.gaps.closed_at(to).into_iter();
    let told = |gap: &Gap| Warning {
        code: WarningCode::GapClosed,
        message: format!("this gap is closed: {} (gapId {})", gap.summary, gap.id),
    };
    closed.map(told).collect()
}

/// A warning of a document that is not there.
pub(super) fn unresolved(reference: &Reference) -> Warning {
    let message = format!("{}: there is no file {}", reference.title, reference.path);
    Warning { code: WarningCode::ReferenceUnresolved, message }
}

/// A warning when the file of a workflow is no longer what the run began with.
pub(super) fn drifted(workflow: &str) -> Warning {
    let message = format!(
        "`{workflow}` has changed since the run started; the run keeps the version it started with"
    );
    Warning { code: WarningCode::PinnedDrift, message }
}

/// A warning when the project of a run is not where it was.
pub(super) fn moved(project: &Path, session: SessionId) -> Warning {
    let message = format!(
        "the project of this run, {}, is not there; tell the user: `cairn session rebind {session} \
         PATH` binds the run to where it is now",
        project.display()
    );
    Warning { code: WarningCode::WorkspaceMissing, message }
}

/// What a call sent and its attempt did not record, since it was recorded with another answer.
pub(in crate::guided) fn other_input(ack: &Ack<'_>, blocked: bool) -> Warning {
    let instead = match blocked {
        true => "send it again with the retryContinueToken of this answer",
        false => {
            "this answer shows that step again, and its continueToken makes a new branch: send the \
             same output and context with that token. To continue the recorded branch instead, use \
             the continueToken in `branches`"
        }
    };
    Warning {
        code: WarningCode::ReplayedWithOtherInput,
        message: format!(
            "not recorded: {}. This token was used before with another output or context; {instead}",
            sent(ack)
        ),
    }
}

/// What a call sent, by name.
fn sent(ack: &Ack<'_>) -> String {
    let Submission { notes, artifacts } = ack.submission;
    let mut parts = Vec::new();
    parts.extend(notes.filter(|notes| !notes.trim().is_empty()).map(|_| "notes".to_owned()));
    parts.extend(match artifacts.len() {
        0 => None,
        1 => Some("1 artifact".to_owned()),
        n => Some(format!("{n} artifacts")),
    });
    if !ack.context.is_empty() {
        let keys: Vec<String> = ack.context.keys().map(|key| format!("`{key}`")).collect();
        parts.push(truncate(&format!("context {}", keys.join(", ")), NAMED_MAX));
    }
    if ack.wanted != Wanted::default() {
        parts.push("preferences".to_owned());
    }
    match parts.is_empty() {
        true => "an empty output".to_owned(),
        false => parts.join(", "),
    }
}

/// A warning when more is left to the agent than the workflow's author recommends.
pub(super) fn beyond(plan: &Plan, now: Preferences) -> Option<Warning> {
    let wanted = &plan.recommendations;
    let autonomy = wanted.autonomy.filter(|wanted| now.autonomy > *wanted);
    let risk = wanted.risk_policy.filter(|wanted| now.risk_policy > *wanted);
    let autonomy = autonomy.map(|wanted| format!("autonomy `{}`", wanted.name()));
    let risk = risk.map(|wanted| format!("riskPolicy `{}`", wanted.name()));
    let parts: Vec<String> = autonomy.into_iter().chain(risk).collect();
    (!parts.is_empty()).then(|| Warning {
        code: WarningCode::RecommendationExceeded,
        message: format!(
            "the workflow recommends at most {}, and what is in effect goes beyond that, so mention it to the user",
            parts.join(" and ")
        ),
    })
}

/// The gaps that were disclosed on the way from one node to another.
pub(super) fn gaps(session: &Session, run: RunId, from: NodeId, to: NodeId) -> Vec<Warning> {
    let Ok(dag) = session.dag(run) else { return Vec::new() };
    let mut warnings = Vec::new();
    for node in dag.path_back(to) {
        warnings.extend(session.view.gaps.told_at(node.id).iter().map(gap));
        if node.id == from {
            break;
        }
    }
    warnings
}

/// The gaps that are open where somebody comes back to.
pub(super) fn open_gaps(position: &Position) -> Vec<Warning> {
    position.gaps.iter().map(gap).collect()
}

fn gap(gap: &Gap) -> Warning {
    let message = format!("{} (gapId {})", gap.summary, gap.id);
    Warning { code: WarningCode::GapRecorded, message }
}

/// A warning when a capability turned out not to be there that the workflow prefers.
pub(super) fn degraded(session: &Session, plan: &Plan, node: NodeId) -> Vec<Warning> {
    let preferred = plan.capabilities.iter().filter(|wanted| wanted.need == Need::Preferred);
    let missing = preferred.map(|wanted| wanted.capability).filter(|capability| {
        let seen = session.view.capabilities.at(node, *capability);
        seen.is_some_and(|seen| seen.status == CapabilityStatus::Unavailable)
    });
    let told = |capability| Warning {
        code: WarningCode::CapabilityUnavailable,
        message: format!(
            "`{}` is not available; the workflow can do without it",
            probe::name(capability)
        ),
    };
    missing.map(told).collect()
}

/// A warning at the end of a run that has left something open on its way.
pub(super) fn left_open(position: &Position) -> Option<Warning> {
    let message = match position.gaps.as_slice() {
        [] => return None,
        [one] => format!("the run is complete with an open gap; tell the user: {}", one.summary),
        many => {
            let told: Vec<&str> = many.iter().map(|gap| gap.summary.as_str()).collect();
            let told = truncate(&told.join("; "), limits::SUMMARY);
            format!("the run is complete with {} open gaps; tell the user: {told}", many.len())
        }
    };
    Some(Warning { code: WarningCode::CompleteWithGaps, message })
}

/// A warning when the run had gone on another way before it came to a node.
pub(super) fn branched(session: &Session, run: RunId, to: NodeId) -> Option<Warning> {
    // The latest edge, unless an old call is made again.
    let edge = session.dag(run).ok()?.edges().iter().rev().find(|edge| edge.to == to)?;
    (edge.cause.kind == EdgeCauseKind::NonTipAdvance).then(|| Warning {
        code: WarningCode::Branched,
        message: "the run had continued from this step before, so this is a new branch; the other branch is unchanged. To continue that one instead, send the token of that step alone and take a token from `branches`".to_owned(),
    })
}

/// A warning when the notes that led to a node were cut. A correction changes no answer, so
/// what was first noted counts.
pub(super) fn cut(session: &Session, node: NodeId) -> Option<Warning> {
    cut_notes(first_notes(session, node))
}

/// A warning when notes were cut.
pub(in crate::guided) fn cut_notes(notes: Option<&str>) -> Option<Warning> {
    let notes = notes.filter(|notes| notes.ends_with(TRUNCATED));
    notes.map(|_| Warning {
        code: WarningCode::NotesTruncated,
        message: "the notes were longer than 4096 bytes, and their end was cut; to replace them, send shorter ones with checkpoint_workflow and `\"replacesNotes\": true`".to_owned(),
    })
}

fn first_notes(session: &Session, node: NodeId) -> Option<&str> {
    match &session.view.outputs.history(node).first()?.payload {
        OutputPayload::Notes { notes_markdown } => Some(notes_markdown),
        OutputPayload::ArtifactRef { .. } => None,
    }
}

/// A warning when a checkpoint token comes again with something else than it recorded.
pub(in crate::guided) fn other_checkpoint() -> Warning {
    let message = "this token has recorded something else before, so nothing of this call was recorded; send it again with the checkpointToken of this answer, which is one for where the run stands";
    Warning { code: WarningCode::ReplayedWithOtherInput, message: message.to_owned() }
}

/// A warning when a checkpoint is recorded at a step that the run has left.
pub(in crate::guided) fn recorded_behind(behind: &Behind) -> Warning {
    let Behind { step, at, .. } = behind;
    let at = match at {
        Some(at) => format!("the run is at `{at}`"),
        None => "the run is over".to_owned(),
    };
    Warning {
        code: WarningCode::CheckpointBehind,
        message: format!(
            "recorded at `{step}`, but that step is done and {at}: a recap there does not show \
             this checkpoint, only one of a new branch from `{step}` does"
        ),
    }
}

/// Whether a token that corrected notes comes again for the same correction.
pub(in crate::guided) fn same_correction(
    session: &Session,
    node: NodeId,
    correction: OutputId,
    ask: &Checkpoint,
) -> bool {
    let sent = truncate(ask.output.notes.as_deref().unwrap_or_default(), limits::NOTES);
    let history = session.view.outputs.history(node);
    let kept = history.iter().find(|output| output.id == correction).map(|output| &output.payload);
    let is_kept =
        matches!(kept, Some(OutputPayload::Notes { notes_markdown }) if *notes_markdown == sent);
    ask.replaces_notes && is_kept
}

/// Whether a checkpoint that was left before is left again with the same notes and artifacts.
pub(in crate::guided) fn same_checkpoint(
    session: &Session,
    node: NodeId,
    attempt: AttemptId,
    ask: &Checkpoint,
) -> bool {
    let Output { notes, artifacts } = &ask.output;
    let notes = notes.as_deref().filter(|notes| !notes.trim().is_empty());
    let notes = notes.map(|notes| truncate(notes, limits::NOTES));
    let mut recorded: Vec<OutputId> = session
        .view
        .outputs
        .history(node)
        .iter()
        .filter(|output| output.channel == OutputChannel::Artifact)
        .map(|output| output.id)
        .collect();
    let mut sent = decide::kept(attempt, artifacts).unwrap_or_default();
    for ids in [&mut recorded, &mut sent] {
        ids.sort_unstable();
        ids.dedup();
    }
    !ask.replaces_notes && notes.as_deref() == first_notes(session, node) && sent == recorded
}
