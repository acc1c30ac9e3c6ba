//! Artifacts that mean something to the engine: loops, capabilities, divergence, users.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Asked, Closed, Judged, Problem, Submission, at_step, kind, kinds, malformed};
use crate::event::guided::{
    AttemptContext, AttemptDetail, Capability, CapabilityStatus, Claim as Said, ClaimDetail,
    Claimant, DivergenceReason, EnforcementGrade, FailureCode, ProbeDetail, ProbeResult,
    Provenance,
};
use crate::guided::render::mode::dependencies;
use crate::guided::{probe, walk};
use crate::id::GapId;
use crate::plan::{Loop, Prompt, Repeat};
use crate::reason::{Pointer, Reason, UserOnlyDependency};
use crate::snapshot::{LoopDecision, Verdict};
use crate::text::Slug;

/// The contract of loop decisions.
const LOOP_CONTRACT: &str = "wr.contracts.loop_control";

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
            Some(kinds::LOOP_CONTROL) => match decision(asked, artifact) {
                Ok(decision) => judged.decisions.push(decision),
                // Where the contract stands, it has told.
                Err(_) if is_under(asked, LOOP_CONTRACT) => {}
                Err(fault) => judged.problems.push(malformed(
                    LOOP_CONTRACT,
                    format!("the loop decision: {fault}"),
                    "give `decision` (continue | stop) and the loop's own id as `loopId`, or leave the artifact out".to_owned(),
                )),
            },
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
            Some(kinds::GAP_RESOLUTION) => match closed(asked, artifact) {
                Ok(closed) => judged.closed.push(closed),
                Err(fault) => judged.problems.push(malformed(
                    "wr.contracts.gap_resolution",
                    fault,
                    "give the `gapId` of an open gap and in `evidence` what shows that it is closed, or leave the artifact out".to_owned(),
                )),
            },
            Some(kinds::USER_DEPENDENCY) => judged.problems.push(user(asked, prompt, artifact)),
            _ => {}
        }
    }
}

/// Whether a step's answer is held to a contract.
fn is_under(asked: Asked<'_>, contract: &str) -> bool {
    asked.step.output_contracts.iter().any(|wanted| wanted.r#ref == contract)
}

fn text<'a>(artifact: &'a Value, name: &str) -> Option<&'a str> {
    artifact.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}

fn word<T: DeserializeOwned>(artifact: &Value, name: &str) -> Option<T> {
    T::deserialize(artifact.get(name)?).ok()
}

/// A decision that names no loop is about the one that its step stands in, so that no other
/// loop takes it; outside of all loops it is for the next one that asks.
fn decision(asked: Asked<'_>, artifact: &Value) -> Result<LoopDecision, String> {
    let decision: Verdict =
        word(artifact, "decision").ok_or("`decision` is not one of continue, stop")?;
    let loops = &asked.plan.loops;
    let decided = |found: &&Loop| matches!(found.repeat, Repeat::UntilDecision { .. });
    let named = text(artifact, "loopId").map(str::to_owned);
    if let Some(name) = &named
        && !loops.iter().filter(decided).any(|found| walk::names(found).any(|n| n == name))
    {
        return Err(format!("no loop that artifacts decide is called `{name}`"));
    }
    let around = asked.loop_stack.iter().rev();
    let mut around = around.filter_map(|frame| asked.plan.find_loop(&frame.loop_id));
    let own = around.find(decided);
    Ok(LoopDecision { decision, loop_id: named.or_else(|| Some(own?.id.to_string())) })
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
    // What a probe was not sent to find out is no more than a claim.
    let about = probe::of(asked.step).is_none_or(|probed| probed == capability);
    let probed = probe::is_probe(asked.step) && about;
    let provenance = match (probed, text(artifact, "detail")) {
        (true, _) => Provenance::ProbeStep {
            detail: ProbeDetail {
                probe_step_id: asked.step.id.to_string(),
                probe_template_id: probe::TEMPLATE.to_owned(),
                result,
            },
            enforcement_grade: EnforcementGrade::Strong,
        },
        (false, Some(_)) => Provenance::AttemptedUse {
            detail: AttemptDetail {
                attempt_context: AttemptContext::WorkflowStep,
                failure_code: (!works).then_some(FailureCode::Unknown),
                result,
            },
            enforcement_grade: EnforcementGrade::Strong,
        },
        (false, None) => Provenance::ManualClaim {
            detail: ClaimDetail {
                claim: if works { Said::Available } else { Said::Unavailable },
                claimed_by: Claimant::Agent,
            },
            enforcement_grade: EnforcementGrade::Weak,
        },
    };
    Some(Claim { capability, status, provenance })
}

fn divergence(artifact: &Value) -> Option<Divergence> {
    Some(Divergence {
        reason: word(artifact, "reason")?,
        summary: text(artifact, "summary")?.to_owned(),
        related_step_id: text(artifact, "relatedStepId").and_then(|id| id.parse().ok()),
    })
}

/// A gap that is open here, with what shows that it no longer is.
fn closed(asked: Asked<'_>, artifact: &Value) -> Result<Closed, String> {
    let named = text(artifact, "gapId").unwrap_or_default();
    let gap = named.parse::<GapId>().ok();
    let open = asked.gaps.iter().find(|open| Some(open.id) == gap);
    let open = open.ok_or_else(|| format!("no open gap of this run has the id `{named}`"))?;
    let evidence = text(artifact, "evidence").ok_or("the gap is closed without `evidence`")?;
    Ok(Closed {
        gap: open.id,
        reason: open.reason,
        evidence: evidence.to_owned(),
        artifact: artifact.clone(),
    })
}

/// What only the user can provide stops the step; a choice does only where the plan says so.
fn user(asked: Asked<'_>, prompt: &Prompt, artifact: &Value) -> Problem {
    let dependency: Option<UserOnlyDependency> = word(artifact, "dependency");
    let (Some(dependency), Some(summary)) = (dependency, text(artifact, "summary")) else {
        return malformed(
            "wr.contracts.user_dependency",
            "what is needed of the user is not complete".to_owned(),
            format!("give `dependency` ({}) and `summary`", dependencies(prompt).join(" | ")),
        );
    };
    if dependency == UserOnlyDependency::NeedsUserChoice && !is_users(prompt, artifact) {
        return malformed(
            "wr.contracts.user_dependency",
            "the workflow leaves this choice to you".to_owned(),
            "choose, write down the assumption in your notes, and leave this artifact out"
                .to_owned(),
        );
    }
    let key = text(artifact, "key").and_then(|key| key.parse::<Slug>().ok());
    Problem {
        reason: Reason::UserOnly(dependency),
        pointer: key.map_or_else(|| at_step(&asked.step.id), |key| Pointer::ContextKey { key }),
        message: format!("only the user can provide this: {summary}"),
        fix: Some(
            "ask the user; once you have it, send the output again without this artifact".into(),
        ),
    }
}

/// Whether the plan keeps a choice of this kind for the user.
fn is_users(prompt: &Prompt, artifact: &Value) -> bool {
    let kind = text(artifact, "choiceKind");
    prompt.non_assumable_choices.iter().any(|kept| kind == Some(kept.name()))
}
