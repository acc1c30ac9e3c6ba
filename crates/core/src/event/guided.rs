//! Payloads of the events that guided runs record.
//!
//! Fields stand in the order of their names on the wire, which is the canonical order.

use serde::{Deserialize, Serialize};

use crate::canonical::{self, StrictValue};
use crate::digest::{Digest, SnapshotRef, WorkflowHash};
use crate::event::limits;
use crate::id::{
    AttemptId, CapObsId, ChangeId, ContextId, DivergenceId, EventId, GapId, NodeId, OutputId,
    TraceId,
};
use crate::reason::{BlockerReport, GapReason, Severity};
use crate::text::{self, Slug};

/// The session exists.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionCreated {}

/// Something about the workspace, kept so that the work can be found again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObservationRecorded {
    /// How sure the observer is.
    pub confidence: Confidence,
    /// What was observed.
    pub key: ObservationKey,
    /// What it was.
    pub value: ObservedValue,
}

/// How sure an observer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Confidence {
    Low,
    Med,
    High,
}

/// What can be observed of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKey {
    /// The branch that is checked out.
    GitBranch,
    /// The commit that is checked out.
    GitHeadSha,
    /// A digest that stands for the repository's root.
    RepoRootHash,
    /// The repository's root as a path, for people.
    RepoRoot,
}

impl ObservationKey {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitBranch => "git_branch",
            Self::GitHeadSha => "git_head_sha",
            Self::RepoRootHash => "repo_root_hash",
            Self::RepoRoot => "repo_root",
        }
    }
}

/// An observed value with its type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ObservedValue {
    ShortString(String),
    GitSha1(String),
    Sha256(String),
    Path(String),
}

impl ObservedValue {
    /// The value without its type.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::ShortString(text)
            | Self::GitSha1(text)
            | Self::Sha256(text)
            | Self::Path(text) => text,
        }
    }
}

/// A run exists and is pinned to a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunStarted {
    /// The plan; the authority for the whole run.
    pub workflow_hash: WorkflowHash,
    /// The workflow's id.
    pub workflow_id: String,
    /// Where the source was found.
    pub workflow_source_kind: SourceKind,
    /// Where exactly, in the terms of that kind of source.
    pub workflow_source_ref: String,
}

/// The kinds of places that workflows come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum SourceKind {
    Bundled,
    User,
    Project,
    Remote,
    Plugin,
}

/// A run reached a durable point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeCreated {
    /// What kind of point.
    pub node_kind: NodeKind,
    /// The point before; only the run's root has none.
    pub parent_node_id: Option<NodeId>,
    /// The state to go on from.
    pub snapshot_ref: SnapshotRef,
    /// The plan, equal to the run's.
    pub workflow_hash: WorkflowHash,
}

/// The kinds of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum NodeKind {
    Step,
    Checkpoint,
    BlockedAttempt,
}

/// One node follows another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeCreated {
    /// Why.
    pub cause: EdgeCause,
    /// How.
    pub edge_kind: EdgeKind,
    /// The earlier node.
    pub from_node_id: NodeId,
    /// The later node.
    pub to_node_id: NodeId,
}

/// The kinds of edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EdgeKind {
    AckedStep,
    Checkpoint,
}

impl EdgeKind {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AckedStep => "acked_step",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Why an edge was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeCause {
    /// The event that explains it.
    pub event_id: EventId,
    /// The kind of cause.
    pub kind: EdgeCauseKind,
}

/// The kinds of causes of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EdgeCauseKind {
    IdempotentReplay,
    IntentionalFork,
    NonTipAdvance,
    CheckpointCreated,
}

/// An attempt to go on was made, and this came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdvanceRecorded {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// A digest of what the caller sent, so that a replay with other input is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Digest>,
    /// What was attempted.
    pub intent: AdvanceIntent,
    /// What came of it.
    pub outcome: AdvanceOutcome,
}

/// What an attempt wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvanceIntent {
    /// Acknowledge the pending step and go on.
    AckPending,
}

/// What came of an attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum AdvanceOutcome {
    /// The run did not move.
    Blocked {
        /// Why not.
        blockers: BlockerReport,
    },
    /// The run moved.
    Advanced {
        /// To here.
        to_node_id: NodeId,
    },
}

