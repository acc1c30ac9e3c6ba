//! What stands beside a step.

use std::fmt::Write as _;

use cairn_api::guided::answer::{Answer, Assessment, Assessments, Kind, StepContext, Warning};
use cairn_core::text::inert;
use cairn_engine::guided::answer::{Lifecycle, Reference};

use super::standing;

/// Everything beside the step and the references, in a fixed order.
pub(super) fn all(data: &Answer) -> Vec<String> {
    let parts = [
        standing::beside(data),
        warnings(data),
        data.step_context.as_ref().map(step_context),
        preferences(data),
        recap(data),
        branches(data),
    ];
    parts.into_iter().flatten().collect()
}

/// The workflow's documents: all about them at the start, names and paths when coming back.
pub(super) fn references(lifecycle: Lifecycle, references: &[Reference]) -> Option<String> {
    if references.is_empty() || lifecycle == Lifecycle::Advance {
        return None;
    }
    let mut text = String::from("References of this workflow:");
    for reference in references {
        let _ = write!(text, "\n- {}: {}", reference.title, reference.path);
        if !reference.resolved {
            text.push_str(" [unresolved]");
        }
        if lifecycle == Lifecycle::Start {
            let follow =
                if reference.authoritative { "follow it strictly" } else { "for guidance" };
            let _ = write!(text, "\n  {} ({follow})", reference.purpose);
        }
    }
    Some(text)
}

fn warnings(data: &Answer) -> Option<String> {
    let line = |warning: &Warning| format!("\n- {}: {}", warning.code, warning.message);
    // What was not recorded stands first in the answer.
    let told = data.warnings.iter().filter(|warning| warning.code != super::NOT_RECORDED);
    let lines: String = told.map(line).collect();
    let title = match data.kind {
        Kind::Ok if !data.is_complete => "warnings; they do not stop the run:",
        Kind::Ok | Kind::Blocked => "warnings:",
    };
    let gap = data.warnings.iter().any(|warning| warning.code == "gap_recorded");
    let close = match gap && !data.is_complete {
        true => {
            "\nTo close a gap, send an artifact with any step: {\"kind\":\"wr.gap_resolution\",\"gapId\":\"<gapId>\",\"evidence\":\"<what shows it>\"}"
        }
        false => "",
    };
    (!lines.is_empty()).then(|| format!("{title}{lines}{close}"))
}

fn step_context(facts: &StepContext) -> String {
    let accepted = match &facts.assessments {
        Assessments::One(one) => std::slice::from_ref(&**one),
        Assessments::Several(several) => several.as_slice(),
    };
    let mut text = String::from("About the step just done:");
    accepted.iter().for_each(|found| assessment(&mut text, found));
    text
}

fn assessment(text: &mut String, found: &Assessment) {
    let _ = write!(text, "\n- assessment {} was accepted:", found.assessment_id);
    for dimension in &found.dimensions {
        let _ = write!(text, " {}={}", dimension.dimension_id, dimension.level);
    }
    for note in &found.normalization_notes {
        let _ = write!(text, "\n  note: {note}");
    }
}

fn preferences(data: &Answer) -> Option<String> {
    let held = data.preferences?;
    let (autonomy, risk) = (held.autonomy.name(), held.risk_policy.name());
    Some(format!("preferences: autonomy {autonomy}, riskPolicy {risk}."))
}

fn recap(data: &Answer) -> Option<String> {
    // What was left out is told in the text itself.
    let recap = data.recap.as_ref()?;
    // It was written down by whoever did the steps, and must not pass for what is said here.
    let quoted: Vec<String> = recap.text.lines().map(|line| format!("> {}", inert(line))).collect();
    let quoted = quoted.join("\n");
    Some(format!("recap: what happened so far, as it was recorded then:\n\n{quoted}"))
}

fn branches(data: &Answer) -> Option<String> {
    if data.branches.is_empty() {
        return None;
    }
    let mut text = match data.is_complete {
        true => {
            "branches: this run has other branches. To see one, call continue_workflow with its \
             continueToken alone."
        }
        false => {
            "branches: the run has continued from this step before. To continue one of these \
             branches instead of starting another, use its continueToken."
        }
    }
    .to_owned();
    for branch in &data.branches {
        let mark = if branch.preferred { ", the newest" } else { "" };
        let stands = match (&branch.pending_step_id, branch.is_complete) {
            (_, true) => "complete".to_owned(),
            (Some(at), false) => format!("at `{at}`"),
            (None, false) => "under way".to_owned(),
        };
        let _ = write!(
            text,
            "\n- {stands}{mark}, continueToken \"{}\"\n  {}",
            branch.continue_token,
            branch.summary.replace('\n', "\n  ")
        );
    }
    Some(text)
}
