//! What is made of an agent's answer: what it brings, and what is wrong with it.
//!
//! A problem is a [`Reason`] with words. Whether it stops the run is for the mode to say,
//! so nothing here looks at the mode.

mod assess;
mod checks;
mod meaning;

pub use assess::{Accepted, AcceptedDimension};
pub use meaning::{Claim, Divergence};

use serde_json::Value;

use super::condition::lookup;
use super::decide::Role;
use super::render::needs_notes;
use super::scene::Scene;
use super::{keys, walk};
use crate::event::limits;
use crate::id::GapId;
use crate::plan::{Action, Contract, OutputContract, Plan, Prompt, Repeat, Step};
use crate::projection::gaps::Gap;
use crate::reason::{ContractViolation, GapReason, Pointer, Reason};
use crate::schema;
use crate::snapshot::{LoopDecision, LoopFrame};
use crate::text::{Slug, truncate};

/// What an agent answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Submission<'a> {
    /// What it did, as Markdown.
    pub notes: Option<&'a str>,
    /// Structured results, each with its kind.
    pub artifacts: &'a [Value],
}

/// Where the step stands that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The step.
    pub step: &'a Step,
    /// The loops around it.
    pub loop_stack: &'a [LoopFrame],
    /// The context with the turns of those loops.
    pub scene: &'a Scene<'a>,
    /// The gaps that are open there.
    pub gaps: &'a [Gap],
}

/// What is made of an answer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Judged {
    /// The artifacts to keep as they were sent.
    pub artifacts: Vec<Value>,
    /// The assessments that were accepted, in their normal form.
    pub accepted: Vec<Value>,
    /// What was decided about loops.
    pub decisions: Vec<LoopDecision>,
    /// What was said about capabilities.
    pub claims: Vec<Claim>,
    /// Where the agent left the procedure.
    pub divergences: Vec<Divergence>,
    /// What is wrong or missing.
    pub problems: Vec<Problem>,
    /// What stays as it is since the user accepts it: a gap, and no reason to stop.
    pub accepted_by_user: Vec<Problem>,
    /// The gaps that were made up for.
    pub closed: Vec<Closed>,
}

/// A gap that was made up for, and what shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Closed {
    /// The gap.
    pub gap: GapId,
    /// What was missing.
    pub reason: GapReason,
    /// What shows that it is there now.
    pub evidence: String,
    /// The artifact that says so.
    pub artifact: Value,
}

impl Judged {
    /// Everything to keep, with what it is to the engine.
    pub(super) fn kept(&self) -> Vec<(Role, Value)> {
        let accepted = self.accepted.iter().map(|artifact| (Role::Accepted, artifact.clone()));
        let sent = self.artifacts.iter().map(|artifact| (Role::Sent, artifact.clone()));
        accepted.chain(sent).collect()
    }
}

/// One thing that is wrong or missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What it is.
    pub reason: Reason,
    /// What it is about.
    pub pointer: Pointer,
    /// In words.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// The kinds of artifacts that mean something to the engine.
pub mod kinds {
    /// A judgement.
    pub const ASSESSMENT: &str = "wr.assessment";
    /// Whether a capability is there.
    pub const CAPABILITY: &str = "wr.capability_observation";
    /// A gap that was made up for.
    pub const GAP_RESOLUTION: &str = "wr.gap_resolution";
    /// Where the procedure was left.
    pub const DIVERGENCE: &str = "wr.workflow_divergence";
    /// The outcome of a review.
    pub const REVIEW_VERDICT: &str = "wr.review_verdict";
    /// Whether a loop goes round again.
    pub const LOOP_CONTROL: &str = "wr.loop_control";
    /// What only the user can provide.
    pub const USER_DEPENDENCY: &str = "wr.user_dependency";
}

/// Judges an answer.
#[must_use]
pub fn judge(asked: Asked<'_>, given: Submission<'_>) -> Judged {
    let mut judged = Judged { artifacts: given.artifacts.to_vec(), ..Judged::default() };
    let Action::Prompt(prompt) = &asked.step.action else { return judged };
    notes(asked, prompt, given, &mut judged.problems);
    context(asked, &mut judged.problems);
    contracts(asked, given, &mut judged.problems);
    assess::judge(asked, prompt, &mut judged);
    meaning::read(asked, prompt, given, &mut judged);
    judged
}

/// The kind that an artifact names.
#[must_use]
pub fn kind(artifact: &Value) -> Option<&str> {
    artifact.get("kind").and_then(Value::as_str)
}

