//! What is worth knowing beside a step, and stops nothing.

use cairn_core::event::guided::{CapabilityStatus, EdgeCauseKind, OutputPayload, Preferences};
use cairn_core::event::limits;
use cairn_core::guided::probe;
use cairn_core::id::{NodeId, OutputId, RunId};
use cairn_core::plan::{Need, Plan};
use cairn_core::text::{TRUNCATED, truncate};

use super::super::answer::{Reference, Warning, WarningCode};
use super::super::ask::{Checkpoint, Output};
use super::super::position::Position;
use super::super::session::Session;

/// A warning of a value that a prompt mentions.
pub(super) fn unset(name: &str) -> Warning {
    let message =
        format!("the prompt mentions `{name}`, which the context does not have; set it there");
    Warning { code: WarningCode::ContextUnset, message }
}

/// A warning of a document that is not there.
pub(super) fn unresolved(reference: &Reference) -> Warning {
    let message = format!("{}: there is no file {}", reference.title, reference.path);
    Warning { code: WarningCode::ReferenceUnresolved, message }
}

/// A warning when the file of a workflow is no longer what the run began with.
pub(super) fn drifted(workflow: &str) -> Warning {
    let message = format!(
        "`{workflow}` was changed since the run began; the run goes on with the version it began with"
    );
    Warning { code: WarningCode::PinnedDrift, message }
}

/// A warning when an attempt is made again with another answer.
pub(super) fn other_input() -> Warning {
    let message = "this attempt was recorded before, with another answer to the step; what you sent now was not recorded. To answer anew, come back with a `continueToken` and no `output`, and use the fresh token";
    Warning { code: WarningCode::ReplayedWithOtherInput, message: message.to_owned() }
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
        message: format!("the workflow's author recommends at most {}", parts.join(" and ")),
    })
}

/// The gaps that were disclosed on the way from one node to another.
pub(super) fn gaps(session: &Session, run: RunId, from: NodeId, to: NodeId) -> Vec<Warning> {
    let Ok(dag) = session.dag(run) else { return Vec::new() };
    let mut warnings = Vec::new();
    for node in dag.path_back(to) {
        warnings.extend(
            session.view.gaps.told_at(node.id).iter().map(|gap| Warning {
                code: WarningCode::GapRecorded,
                message: gap.summary.clone(),
            }),
        );
        if node.id == from {
            break;
        }
    }
    warnings
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
            "`{}` is not there, so the run goes on without it, as the workflow allows",
            probe::name(capability)
        ),
    };
    missing.map(told).collect()
}

/// A warning at the end of a run that has left something open on its way.
pub(super) fn left_open(session: &Session, position: &Position) -> Option<Warning> {
    let dag = session.dag(position.run).ok()?;
    let told = dag.path_back(position.node).map(|node| session.view.gaps.told_at(node.id).len());
    let count: usize = told.sum();
    (count > 0).then(|| Warning {
        code: WarningCode::CompleteWithGaps,
        message: match count {
            1 => "the run is complete with a gap; tell the user about it".to_owned(),
            _ => format!("the run is complete with {count} gaps; tell the user about them"),
        },
    })
}

/// A warning when the run had gone on another way before it came to a node.
pub(super) fn branched(session: &Session, run: RunId, to: NodeId) -> Option<Warning> {
    // The latest edge, unless an old call is made again.
    let edge = session.dag(run).ok()?.edges().iter().rev().find(|edge| edge.to == to)?;
    (edge.cause.kind == EdgeCauseKind::NonTipAdvance).then(|| Warning {
        code: WarningCode::Branched,
        message: "the run had gone on from this step before, so it goes on as a new branch; the other stays as it is. To go on with that one, come back to this step with its token alone and take the token from `branches`".to_owned(),
    })
}

/// A warning when the notes that led to a node were cut. A correction changes no answer, so
/// what was first noted counts.
pub(super) fn cut(session: &Session, node: NodeId) -> Option<Warning> {
    let notes = first_notes(session, node).filter(|notes| notes.ends_with(TRUNCATED));
    notes.map(|_| Warning {
        code: WarningCode::NotesTruncated,
        message: "the notes were longer than 4096 bytes and were cut at their end; to correct them, send shorter ones with checkpoint_workflow and `\"replacesNotes\": true`".to_owned(),
    })
}

fn first_notes(session: &Session, node: NodeId) -> Option<&str> {
    match &session.view.outputs.history(node).first()?.payload {
        OutputPayload::Notes { notes_markdown } => Some(notes_markdown),
        OutputPayload::ArtifactRef { .. } => None,
    }
}

/// A warning when a token that corrected notes comes again with others, or for a note of its own.
pub(in crate::guided) fn other_correction(
    session: &Session,
    node: NodeId,
    correction: OutputId,
    ask: &Checkpoint,
) -> Vec<Warning> {
    let sent = truncate(ask.output.notes.as_deref().unwrap_or_default(), limits::NOTES);
    let history = session.view.outputs.history(node);
    let kept = history.iter().find(|output| output.id == correction).map(|output| &output.payload);
    let is_kept =
        matches!(kept, Some(OutputPayload::Notes { notes_markdown }) if *notes_markdown == sent);
    if ask.replaces_notes && is_kept {
        return Vec::new();
    }
    vec![Warning {
        code: WarningCode::ReplayedWithOtherInput,
        message: "the notes were corrected with this token before; what you sent now was not kept. Send it again with the checkpointToken of this answer".to_owned(),
    }]
}

/// A warning when a checkpoint that was left before is left again with other notes.
pub(in crate::guided) fn other_notes(
    session: &Session,
    node: NodeId,
    sent: &Output,
) -> Vec<Warning> {
    let sent = sent.notes.as_deref().filter(|notes| !notes.trim().is_empty());
    let sent = sent.map(|notes| truncate(notes, limits::NOTES));
    if sent.as_deref() == first_notes(session, node) {
        return Vec::new();
    }
    vec![Warning {
        code: WarningCode::ReplayedWithOtherInput,
        message: "this checkpoint was left before, with other notes; what you sent now was not kept. Send it again with the checkpointToken of this answer".to_owned(),
    }]
}
