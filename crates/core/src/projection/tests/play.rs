//! Logs of a guided run, written in short.

use serde_json::{Map, Value};

use crate::canonical::StrictValue;
use crate::digest::{Digest, SnapshotRef, WorkflowHash};
use crate::event::guided::*;
use crate::event::{Event, EventData, NewEvent, Scope};
use crate::id::*;
use crate::reason::{Blocker, BlockerReport, GapReason, Pointer, Reason, Severity, Unexpected};

/// The log of run 1 that a script tells, such as `node 1; node 2 of 1; note 2 done`.
pub(crate) fn play(script: &str) -> Vec<Event> {
    let lines = script.split(';').map(str::trim).filter(|line| !line.is_empty());
    (0..).zip(lines).map(|(index, line)| event(index, line)).collect()
}

fn event(index: u64, line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |place: usize| words[place].parse::<u128>().unwrap();
    let node = |place: usize| NodeId::from_bits(number(place));
    let rest = |place: usize| words[place..].join(" ");
    let own = u128::from(index);
    let run = RunId::from_bits(1);
    let at = |place: usize| Scope::Node(run, node(place));
    let (scope, data) = match words[0] {
        "started" => (Scope::Run(run), started(words[1])),
        "node" => {
            let parent = words.get(2).map(|_| node(3));
            (at(1), created(node(1), parent))
        }
        "edge" => (Scope::Run(run), edge(node(1), node(2))),
        "note" => (at(1), note(own, None, rest(2))),
        "correct" => (at(1), note(own, Some(OutputId::from_bits(number(2))), rest(3))),
        "artifact" => (at(1), artifact(own)),
        "gap" => (at(1), gap(number(2), Resolution::Unresolved {}, Reason::ALL[0].gap_reason())),
        "oddity" => {
            let reason = GapReason::Unexpected(Unexpected::InvariantViolation);
            (at(1), gap(number(2), Resolution::Unresolved {}, reason))
        }
        "close" => {
            let resolves_gap_id = GapId::from_bits(number(2));
            let reason = Reason::ALL[0].gap_reason();
            (at(1), gap(1000 + own, Resolution::Resolves { resolves_gap_id }, reason))
        }
        "blocked" => (at(1), blocked(own)),
        "advanced" => (at(1), advanced(own, node(2))),
        "never-stop" => (at(1), autonomy(own, Autonomy::FullAutoNeverStop)),
        "guided" => (at(1), autonomy(own, Autonomy::Guided)),
        "context" => (Scope::Run(run), context(own, Some(node(1)), &words[2..])),
        "initial" => (Scope::Run(run), context(own, None, &words[1..])),
        "available" => (at(1), capability(own, CapabilityStatus::Available)),
        "unavailable" => (at(1), capability(own, CapabilityStatus::Unavailable)),
        "branch" => (Scope::Session, branch(words[1])),
        other => panic!("`{other}` is no event of a script"),
    };
    let id = EventId::mint(1_700_000_000_000 + index, own);
    NewEvent { id, scope, data }.at(SessionId::from_bits(7), EventIndex(index))
}

/// The snapshot that a script gives to a node.
pub(crate) fn snapshot(node: NodeId) -> SnapshotRef {
    SnapshotRef(Digest::of(node.to_string().as_bytes()))
}

fn started(workflow_id: &str) -> EventData {
    let workflow_hash = WorkflowHash(Digest::of(b"plan"));
    let source = workflow_id.to_owned();
    RunStarted {
        assets: Vec::new(),
        goal: None,
        workflow_hash,
        workflow_id: source.clone(),
        workflow_source_kind: SourceKind::Project,
        workflow_source_ref: source,
        workspace: None,
    }
    .into()
}

fn created(node: NodeId, parent_node_id: Option<NodeId>) -> EventData {
    NodeCreated {
        node_kind: NodeKind::Step,
        parent_node_id,
        snapshot_ref: snapshot(node),
        workflow_hash: WorkflowHash(Digest::of(b"plan")),
    }
    .into()
}

