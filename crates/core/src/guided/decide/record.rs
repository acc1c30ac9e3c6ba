//! Writing down what an attempt led to.

use serde_json::{Map, Value};

use super::{Decided, Mint};
use crate::canonical;
use crate::canonical::StrictValue;
use crate::digest::{Digest, WorkflowHash};
use crate::event::guided::{
    CapabilityObserved, ContextSet, ContextSource, DecisionTraceAppended, DivergenceRecorded,
    EdgeCause, EdgeCauseKind, EdgeCreated, EdgeKind, EvidenceRef, GapRecorded, NodeCreated,
    NodeKind, NodeOutputAppended, OutputChannel, OutputPayload, PreferenceChange, PreferenceSource,
    Preferences, PreferencesChanged, Resolution, TraceEntry,
};
use crate::event::{EventData, NewEvent, Scope, limits};
use crate::guided::judge::{Claim, Closed, Divergence, Problem};
use crate::id::{
    AttemptId, CapObsId, ChangeId, ContextId, DivergenceId, EventId, GapId, NodeId, OutputId,
    RunId, TraceId,
};
use crate::pin::BlobKind;
use crate::reason::Severity;
use crate::snapshot::{EngineState, ExecutionSnapshot};
use crate::text::truncate;

/// What tells the notes of a decision from its other outputs.
pub(super) const RECAP: &str = "recap";
/// The media type of artifacts.
const JSON: &str = "application/json";

/// What an artifact is to the engine. Its output's id tells, so nobody's artifact can pass
/// for one of another role.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// An assessment that was judged and accepted.
    Accepted,
    /// What came of a step that the engine performed, where the run stayed.
    Held,
    /// Whatever else was sent.
    Sent,
}

impl Role {
    /// The output that keeps an artifact of this role, by what led to it.
    pub(super) fn output(self, seed: &str, sha256: Digest) -> OutputId {
        let name = match self {
            Self::Accepted => "assessment",
            Self::Held => "held",
            Self::Sent => "artifact",
        };
        OutputId::derive(&[seed, name, &sha256.hex()])
    }

    /// The output that an attempt keeps an artifact of this role in, whoever makes it.
    #[must_use]
    pub fn of(self, attempt: AttemptId, sha256: Digest) -> OutputId {
        self.output(&attempt.to_string(), sha256)
    }
}

/// Collects the events of one decision. Ids are derived from its seed.
pub(super) struct Record<'m> {
    run: RunId,
    node: NodeId,
    seed: String,
    mint: Mint<'m>,
    decided: Decided,
}

/// The node that a decision makes.
pub(super) struct Made<'a> {
    pub(super) kind: NodeKind,
    pub(super) parent: Option<NodeId>,
    pub(super) state: &'a EngineState,
    pub(super) hash: WorkflowHash,
}

impl<'m> Record<'m> {
    /// A record of what happens at `node`.
    pub(super) fn new(run: RunId, node: NodeId, seed: String, mint: Mint<'m>) -> Self {
        let decided = Decided { events: Vec::new(), blobs: Vec::new() };
        Self { run, node, seed, mint, decided }
    }

    pub(super) fn done(self) -> Decided {
        self.decided
    }

    pub(super) fn push(&mut self, scope: Scope, data: impl Into<EventData>) -> EventId {
        let id = (self.mint)();
        self.decided.events.push(NewEvent { id, scope, data: data.into() });
        id
    }

    /// The event that was recorded last.
    pub(super) fn last(&mut self) -> EventId {
        self.decided.events.last().map_or_else(&mut self.mint, |event| event.id)
    }

    pub(super) fn blob(&mut self, kind: BlobKind, bytes: Vec<u8>) {
        self.decided.blobs.push((kind, bytes));
    }

    /// Records from here on what happens at another node.
    pub(super) const fn stand_at(&mut self, node: NodeId) {
        self.node = node;
    }

    /// Something about the node that was made.
    pub(super) fn at_node(&mut self, data: impl Into<EventData>) -> EventId {
        self.push(Scope::Node(self.run, self.node), data)
    }

    /// Something about the run.
    pub(super) fn at_run(&mut self, data: impl Into<EventData>) -> EventId {
        self.push(Scope::Run(self.run), data)
    }

    pub(super) fn node(&mut self, made: Made<'_>) -> Result<(), canonical::Error> {
        let snapshot = ExecutionSnapshot { state: made.state.clone(), workflow_hash: made.hash };
        let bytes = snapshot.encode()?;
        let snapshot_ref = snapshot.reference()?;
        self.blob(BlobKind::Snapshot, bytes);
        self.at_node(NodeCreated {
            node_kind: made.kind,
            parent_node_id: made.parent,
            snapshot_ref,
            workflow_hash: made.hash,
        });
        Ok(())
    }

    pub(super) fn edge(
        &mut self,
        from: NodeId,
        edge_kind: EdgeKind,
        kind: EdgeCauseKind,
        event_id: EventId,
    ) {
        let to_node_id = self.node;
        let cause = EdgeCause { event_id, kind };
        self.at_run(EdgeCreated { cause, edge_kind, from_node_id: from, to_node_id });
    }