/// Work worth keeping, attached to a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeOutputAppended {
    /// What kind of output.
    pub output_channel: OutputChannel,
    /// The output's own id.
    pub output_id: OutputId,
    /// The output.
    pub payload: OutputPayload,
    /// The earlier output of this node and channel that this one corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes_output_id: Option<OutputId>,
}

/// The channels of a node's outputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputChannel {
    /// What happened and what is next.
    Recap,
    /// Structured results, kept as blobs.
    Artifact,
}

/// An output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "payloadKind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum OutputPayload {
    /// Text.
    Notes {
        /// The text, as Markdown.
        notes_markdown: String,
    },
    /// A blob.
    ArtifactRef {
        /// How long it is.
        byte_length: u64,
        /// What it is.
        content_type: String,
        /// Which blob.
        sha256: Digest,
    },
}

impl OutputPayload {
    /// Notes, cut to their budget.
    #[must_use]
    pub fn notes(text: &str) -> Self {
        Self::Notes { notes_markdown: text::truncate(text, limits::NOTES) }
    }
}

/// The preferences at a node were changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreferencesChanged {
    /// The change's own id.
    pub change_id: ChangeId,
    /// What changed.
    pub delta: Vec<PreferenceChange>,
    /// All preferences after the change.
    pub effective: Preferences,
    /// Who changed them.
    pub source: PreferenceSource,
}

/// One changed preference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "key", content = "value", rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub enum PreferenceChange {
    Autonomy(Autonomy),
    RiskPolicy(RiskPolicy),
}

/// All preferences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preferences {
    /// When to stop for a person.
    pub autonomy: Autonomy,
    /// How much risk to take between correct paths.
    pub risk_policy: RiskPolicy,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { autonomy: Autonomy::Guided, risk_policy: RiskPolicy::Conservative }
    }
}

/// When a run stops for a person; a later one stops less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Autonomy {
    Guided,
    FullAutoStopOnUserDeps,
    FullAutoNeverStop,
}

/// How much risk to take; a later one takes more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum RiskPolicy {
    Conservative,
    Balanced,
    Aggressive,
}

/// Who changed preferences.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PreferenceSource {
    User,
    WorkflowRecommendation,
    System,
}

/// Whether a capability is there was observed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CapabilityObserved {
    /// The observation's own id.
    pub cap_obs_id: CapObsId,
    /// Which capability.
    pub capability: Capability,
    /// How it was observed.
    pub provenance: Provenance,
    /// What was observed.
    pub status: CapabilityStatus,
}

/// The capabilities a procedure may need.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Capability {
    Delegation,
    WebBrowsing,
}

/// Whether a capability is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum CapabilityStatus {
    Unknown,
    Available,
    Unavailable,
}

/// How an observation came about. Only a strong one may unlock a required path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "every field is one of two")]
pub enum Provenance {
    /// A probe step was run for it: strong.
    ProbeStep { detail: ProbeDetail, enforcement_grade: EnforcementGrade },
    /// It was used, and that worked or not: strong.
    AttemptedUse { detail: AttemptDetail, enforcement_grade: EnforcementGrade },
    /// Somebody says so: weak.
    ManualClaim { detail: ClaimDetail, enforcement_grade: EnforcementGrade },
}

impl Provenance {
    /// How strong the observation says it is.
    #[must_use]
    pub const fn grade(&self) -> EnforcementGrade {
        match self {
            Self::ProbeStep { enforcement_grade, .. }
            | Self::AttemptedUse { enforcement_grade, .. }
            | Self::ManualClaim { enforcement_grade, .. } => *enforcement_grade,
        }
    }

    /// How strong an observation of this kind is.
    #[must_use]
    pub const fn deserved_grade(&self) -> EnforcementGrade {
        match self {
            Self::ProbeStep { .. } | Self::AttemptedUse { .. } => EnforcementGrade::Strong,
            Self::ManualClaim { .. } => EnforcementGrade::Weak,
        }
    }
}

/// How strong an observation is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EnforcementGrade {
    Weak,
    Strong,
}

/// A probe step's result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ProbeDetail {
    pub probe_step_id: String,
    pub probe_template_id: String,
    pub result: ProbeResult,
}

/// Whether something worked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ProbeResult {
    Success,
    Failure,
}

