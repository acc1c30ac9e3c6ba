//! An acknowledgement: the run goes on, or is told what keeps it.

use serde_json::{Map, Value};

use super::block::{Blocked, block};
use super::record::{Made, Record};
use super::{Decided, Here, Mint, Rejection, Wanted, report};
use crate::canonical;
use crate::digest::Digest;
use crate::event::guided::{
    AdvanceIntent, AdvanceOutcome, AdvanceRecorded, Autonomy, CapabilityStatus, ContextSource,
    EdgeCauseKind, EdgeKind, EnforcementGrade, NodeKind, PreferenceSource, TraceEntry, TraceKind,
};
use crate::guided::judge::{Asked, Judged, Problem, Submission, judge};
use crate::guided::probe;
use crate::guided::scene::{Scene, scene};
use crate::guided::walk::{self, Trouble, Walk};
use crate::id::{AttemptId, NodeId};
use crate::plan::{Action, ConfirmedBy, Need, Step};
use crate::projection::context::merge;
use crate::reason::{CapabilityMissing, Consequence, Pointer, Reason, UserOnlyDependency};
use crate::snapshot::{EngineState, Running};

/// An agent's word that the pending step is done.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Ack<'a> {
    pub attempt: AttemptId,
    pub submission: Submission<'a>,
    pub context: &'a Map<String, Value>,
    pub wanted: Wanted,
}

impl Ack<'_> {
    /// Whether there is anything in it to keep.
    #[must_use]
    pub fn sends_anything(&self) -> bool {
        let Submission { notes, artifacts } = self.submission;
        let noted = notes.is_some_and(|notes| !notes.trim().is_empty());
        noted
            || !artifacts.is_empty()
            || !self.context.is_empty()
            || self.wanted != Wanted::default()
    }

    /// A digest of everything that was said, so that another answer to it is noticed.
    pub fn digest(&self) -> Result<Digest, canonical::Error> {
        let Submission { notes, artifacts } = self.submission;
        let said = (notes, artifacts, self.context);
        match self.wanted {
            // What asks for no preferences has the digest that it always had.
            Wanted { autonomy: None, risk_policy: None } => canonical::digest(&said),
            Wanted { autonomy, risk_policy } => canonical::digest(&(said, autonomy, risk_policy)),
        }
    }
}

/// The node that an attempt leads to, whoever makes it.
#[must_use]
pub fn target(attempt: AttemptId) -> NodeId {
    NodeId::derive(&[&attempt.to_string()])
}

/// What follows from an acknowledgement.
pub fn advance(here: Here<'_>, ack: Ack<'_>, mint: Mint<'_>) -> Result<Decided, Rejection> {
    let running = match here.state {
        EngineState::Running(running) => running,
        EngineState::Init | EngineState::Complete { .. } => return Err(Rejection::Complete),
    };
    let pending = running.pending().ok_or(Rejection::Complete)?;
    let step = here.plan.step(&pending.step).ok_or(Rejection::Complete)?;
    if matches!(step.action, Action::Typed { .. }) {
        return Err(Rejection::NotYours);
    }
    let mut context = here.context.clone();
    merge(&mut context, ack.context);
    let (changes, preferences) = ack.wanted.over(here.preferences);
    let judged = answer(here, running, step, &context, ack.submission);
    let walk = walk::after(here.plan, &context, running, &judged.decisions);
    let mut problems = judged.problems.clone();
    problems.extend(unmet_capabilities(here, step, &judged, preferences.autonomy));
    problems.extend(approval(here, step, &context, running, preferences.autonomy));
    let trouble: Vec<Problem> = walk.trouble.iter().map(Trouble::problem).collect();

    let recorded = |outcome| {
        let input_digest = Some(ack.digest()?);
        let intent = AdvanceIntent::AckPending;
        Ok::<_, Rejection>(AdvanceRecorded {
            attempt_id: ack.attempt,
            input_digest,
            intent,
            outcome,
        })
    };
    if stops(&problems, &trouble, preferences.autonomy) {
        problems.extend(trouble);
        let outcome = AdvanceOutcome::Blocked { blockers: report(&problems)? };
        let recorded = recorded(outcome)?;
        let blocked = Blocked { recorded, ack: Some(ack), claims: &judged.claims, held: None };
        return block(here, blocked, mint);
    }
    problems.extend(trouble);
    let to = target(ack.attempt);
    let mut record = Record::new(here.run, to, ack.attempt.to_string(), mint);
    let outcome = AdvanceOutcome::Advanced { to_node_id: to };
    let cause = record.push(crate::event::Scope::Node(here.run, here.node), recorded(outcome)?);
    let Walk { state, trace, .. } = walk;
    record.node(Made {
        kind: NodeKind::Step,
        parent: Some(here.node),
        state: &state,
        hash: here.hash,
    })?;
    let (why, trace) = forked(here, trace);
    record.edge(here.node, EdgeKind::AckedStep, why, cause);
    record.context(ack.context, ContextSource::AgentDelta);
    record.preferences(changes, preferences, PreferenceSource::User);
    record.outputs(ack.submission.notes, &judged.kept())?;
    record.claims(&judged.claims);
    record.divergences(&judged.divergences);
    problems.extend(judged.accepted_by_user);
    record.gaps(&problems);
    record.closed(&judged.closed)?;
    record.trace(trace);
    Ok(record.done())
}