fn notes(asked: Asked<'_>, prompt: &Prompt, given: Submission<'_>, problems: &mut Vec<Problem>) {
    let notes = given.notes.map(str::trim).filter(|notes| !notes.is_empty());
    // What is recorded is what counts: a check must not pass on an end that is cut off.
    let is_cut = given.notes.is_some_and(|notes| notes.len() > limits::NOTES);
    let notes = notes.map(|notes| truncate(notes, limits::NOTES));
    let notes = notes.as_deref();
    let at = |reason, message, fix| Problem {
        reason: Reason::Contract(reason),
        pointer: Pointer::WorkflowStep { step_id: asked.step.id.clone() },
        message,
        fix: Some(fix),
    };
    // A contract is the better check, so the notes of a step that has one are not looked into.
    let check = prompt.check.as_ref().filter(|_| asked.step.output_contracts.is_empty());
    match (notes, check) {
        (None, _) if needs_notes(asked.step, prompt) => problems.push(at(
            ContractViolation::MissingRequiredOutput,
            format!("the answer to `{}` has no notes", asked.step.id),
            "give notes: what you did in this step, what you produced, what is open".to_owned(),
        )),
        (notes, Some(check)) => {
            let mut faults = checks::faults(check, notes.unwrap_or_default(), asked);
            if is_cut && !faults.is_empty() {
                faults.insert(
                    0,
                    format!(
                        "they are longer than {} bytes, and only what is recorded is checked: \
                         shorten them",
                        limits::NOTES
                    ),
                );
            }
            if !faults.is_empty() {
                problems.push(at(
                    ContractViolation::InvalidRequiredOutput,
                    format!("the notes on `{}` are not what was asked for", asked.step.id),
                    format!("fix the notes and send them again: {}", faults.join("; ")),
                ));
            }
        }
        _ => {}
    }
}

/// What is wrong with notes that are to take the place of those of a step that is done.
#[must_use]
pub fn correction(asked: Asked<'_>, notes: &str) -> Vec<Problem> {
    let Action::Prompt(prompt) = &asked.step.action else { return Vec::new() };
    let mut problems = Vec::new();
    let given = Submission { notes: Some(notes), artifacts: &[] };
    self::notes(asked, prompt, given, &mut problems);
    problems
}

/// Holds the context to what the author declares of it.
fn context(asked: Asked<'_>, problems: &mut Vec<Problem>) {
    for key in keys::of(asked.plan, asked.step) {
        let is_set = lookup(asked.scene, key.name).is_some();
        let counts = key.declared.is_some() && (is_set || key.is_required());
        let Some(fault) = key.fault(asked.scene).filter(|_| counts) else { continue };
        let reason = match is_set {
            true => ContractViolation::InvalidRequiredOutput,
            false => ContractViolation::MissingRequiredOutput,
        };
        let pointer = match key.name.parse::<Slug>() {
            Ok(key) => Pointer::ContextKey { key },
            Err(_) => at_step(&asked.step.id),
        };
        problems.push(Problem {
            reason: Reason::Contract(reason),
            pointer,
            message: format!("the context key {fault}"),
            fix: Some(format!(
                "send it beside `output`: `\"context\": {{\"{}\": …}}`, with one of: {}",
                key.name,
                key.told()
            )),
        });
    }
}