/// A use's result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttemptDetail {
    /// Where it was used.
    pub attempt_context: AttemptContext,
    /// Why it failed; there exactly when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
    /// Whether it worked.
    pub result: ProbeResult,
}

/// Where a capability was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum AttemptContext {
    WorkflowStep,
    SystemProbe,
}

/// Why a use failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FailureCode {
    ToolMissing,
    ToolError,
    PolicyBlocked,
    Unknown,
}

/// A claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ClaimDetail {
    pub claim: Claim,
    pub claimed_by: Claimant,
}

/// What is claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Claim {
    Available,
    Unavailable,
}

/// Who claims it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Claimant {
    Agent,
    User,
}

/// Something that was needed is missing, and the run says so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GapRecorded {
    /// What shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence_refs: Vec<EvidenceRef>,
    /// The gap's own id.
    pub gap_id: GapId,
    /// What is missing.
    pub reason: GapReason,
    /// Whether this closes an earlier gap.
    pub resolution: Resolution,
    /// How bad it is.
    pub severity: Severity,
    /// In words.
    pub summary: String,
}

/// Whether a gap record opens a gap or closes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Resolution {
    /// It is open.
    Unresolved {},
    /// It closes an earlier one.
    Resolves {
        /// The earlier one.
        resolves_gap_id: GapId,
    },
}

/// What shows a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "the names say it")]
pub enum EvidenceRef {
    Event { event_id: EventId },
    Output { output_id: OutputId },
}

/// The work left the procedure on purpose.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DivergenceRecorded {
    /// The divergence's own id.
    pub divergence_id: DivergenceId,
    /// Why.
    pub reason: DivergenceReason,
    /// The step it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_step_id: Option<Slug>,
    /// In words.
    pub summary: String,
}

/// Why work leaves a procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DivergenceReason {
    MissingUserContext,
    CapabilityUnavailable,
    EfficiencySkip,
    SafetyStop,
    PolicyConstraint,
}

/// Why the engine went where it went. Never needed for correctness.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionTraceAppended {
    /// The decisions, in order.
    pub entries: Vec<TraceEntry>,
    /// The trace's own id.
    pub trace_id: TraceId,
}

impl DecisionTraceAppended {
    /// A trace, cut to its budgets: a summary ends with the marker where it was cut, and the
    /// last decisions are left out when all of them do not fit. None without decisions.
    #[must_use]
    pub fn new(trace_id: TraceId, mut entries: Vec<TraceEntry>) -> Option<Self> {
        entries.truncate(limits::TRACE_ENTRIES);
        for entry in &mut entries {
            entry.refs.truncate(limits::TRACE_REFS);
        }
        let mut room = limits::TRACE_SUMMARY;
        while !entries.is_empty() {
            for entry in &mut entries {
                entry.summary = text::truncate(&entry.summary, room);
            }
            let trace = Self { entries, trace_id };
            if canonical::to_vec(&trace).is_ok_and(|bytes| bytes.len() <= limits::TRACE) {
                return Some(trace);
            }
            Self { entries, .. } = trace;
            if room > SUMMARY_MIN {
                room /= 2;
            } else {
                entries.pop();
            }
        }
        None
    }
}

/// What is left of a summary before decisions are left out.
const SUMMARY_MIN: usize = 64;

/// One decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceEntry {
    /// What was decided.
    pub kind: TraceKind,
    /// What it was about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<TraceRef>,
    /// In words.
    pub summary: String,
}

/// The kinds of decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum TraceKind {
    SelectedNextStep,
    EvaluatedCondition,
    EnteredLoop,
    ExitedLoop,
    DetectedNonTipAdvance,
}

/// What a decision was about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TraceRef {
    StepId { step_id: Slug },
    LoopId { loop_id: Slug },
    ConditionId { condition_id: Slug },
    Iteration { value: u32 },
}

/// The run's context was given or changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextSet {
    /// What was given: merged over what was there, `null` removes a key.
    pub context: StrictValue,
    /// The change's own id.
    pub context_id: ContextId,
    /// The node at which a later change was made; a sibling branch does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// Where it came from.
    pub source: ContextSource,
}

/// Where context comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ContextSource {
    Initial,
    AgentDelta,
    Merge,
}
