//! Traces: why the engine went where it went.

use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::event::limits;
use crate::id::TraceId;
use crate::text::{self, Slug};

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
    /// decisions that matter least are left out when all of them do not fit. None without
    /// decisions.
    #[must_use]
    pub fn new(trace_id: TraceId, entries: Vec<TraceEntry>) -> Option<Self> {
        let mut entries = most(entries, limits::TRACE_ENTRIES);
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
                let fewer = entries.len() - 1;
                entries = most(entries, fewer);
            }
        }
        None
    }
}

/// So many of the decisions, in their order: which step was chosen and that a run was rewound
/// before loops, loops before conditions, and later ones before earlier ones.
fn most(entries: Vec<TraceEntry>, max: usize) -> Vec<TraceEntry> {
    let matters = |kind: TraceKind| match kind {
        TraceKind::SelectedNextStep | TraceKind::DetectedNonTipAdvance => 0,
        TraceKind::EnteredLoop | TraceKind::ExitedLoop => 1,
        TraceKind::EvaluatedCondition => 2,
    };
    let mut ranked: Vec<(usize, TraceEntry)> = entries.into_iter().enumerate().collect();
    ranked.sort_by_key(|(place, entry)| (matters(entry.kind), std::cmp::Reverse(*place)));
    ranked.truncate(max);
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().map(|(_, entry)| entry).collect()
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