fn answer(
    here: Here<'_>,
    running: &Running,
    step: &Step,
    context: &Map<String, Value>,
    given: Submission<'_>,
) -> Judged {
    let loop_stack = running.loop_stack();
    let scene = scene(here.plan, context, loop_stack);
    judge(Asked { plan: here.plan, step, loop_stack, scene: &scene, gaps: here.gaps }, given)
}

/// Whether the run stays where it is. A loop's trouble is answered like a broken contract:
/// whoever asked can mend it.
pub(super) fn stops(problems: &[Problem], trouble: &[Problem], autonomy: Autonomy) -> bool {
    let blocks = |problem: &Problem| {
        matches!(problem.reason.under(autonomy), Consequence::Block(_) | Consequence::Fail(..))
    };
    problems.iter().any(blocks) || (!trouble.is_empty() && autonomy != Autonomy::FullAutoNeverStop)
}

/// Why the edge is made, with a line in the trace when the run was rewound.
fn forked(here: Here<'_>, mut trace: Vec<TraceEntry>) -> (EdgeCauseKind, Vec<TraceEntry>) {
    if !here.has_children {
        return (EdgeCauseKind::IntentionalFork, trace);
    }
    trace.insert(
        0,
        TraceEntry {
            kind: TraceKind::DetectedNonTipAdvance,
            refs: Vec::new(),
            summary: "other nodes follow this one already; this is a new branch".into(),
        },
    );
    (EdgeCauseKind::NonTipAdvance, trace)
}

/// The capabilities that the plan cannot do without and that nobody has shown to be there.
fn unmet_capabilities(
    here: Here<'_>,
    step: &Step,
    judged: &Judged,
    autonomy: Autonomy,
) -> Vec<Problem> {
    let needed = here.plan.capabilities.iter().filter(|need| need.need == Need::Required);
    let strong = |claim: &&crate::guided::judge::Claim| {
        claim.provenance.deserved_grade() == EnforcementGrade::Strong
    };
    let mut problems = Vec::new();
    for need in needed {
        let now = judged.claims.iter().rev().filter(strong);
        let mut now = now.filter(|claim| claim.capability == need.capability).peekable();
        // A run that never stops says so once: when it is found out, not at every step behind.
        if autonomy == Autonomy::FullAutoNeverStop && now.peek().is_none() {
            continue;
        }
        let status = now.map(|claim| claim.status).next();
        let status = status.or_else(|| here.capabilities.get(&need.capability).copied());
        let (missing, message, fix) = match status {
            Some(CapabilityStatus::Available) => continue,
            Some(CapabilityStatus::Unavailable) => (
                CapabilityMissing::RequiredCapabilityUnavailable,
                "the workflow requires a capability that is not available",
                "ask the user to make it available (for example by installing a tool for it) and report it again, or ask for `full_auto_never_stop`",
            ),
            // Its probe is still to come, or is the step that was just answered.
            None | Some(CapabilityStatus::Unknown) if probe::of(step).is_some() => continue,
            None | Some(CapabilityStatus::Unknown) => (
                CapabilityMissing::RequiredCapabilityUnknown,
                "the workflow requires a capability that nobody has tried yet",
                "try it now and send a `wr.capability_observation` with what you did and saw in `detail`",
            ),
        };
        problems.push(Problem {
            reason: Reason::Capability(missing),
            pointer: Pointer::Capability { capability: need.capability },
            message: message.to_owned(),
            fix: Some(fix.to_owned()),
        });
    }
    problems
}

/// What a person should have approved, when nobody may be asked.
fn approval(
    here: Here<'_>,
    step: &Step,
    context: &Map<String, Value>,
    running: &Running,
    autonomy: Autonomy,
) -> Option<Problem> {
    let confirmation = step.require_confirmation.as_ref()?;
    let needed = confirmation.by == ConfirmedBy::HumanApproval
        && autonomy == Autonomy::FullAutoNeverStop
        && is_asked(here.plan, confirmation, &scene(here.plan, context, running.loop_stack()));
    needed.then(|| Problem {
        reason: Reason::UserOnly(UserOnlyDependency::NeedsUserApproval),
        pointer: Pointer::WorkflowStep { step_id: step.id.clone() },
        message: format!("nobody approved `{}`: the run may not stop to ask", step.id),
        fix: None,
    })
}

/// Whether a confirmation is asked for in this scene.
#[must_use]
pub fn is_asked(
    plan: &crate::plan::Plan,
    confirmation: &crate::plan::Confirmation,
    scene: &Scene<'_>,
) -> bool {
    confirmation.condition.as_ref().is_none_or(|id| {
        let condition = plan.conditions.iter().find(|known| known.id == *id);
        condition.is_some_and(|c| crate::guided::condition::holds(&c.config.0, scene))
    })
}
