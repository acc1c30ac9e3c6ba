//! Artifacts that mean something to the engine: loops, capabilities, divergence, users.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Asked, Judged, Problem, Submission, at_step, kind, kinds, malformed};
use crate::event::guided::{
    AttemptContext, AttemptDetail, Capability, CapabilityStatus, Claim as Said, ClaimDetail,
    Claimant, DivergenceReason, EnforcementGrade, FailureCode, ProbeDetail, ProbeResult,
    Provenance,
};
use crate::plan::{Prompt, Repeat};
use crate::reason::{Pointer, Reason, UserOnlyDependency};
use crate::snapshot::{LoopDecision, Verdict};
use crate::text::Slug;

/// The template of steps that find out about a capability.
const PROBE_TEMPLATE: &str = "wr.templates.capability_probe";

/// How the ids of the probes begin that the compiler puts in.
pub(in crate::guided) const PROBE_PREFIX: &str = "wr_probe_";

/// What was said about a capability, and how it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Claim {
    pub capability: Capability,
    pub status: CapabilityStatus,
    pub provenance: Provenance,
}

/// Where the agent left the procedure.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Divergence {
    pub reason: DivergenceReason,
    pub summary: String,
    pub related_step_id: Option<Slug>,
}

/// Reads what the artifacts mean.
pub(super) fn read(asked: Asked<'_>, prompt: &Prompt, given: Submission<'_>, judged: &mut Judged) {
    for artifact in given.artifacts {
        match kind(artifact) {
            Some(kinds::LOOP_CONTROL) => judged.decisions.extend(decision(asked, artifact)),
            Some(kinds::CAPABILITY) => match claim(asked, artifact) {
                Some(claim) => judged.claims.push(claim),
                None => judged.problems.push(malformed(
                    "wr.contracts.capability_observation",
                    "the capability observation is not complete".to_owned(),
                    "give `capability` (delegation | web_browsing) and `status` (available | unavailable)".to_owned(),
                )),
            },
            Some(kinds::DIVERGENCE) => match divergence(artifact) {
                Some(divergence) => judged.divergences.push(divergence),
                None => judged.problems.push(malformed(
                    "wr.contracts.workflow_divergence",
                    "the divergence is not complete".to_owned(),
                    "give `reason` (missing_user_context | capability_unavailable | efficiency_skip | safety_stop | policy_constraint) and `summary`".to_owned(),
                )),
            },
            Some(kinds::USER_DEPENDENCY) => judged.problems.push(user(asked, prompt, artifact)),
            _ => {}
        }
    }
}

fn text<'a>(artifact: &'a Value, name: &str) -> Option<&'a str> {
    artifact.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}

fn word<T: DeserializeOwned>(artifact: &Value, name: &str) -> Option<T> {
    T::deserialize(artifact.get(name)?).ok()
}

/// A decision that names no loop is about the one that its step stands in, so that no other
/// loop takes it; outside of all loops it is for the next one that asks.
fn decision(asked: Asked<'_>, artifact: &Value) -> Option<LoopDecision> {
    let decision: Verdict = word(artifact, "decision")?;
    let loops = &asked.plan.loops;
    let around = asked.loop_stack.iter().rev();
    let mut around = around.filter_map(|frame| loops.iter().find(|l| l.id == frame.loop_id));
    let own = around.find(|found| matches!(found.repeat, Repeat::UntilDecision { .. }));
    let named = text(artifact, "loopId").map(str::to_owned);
    Some(LoopDecision { decision, loop_id: named.or_else(|| Some(own?.id.to_string())) })
}

/// A probe step's word is strong, and so is that of a use which is told; the rest is a claim.
fn claim(asked: Asked<'_>, artifact: &Value) -> Option<Claim> {
    let capability: Capability = word(artifact, "capability")?;
    let status: CapabilityStatus = word(artifact, "status")?;
    let works = match status {
        CapabilityStatus::Available => true,
        CapabilityStatus::Unavailable => false,
        CapabilityStatus::Unknown => return None,
    };
    let result = if works { ProbeResult::Success } else { ProbeResult::Failure };
    let probe = asked.step.origin.id.clone().filter(|id| id == PROBE_TEMPLATE);
    let probe = probe.filter(|_| is_about(&asked.step.id, artifact));
    let provenance = match (probe, text(artifact, "detail")) {
        (Some(probe_template_id), _) => Provenance::ProbeStep {
            detail: ProbeDetail {
                probe_step_id: asked.step.id.to_string(),
                probe_template_id,
                result,
            },
            enforcement_grade: EnforcementGrade::Strong,
        },
        (None, Some(_)) => Provenance::AttemptedUse {
            detail: AttemptDetail {
                attempt_context: AttemptContext::WorkflowStep,
                failure_code: (!works).then_some(FailureCode::Unknown),
                result,
            },
            enforcement_grade: EnforcementGrade::Strong,
        },
        (None, None) => Provenance::ManualClaim {
            detail: ClaimDetail {
                claim: if works { Said::Available } else { Said::Unavailable },
                claimed_by: Claimant::Agent,
            },
            enforcement_grade: EnforcementGrade::Weak,
        },
    };
    Some(Claim { capability, status, provenance })
}

/// Whether a probe is one for the capability that was observed: what it was not sent to find
/// out is no more than a claim.
fn is_about(probe: &Slug, artifact: &Value) -> bool {
    let probed = probe.as_str().strip_prefix(PROBE_PREFIX);
    probed.is_none_or(|probed| text(artifact, "capability") == Some(probed))
}

fn divergence(artifact: &Value) -> Option<Divergence> {
    Some(Divergence {
        reason: word(artifact, "reason")?,
        summary: text(artifact, "summary")?.to_owned(),
        related_step_id: text(artifact, "relatedStepId").and_then(|id| id.parse().ok()),
    })
}

/// What only the user can provide stops the step; a choice does only where the plan says so.
fn user(asked: Asked<'_>, prompt: &Prompt, artifact: &Value) -> Problem {
    let dependency: Option<UserOnlyDependency> = word(artifact, "dependency");
    let (Some(dependency), Some(summary)) = (dependency, text(artifact, "summary")) else {
        return malformed(
            "wr.contracts.user_dependency",
            "what is needed of the user is not complete".to_owned(),
            "give `dependency` (needs_user_secret_or_token | needs_user_account_access | needs_user_artifact | needs_user_choice | needs_user_approval | needs_user_environment_action) and `summary`".to_owned(),
        );
    };
    if dependency == UserOnlyDependency::NeedsUserChoice && !is_users(prompt, artifact) {
        return malformed(
            "wr.contracts.user_dependency",
            "the workflow leaves this choice to you".to_owned(),
            "choose, and write down the assumption in your notes".to_owned(),
        );
    }
    let key = text(artifact, "key").and_then(|key| key.parse::<Slug>().ok());
    Problem {
        reason: Reason::UserOnly(dependency),
        pointer: key.map_or_else(|| at_step(&asked.step.id), |key| Pointer::ContextKey { key }),
        message: format!("only the user can provide this: {summary}"),
        fix: Some(
            "ask the user; when it is there, acknowledge the step without this artifact".into(),
        ),
    }
}

/// Whether the plan keeps a choice of this kind for the user.
fn is_users(prompt: &Prompt, artifact: &Value) -> bool {
    let kind = text(artifact, "choiceKind");
    prompt.non_assumable_choices.iter().any(|kept| kind == Some(kept.name()))
}