    /// Context that holds from the node on.
    pub(super) fn context(&mut self, delta: &Map<String, Value>, source: ContextSource) {
        if delta.is_empty() {
            return;
        }
        let node_id = (source != ContextSource::Initial).then_some(self.node);
        let context = ContextSet {
            context: StrictValue::new(Value::Object(delta.clone())),
            context_id: ContextId::derive(&[&self.seed, "context"]),
            node_id,
            source,
        };
        self.at_run(context);
    }

    pub(super) fn preferences(
        &mut self,
        delta: Vec<PreferenceChange>,
        effective: Preferences,
        source: PreferenceSource,
    ) {
        if !delta.is_empty() {
            let change_id = ChangeId::derive(&[&self.seed, "preferences"]);
            self.at_node(PreferencesChanged { change_id, delta, effective, source });
        }
    }

    pub(super) fn notes(&mut self, notes: &str, supersedes: Option<OutputId>) {
        self.at_node(NodeOutputAppended {
            output_channel: OutputChannel::Recap,
            output_id: OutputId::derive(&[&self.seed, RECAP]),
            payload: OutputPayload::notes(notes),
            supersedes_output_id: supersedes,
        });
    }

    /// Notes first, then artifacts by their digest.
    pub(super) fn outputs(
        &mut self,
        notes: Option<&str>,
        artifacts: &[(Role, Value)],
    ) -> Result<(), canonical::Error> {
        if let Some(notes) = notes.filter(|notes| !notes.trim().is_empty()) {
            self.notes(notes, None);
        }
        let mut kept = Vec::new();
        for (role, artifact) in artifacts {
            let bytes = canonical::to_vec(artifact)?;
            kept.push((Digest::of(&bytes), *role, bytes));
        }
        kept.sort();
        kept.dedup();
        for (sha256, role, bytes) in kept {
            let byte_length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            self.at_node(NodeOutputAppended {
                output_channel: OutputChannel::Artifact,
                output_id: role.output(&self.seed, sha256),
                payload: OutputPayload::ArtifactRef {
                    byte_length,
                    content_type: JSON.to_owned(),
                    sha256,
                },
                supersedes_output_id: None,
            });
            self.blob(BlobKind::Artifact, bytes);
        }
        Ok(())
    }

    pub(super) fn claims(&mut self, claims: &[Claim]) {
        for (place, claim) in claims.iter().enumerate() {
            let observed = CapabilityObserved {
                cap_obs_id: CapObsId::derive(&[&self.seed, "capability", &place.to_string()]),
                capability: claim.capability,
                provenance: claim.provenance.clone(),
                status: claim.status,
            };
            self.at_node(observed);
        }
    }

    pub(super) fn divergences(&mut self, divergences: &[Divergence]) {
        for (place, divergence) in divergences.iter().enumerate() {
            let recorded = DivergenceRecorded {
                divergence_id: DivergenceId::derive(&[
                    &self.seed,
                    "divergence",
                    &place.to_string(),
                ]),
                reason: divergence.reason,
                related_step_id: divergence.related_step_id.clone(),
                summary: truncate(&divergence.summary, limits::SUMMARY),
            };
            self.at_node(recorded);
        }
    }

    /// Says what is missing while the run goes on.
    pub(super) fn gaps(&mut self, problems: &[Problem]) {
        for (place, problem) in problems.iter().enumerate() {
            let gap = GapRecorded {
                evidence_refs: Vec::new(),
                gap_id: GapId::derive(&[&self.seed, "gap", &place.to_string()]),
                reason: problem.reason.gap_reason(),
                resolution: Resolution::Unresolved {},
                severity: Severity::Critical,
                summary: truncate(&problem.message, limits::SUMMARY),
            };
            self.at_node(gap);
        }
    }

    /// Says that gaps are closed, with the artifacts that show it.
    pub(super) fn closed(&mut self, closed: &[Closed]) -> Result<(), canonical::Error> {
        for (place, closed) in closed.iter().enumerate() {
            let bytes = canonical::to_vec(&closed.artifact)?;
            let output_id = Role::Sent.output(&self.seed, Digest::of(&bytes));
            self.at_node(GapRecorded {
                evidence_refs: vec![EvidenceRef::Output { output_id }],
                gap_id: GapId::derive(&[&self.seed, "closed", &place.to_string()]),
                reason: closed.reason,
                resolution: Resolution::Resolves { resolves_gap_id: closed.gap },
                severity: Severity::Info,
                summary: truncate(&closed.evidence, limits::SUMMARY),
            });
        }
        Ok(())
    }

    pub(super) fn trace(&mut self, entries: Vec<TraceEntry>) {
        let id = TraceId::derive(&[&self.seed, "trace"]);
        if let Some(trace) = DecisionTraceAppended::new(id, entries) {
            self.at_node(trace);
        }
    }
}
