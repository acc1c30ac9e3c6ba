//! What the preferences ask of an agent, and how it says what stands in its way.

use serde_json::json;

use crate::event::guided::{Autonomy, Preferences, RiskPolicy};
use crate::guided::judge::kinds;
use crate::plan::{ConfirmedBy, Plan, Prompt, Step};
use crate::reason::UserOnlyDependency;

/// What the preferences mean for the work, and whose wish they are.
pub(super) fn all(plan: &Plan, now: Preferences) -> String {
    let autonomy = match now.autonomy {
        Autonomy::Guided => {
            "Mode `guided`: the user is available. Ask them what a step leaves open, and before \
             anything that cannot be undone. What is missing blocks the run until you supply it."
        }
        Autonomy::FullAutoStopOnUserDeps => {
            "Mode `full_auto_stop_on_user_deps`: work without asking. Where a step would ask the \
             user, find the answer yourself or decide, and write each assumption in the notes. \
             Stop only for what only the user can provide."
        }
        Autonomy::FullAutoNeverStop => {
            "Mode `full_auto_never_stop`: nobody can be asked. Decide where a step would ask the \
             user, and write every assumption and everything you skipped in the notes. Never \
             wait: what is missing is recorded as a gap, and the run continues."
        }
    };
    let risk = match now.risk_policy {
        RiskPolicy::Conservative => {
            "Risk `conservative`: of two correct approaches choose the one that can be undone, and \
             verify a claim before you rely on it."
        }
        RiskPolicy::Balanced => {
            "Risk `balanced`: choose the usual approach, verify what the result depends on, and \
             name in the notes what you did not verify."
        }
        RiskPolicy::Aggressive => {
            "Risk `aggressive`: choose the fastest correct approach, verify only what the step \
             asks for, and name in the notes what you left unverified."
        }
    };
    let mut text = format!("{autonomy}\n{risk}");
    let wanted = &plan.recommendations;
    let autonomy = wanted.autonomy.filter(|wanted| *wanted != now.autonomy);
    let policy = wanted.risk_policy.filter(|wanted| *wanted != now.risk_policy);
    let named: Vec<String> = autonomy
        .map(|wanted| format!("`{}`", wanted.name()))
        .into_iter()
        .chain(policy.map(|wanted| format!("`{}`", wanted.name())))
        .collect();
    if !named.is_empty() {
        let named = named.join(" and ");
        text.push_str(&format!(
            "\nThe workflow recommends {named}; the settings above are in effect."
        ));
    }
    text
}

/// What becomes of a step that somebody should agree to, where the mode changes that.
pub(super) const fn confirmation(by: Option<ConfirmedBy>, autonomy: Autonomy) -> &'static str {
    match (by, autonomy) {
        (Some(ConfirmedBy::HumanApproval), Autonomy::FullAutoNeverStop) => {
            "This step needs a person's approval, and nobody can be asked: continue without it. \
             The missing approval is recorded as a gap."
        }
        (
            Some(ConfirmedBy::User),
            Autonomy::FullAutoStopOnUserDeps | Autonomy::FullAutoNeverStop,
        ) => {
            "The user would confirm this step. In this mode decide yourself, and say in the notes \
             what you would have asked."
        }
        _ => "",
    }
}

/// How an agent says what stands in its way, with examples for the step at hand.
pub(super) fn disclosure(step: &Step, prompt: &Prompt) -> String {
    let summary = "<what, and what for>";
    let needed = match prompt.non_assumable_choices.first() {
        None => json!({
            "kind": kinds::USER_DEPENDENCY,
            "dependency": UserOnlyDependency::NeedsUserArtifact,
            "summary": summary,
        }),
        Some(choice) => json!({
            "kind": kinds::USER_DEPENDENCY,
            "dependency": UserOnlyDependency::NeedsUserChoice,
            "choiceKind": choice.name(),
            "summary": summary,
        }),
    };
    let left = json!({
        "kind": kinds::DIVERGENCE,
        "reason": "efficiency_skip",
        "summary": "<what you did instead>",
        "relatedStepId": step.id.as_str(),
    });
    let allowed = dependencies(prompt).join(", ");
    format!(
        "If something keeps you from doing a step as written, say so in `output.artifacts`:\n\
         - only the user can provide it: {needed} (dependency: {allowed})\n\
         - you deviate from the step on purpose: {left} (reason: missing_user_context, \
         capability_unavailable, efficiency_skip, safety_stop, policy_constraint)"
    )
}

/// What an agent may need of the user in a step. A choice is the user's where the step says so.
pub(in crate::guided) fn dependencies(prompt: &Prompt) -> Vec<&'static str> {
    let all = [
        "needs_user_secret_or_token",
        "needs_user_account_access",
        "needs_user_artifact",
        "needs_user_choice",
        "needs_user_approval",
        "needs_user_environment_action",
    ];
    let choices = !prompt.non_assumable_choices.is_empty();
    all.into_iter().filter(|name| choices || *name != "needs_user_choice").collect()
}
