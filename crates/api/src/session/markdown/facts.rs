//! What was recorded at a node beside its outputs, as lists.

use std::fmt::Write as _;

use cairn_core::event::guided::{DecisionTraceAppended, Provenance, TraceRef};

use super::{Told, code, html, inline, story};

/// Writes everything that a node tells beside its outputs.
pub(super) fn write(out: &mut String, told: &Told<'_>) {
    let facts = facts(told);
    if !facts.is_empty() {
        let _ = writeln!(out, "\n{}", facts.join("\n"));
    }
    for trace in &told.traces {
        write_trace(out, trace);
    }
}

fn facts(told: &Told<'_>) -> Vec<String> {
    let mut facts = Vec::new();
    for blocker in told.blockers {
        let fix = blocker.suggested_fix.as_deref().map(|fix| format!(" Fix: {}", inline(fix)));
        let (message, fix) = (inline(&blocker.message), fix.unwrap_or_default());
        facts.push(format!("- **Blocked** ({}): {message}{fix}", story::name(&blocker.code)));
    }
    for (gap, open) in &told.gaps {
        let state = if *open { "open" } else { "closed" };
        let (severity, why) = (story::name(&gap.severity), story::names(&gap.reason));
        let summary = inline(&gap.summary);
        facts.push(format!("- **Gap**, {severity}, {state} ({}): {summary}", code(&why)));
    }
    for left in &told.divergences {
        let step = left.related_step_id.as_ref().map(|step| format!(" at {}", code(step.as_str())));
        let (reason, summary) = (story::name(&left.reason), inline(&left.summary));
        let step = step.unwrap_or_default();
        facts.push(format!("- **Left the procedure**{step} ({}): {summary}", code(&reason)));
    }
    for seen in &told.capabilities {
        let how = match &seen.provenance {
            Provenance::ProbeStep { .. } => "by a probe",
            Provenance::AttemptedUse { .. } => "by using it",
            Provenance::ManualClaim { .. } => "as somebody claims",
        };
        let (what, status) = (story::name(&seen.capability), story::name(&seen.status));
        let grade = story::name(&seen.provenance.deserved_grade());
        facts.push(format!("- **Capability** {}: {status}, {how} ({grade})", code(&what)));
    }
    if let Some(preferences) = told.preferences {
        let autonomy = code(&story::name(&preferences.autonomy));
        let risk = code(&story::name(&preferences.risk_policy));
        facts.push(format!("- **Preferences** changed: autonomy {autonomy}, risk policy {risk}"));
    }
    facts
}

fn write_trace(out: &mut String, trace: &DecisionTraceAppended) {
    let count = trace.entries.len();
    let decisions = if count == 1 { "decision" } else { "decisions" };
    let first = trace.entries.first().map_or("", |entry| entry.summary.as_str());
    let _ = writeln!(
        out,
        "\n<details><summary>Why: {count} {decisions}, first {}</summary>\n",
        html(&super::first_line(first))
    );
    for entry in &trace.entries {
        let about: Vec<String> = entry.refs.iter().map(reference).collect();
        let about =
            if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        let (kind, summary) = (story::name(&entry.kind), inline(&entry.summary));
        let _ = writeln!(out, "- {}: {summary}{about}", code(&kind));
    }
    let _ = writeln!(out, "\n</details>");
}

fn reference(about: &TraceRef) -> String {
    match about {
        TraceRef::StepId { step_id } => format!("step {}", code(step_id.as_str())),
        TraceRef::LoopId { loop_id } => format!("loop {}", code(loop_id.as_str())),
        TraceRef::ConditionId { condition_id } => {
            format!("condition {}", code(condition_id.as_str()))
        }
        TraceRef::Iteration { value } => format!("turn {value}"),
    }
}