fn edge(from_node_id: NodeId, to_node_id: NodeId) -> EventData {
    let kind = EdgeCauseKind::IntentionalFork;
    let cause = EdgeCause { event_id: EventId::from_bits(1), kind };
    EdgeCreated { cause, edge_kind: EdgeKind::AckedStep, from_node_id, to_node_id }.into()
}

fn note(id: u128, supersedes_output_id: Option<OutputId>, notes_markdown: String) -> EventData {
    NodeOutputAppended {
        output_channel: OutputChannel::Recap,
        output_id: OutputId::from_bits(id),
        payload: OutputPayload::Notes { notes_markdown },
        supersedes_output_id,
    }
    .into()
}

fn artifact(id: u128) -> EventData {
    NodeOutputAppended {
        output_channel: OutputChannel::Artifact,
        output_id: OutputId::from_bits(id),
        payload: OutputPayload::ArtifactRef {
            byte_length: 1,
            content_type: "text/plain".into(),
            sha256: Digest::of(b"a"),
        },
        supersedes_output_id: None,
    }
    .into()
}

fn gap(id: u128, resolution: Resolution, reason: GapReason) -> EventData {
    GapRecorded {
        evidence_refs: Vec::new(),
        gap_id: GapId::from_bits(id),
        reason,
        resolution,
        severity: Severity::Critical,
        summary: "missing".into(),
    }
    .into()
}

fn blocked(id: u128) -> EventData {
    let blocker = Blocker {
        code: Reason::ALL[0].blocker_code(),
        pointer: Pointer::ContextBudget {},
        message: "ask the user".into(),
        suggested_fix: None,
    };
    let blockers = BlockerReport::new(vec![blocker]).unwrap();
    advance(id, AdvanceOutcome::Blocked { blockers })
}

fn advanced(id: u128, to_node_id: NodeId) -> EventData {
    advance(id, AdvanceOutcome::Advanced { to_node_id })
}

fn advance(id: u128, outcome: AdvanceOutcome) -> EventData {
    let attempt_id = AttemptId::from_bits(id);
    AdvanceRecorded { attempt_id, input_digest: None, intent: AdvanceIntent::AckPending, outcome }
        .into()
}

fn autonomy(id: u128, autonomy: Autonomy) -> EventData {
    PreferencesChanged {
        change_id: ChangeId::from_bits(id),
        delta: vec![PreferenceChange::Autonomy(autonomy)],
        effective: Preferences { autonomy, risk_policy: RiskPolicy::Conservative },
        source: PreferenceSource::User,
    }
    .into()
}

/// Members as `key=value`; `key=` removes.
fn context(id: u128, node_id: Option<NodeId>, members: &[&str]) -> EventData {
    let member = |text: &&str| {
        let (key, value) = text.split_once('=').unwrap();
        let value = if value.is_empty() { Value::Null } else { Value::from(value) };
        (key.to_owned(), value)
    };
    let members: Map<String, Value> = members.iter().map(member).collect();
    ContextSet {
        context: StrictValue::new(Value::Object(members)),
        context_id: ContextId::from_bits(id),
        node_id,
        source: ContextSource::AgentDelta,
    }
    .into()
}

fn capability(id: u128, status: CapabilityStatus) -> EventData {
    let detail = ClaimDetail { claim: Claim::Available, claimed_by: Claimant::Agent };
    let enforcement_grade = EnforcementGrade::Weak;
    CapabilityObserved {
        cap_obs_id: CapObsId::from_bits(id),
        capability: Capability::Delegation,
        provenance: Provenance::ManualClaim { detail, enforcement_grade },
        status,
    }
    .into()
}

fn branch(name: &str) -> EventData {
    ObservationRecorded {
        confidence: Confidence::High,
        key: ObservationKey::GitBranch,
        value: ObservedValue::ShortString(name.to_owned()),
    }
    .into()
}
