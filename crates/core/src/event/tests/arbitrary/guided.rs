//! Particulars of what guided runs record.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::super::guided::*;
use super::{digest, id, node, slug, text};
use crate::id::*;
use crate::reason::{Blocker, BlockerReport, Pointer, Reason, Severity};

pub(super) fn node_kind() -> impl Strategy<Value = NodeKind> {
    select(vec![NodeKind::Step, NodeKind::Checkpoint, NodeKind::BlockedAttempt])
}

pub(super) fn observation() -> impl Strategy<Value = ObservationRecorded> {
    use ObservationKey::{GitBranch, GitHeadSha, RepoRoot, RepoRootHash};
    let value = prop_oneof![
        text().prop_map(ObservedValue::ShortString),
        text().prop_map(ObservedValue::Path),
        Just(ObservedValue::GitSha1("0af".repeat(14)[..40].to_owned())),
        digest().prop_map(|digest| ObservedValue::Sha256(digest.hex())),
    ];
    (select(vec![GitBranch, GitHeadSha, RepoRoot, RepoRootHash]), value)
        .prop_map(|(key, value)| ObservationRecorded { confidence: Confidence::Med, key, value })
}

pub(super) fn edge() -> impl Strategy<Value = EdgeCreated> {
    (node(), node(), any::<bool>()).prop_map(|(from_node_id, to_node_id, checkpoint)| {
        let (edge_kind, kind) = if checkpoint {
            (EdgeKind::Checkpoint, EdgeCauseKind::CheckpointCreated)
        } else {
            (EdgeKind::AckedStep, EdgeCauseKind::NonTipAdvance)
        };
        let cause = EdgeCause { event_id: EventId::from_bits(9), kind };
        EdgeCreated { cause, edge_kind, from_node_id, to_node_id }
    })
}

pub(super) fn outcome() -> impl Strategy<Value = AdvanceOutcome> {
    let blockers = vec((select(&Reason::ALL[..]), text(), option::of(text())), 1..3);
    let blocked = blockers.prop_map(|reasons| {
        let blocker = |(reason, message, suggested_fix): (Reason, _, _)| Blocker {
            code: reason.blocker_code(),
            pointer: Pointer::ContextBudget {},
            message,
            suggested_fix,
        };
        let report = BlockerReport::new(reasons.into_iter().map(blocker).collect());
        AdvanceOutcome::Blocked { blockers: report.unwrap() }
    });
    prop_oneof![blocked, node().prop_map(|to_node_id| AdvanceOutcome::Advanced { to_node_id })]
}

pub(super) fn output() -> impl Strategy<Value = NodeOutputAppended> {
    let notes = text()
        .prop_map(|notes_markdown| (OutputChannel::Recap, OutputPayload::Notes { notes_markdown }));
    let artifact = (digest(), text()).prop_map(|(sha256, content_type)| {
        let payload = OutputPayload::ArtifactRef { byte_length: 3, content_type, sha256 };
        (OutputChannel::Artifact, payload)
    });
    (id(6), prop_oneof![notes, artifact], option::of(id(6))).prop_map(
        |(output, (output_channel, payload), supersedes)| NodeOutputAppended {
            output_channel,
            output_id: OutputId::from_bits(output),
            payload,
            supersedes_output_id: supersedes.map(OutputId::from_bits),
        },
    )
}

pub(super) fn preferences() -> impl Strategy<Value = PreferencesChanged> {
    use Autonomy::{FullAutoNeverStop, FullAutoStopOnUserDeps, Guided};
    let autonomy = select(vec![Guided, FullAutoStopOnUserDeps, FullAutoNeverStop]);
    (id(9), autonomy).prop_map(|(change, autonomy)| PreferencesChanged {
        change_id: ChangeId::from_bits(change),
        delta: vec![PreferenceChange::Autonomy(autonomy)],
        effective: Preferences { autonomy, risk_policy: RiskPolicy::Balanced },
        source: PreferenceSource::User,
    })
}

pub(super) fn capability() -> impl Strategy<Value = CapabilityObserved> {
    use CapabilityStatus::{Available, Unavailable, Unknown};
    let probe = ProbeDetail {
        probe_step_id: "probe".into(),
        probe_template_id: "templates.probe".into(),
        result: ProbeResult::Success,
    };
    let attempt = AttemptDetail {
        attempt_context: AttemptContext::WorkflowStep,
        failure_code: Some(FailureCode::ToolMissing),
        result: ProbeResult::Failure,
    };
    let claim = ClaimDetail { claim: Claim::Available, claimed_by: Claimant::Agent };
    let strong = EnforcementGrade::Strong;
    let weak = EnforcementGrade::Weak;
    let provenance = select(vec![
        Provenance::ProbeStep { detail: probe, enforcement_grade: strong },
        Provenance::AttemptedUse { detail: attempt, enforcement_grade: strong },
        Provenance::ManualClaim { detail: claim, enforcement_grade: weak },
    ]);
    (id(9), provenance, select(vec![Unknown, Available, Unavailable])).prop_map(
        |(seen, provenance, status)| CapabilityObserved {
            cap_obs_id: CapObsId::from_bits(seen),
            capability: Capability::WebBrowsing,
            provenance,
            status,
        },
    )
}

pub(super) fn gap() -> impl Strategy<Value = GapRecorded> {
    use Severity::{Critical, Info, Warning};
    let resolution = prop_oneof![
        Just(Resolution::Unresolved {}),
        id(6).prop_map(|gap| Resolution::Resolves { resolves_gap_id: GapId::from_bits(gap) }),
    ];
    let evidence = prop_oneof![
        id(9).prop_map(|event| EvidenceRef::Event { event_id: EventId::from_bits(event) }),
        id(9).prop_map(|output| EvidenceRef::Output { output_id: OutputId::from_bits(output) }),
    ];
    let severity = select(vec![Info, Warning, Critical]);
    (vec(evidence, 0..3), id(6), select(&Reason::ALL[..]), resolution, severity, text()).prop_map(
        |(evidence_refs, gap, reason, resolution, severity, summary)| GapRecorded {
            evidence_refs,
            gap_id: GapId::from_bits(gap),
            reason: reason.gap_reason(),
            resolution,
            severity,
            summary,
        },
    )
}

pub(super) fn trace_entry() -> impl Strategy<Value = TraceEntry> {
    let about = prop_oneof![
        slug().prop_map(|step_id| TraceRef::StepId { step_id }),
        slug().prop_map(|loop_id| TraceRef::LoopId { loop_id }),
        slug().prop_map(|condition_id| TraceRef::ConditionId { condition_id }),
        (0u32..9).prop_map(|value| TraceRef::Iteration { value }),
    ];
    (vec(about, 0..3), text()).prop_map(|(refs, summary)| TraceEntry {
        kind: TraceKind::EvaluatedCondition,
        refs,
        summary,
    })
}