/// An artifact to fill in for each that the answer must bring.
#[must_use]
pub fn examples(plan: &Plan, step: &Step, prompt: &Prompt) -> Vec<Value> {
    let of = |wanted: &OutputContract| {
        let found = plan.contracts.iter().find(|contract| contract.r#ref == wanted.r#ref)?;
        shown(step, found).or_else(|| found.example.as_ref().map(|example| example.0.clone()))
    };
    let contracts = step.output_contracts.iter().filter(|wanted| wanted.required).filter_map(of);
    let known = plan.guide.as_ref().map(|guide| guide.assessments.as_slice()).unwrap_or_default();
    let judged = prompt.assessments.iter();
    let judged = judged.filter_map(|id| known.iter().find(|assessment| assessment.id == *id));
    contracts.chain(judged.map(assess::example)).collect()
}

/// Holds artifacts to the contracts of the step.
fn contracts(asked: Asked<'_>, given: Submission<'_>, problems: &mut Vec<Problem>) {
    for wanted in &asked.step.output_contracts {
        let found = asked.plan.contracts.iter().find(|contract| contract.r#ref == wanted.r#ref);
        let Some(contract) = found else { continue };
        let of_kind = |artifact: &&Value| kind(artifact) == contract.artifact_kind.as_deref();
        let artifacts: Vec<&Value> = given.artifacts.iter().filter(of_kind).collect();
        if artifacts.is_empty() && wanted.required {
            let message = format!("the answer to `{}` has no {}", asked.step.id, named(contract));
            let reason = ContractViolation::MissingRequiredOutput;
            problems.push(violation(asked, contract, reason, message));
        }
        for artifact in artifacts {
            let mut faults = schema::faults(&contract.schema.0, artifact, "the artifact");
            faults.extend(other_loop(asked, contract, artifact));
            faults.extend(verdict(artifact));
            if !faults.is_empty() {
                let message = format!("{}: {}", named(contract), faults.join("; "));
                let reason = ContractViolation::InvalidRequiredOutput;
                problems.push(violation(asked, contract, reason, message));
            }
        }
    }
}

/// A decision about another loop than the one that the step stands in decides nothing here.
fn other_loop(asked: Asked<'_>, contract: &Contract, artifact: &Value) -> Option<String> {
    let named = artifact.get("loopId").and_then(Value::as_str)?;
    let frame = asked.loop_stack.last()?;
    let found = asked.plan.find_loop(&frame.loop_id)?;
    let decided = matches!(&found.repeat, Repeat::UntilDecision { contract_ref, .. } if *contract_ref == contract.r#ref);
    let stands_in = |name: &str| {
        let around = |frame: &LoopFrame| asked.plan.find_loop(&frame.loop_id);
        asked.loop_stack.iter().filter_map(around).any(|l| walk::names(l).any(|n| n == name))
    };
    (decided && !stands_in(named))
        .then(|| format!("`loopId` is `{named}`, and the step stands in the loop `{}`", found.id))
}

/// What is wrong with the verdict of a review: it follows from the gravest finding.
fn verdict(artifact: &Value) -> Option<String> {
    if kind(artifact) != Some(kinds::REVIEW_VERDICT) {
        return None;
    }
    let findings = artifact.get("findings")?.as_array()?;
    let has = |wanted: &str| {
        findings.iter().any(|found| found.get("severity").and_then(Value::as_str) == Some(wanted))
    };
    let (gravest, follows) = match () {
        () if has("critical") => ("is critical", "blocking"),
        () if has("major") => ("is major", "blocking"),
        () if has("minor") => ("is minor", "minor"),
        () if has("nit") => ("is a nit", "clean"),
        () => ("is none", "clean"),
    };
    let given = artifact.get("verdict")?.as_str()?;
    (given != follows).then(|| {
        format!("`verdict` is `{given}`, and the gravest finding {gravest}: it must be `{follows}`")
    })
}

fn named(contract: &Contract) -> String {
    match &contract.artifact_kind {
        Some(kind) => format!("artifact of kind `{kind}`"),
        None => format!("output under `{}`", contract.r#ref),
    }
}

fn violation(
    asked: Asked<'_>,
    contract: &Contract,
    reason: ContractViolation,
    message: String,
) -> Problem {
    let example = shown(asked.step, contract);
    let example = example.or_else(|| contract.example.as_ref().map(|example| example.0.clone()));
    Problem {
        reason: Reason::Contract(reason),
        pointer: Pointer::OutputContract { contract_ref: contract.r#ref.clone() },
        message,
        fix: example.map(|example| format!("give an artifact like {example}")),
    }
}

/// The example that the step's own prompt shows. The contract's is for any step: that of a
/// capability names any capability, and a probe asks about one.
fn shown(step: &Step, contract: &Contract) -> Option<Value> {
    let Action::Prompt(prompt) = &step.action else { return None };
    let mut examples = prompt.requirements.iter().filter_map(|line| {
        let json = line.strip_prefix("For example `")?.strip_suffix("`.")?;
        serde_json::from_str::<Value>(json).ok()
    });
    examples.find(|example| kind(example) == contract.artifact_kind.as_deref())
}

/// A problem with an artifact whose contract the step did not ask for.
fn malformed(contract_ref: &str, message: String, fix: String) -> Problem {
    Problem {
        reason: Reason::Contract(ContractViolation::InvalidRequiredOutput),
        pointer: Pointer::OutputContract { contract_ref: contract_ref.to_owned() },
        message,
        fix: Some(fix),
    }
}

/// The pointer to a step.
pub(super) fn at_step(step: &Slug) -> Pointer {
    Pointer::WorkflowStep { step_id: step.clone() }
}
