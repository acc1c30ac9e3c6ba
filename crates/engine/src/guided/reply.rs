//! Answers, made from what is recorded and from the pinned plan.

use std::path::Path;

use cairn_core::event::guided::{
    AdvanceOutcome, Autonomy, CapabilityStatus, NodeKind, OutputPayload, Preferences,
};
use cairn_core::event::limits;
use cairn_core::guided::decide::{self, Role};
use cairn_core::guided::scene::scene;
use cairn_core::guided::{probe, render};
use cairn_core::id::{AttemptId, NodeId, RunId};
use cairn_core::keyring::Keyring;
use cairn_core::plan::{Action, ConfirmedBy, Need, Plan, ResolveFrom};
use cairn_core::projection::recap::recap;
use cairn_core::reason::{Blocker, BlockerCode};
use cairn_core::text::{TRUNCATED, truncate};
use cairn_core::token::compact::{Attempt, Kind};

use super::answer::{
    Accepted, Answer, BranchSummary, Lifecycle, NextIntent, Pending, Recap, Reference, RunRef,
    StepContext, Warning,
};
use super::ask::{Output, Tokens};
use super::position::Position;
use super::session::Session;
use super::tokens::Spot;
use super::{Inner, blobs, workspace};
use crate::catalog::Found;
use crate::error::Result;

/// How long a recap may be, in bytes of UTF-8.
const RECAP_MAX: usize = 8 << 10;
/// How many branches are told of, and how long each may be.
const BRANCHES_MAX: usize = 5;
const BRANCH_MAX: usize = 1024;

/// An attempt that was made.
#[derive(Clone, Copy)]
pub(super) struct Attempted {
    pub(super) run: RunId,
    pub(super) node: NodeId,
    pub(super) attempt: AttemptId,
}

/// What is answered.
pub(super) enum Facts {
    /// A run began.
    Begun {
        /// Which.
        run: RunId,
        /// The documents of its workflow.
        references: Vec<Reference>,
        /// What is worth knowing about the workflow.
        warnings: Vec<Warning>,
    },
    /// Somebody came back.
    Back {
        /// The documents of the workflow.
        references: Vec<Reference>,
        /// What is worth knowing about the workflow.
        warnings: Vec<Warning>,
    },
    /// An attempt led on.
    Advanced {
        /// The attempt.
        tried: Attempted,
        /// The node that it led to.
        to: NodeId,
        /// Whether it was recorded with another answer to the step.
        other_input: bool,
    },
    /// An attempt was blocked.
    Blocked {
        /// The attempt.
        tried: Attempted,
        /// Why.
        blockers: Vec<Blocker>,
        /// Whether it was recorded with another answer to the step.
        other_input: bool,
    },
}

impl Facts {
    pub(super) fn begun(found: &Found, run: RunId, root: Option<&Path>) -> Self {
        let plan = found.outcome.as_ref().ok().map(|compiled| &compiled.plan);
        let package = found.path.parent();
        let references = plan.map(|plan| references(plan, root, package)).unwrap_or_default();
        let missing = references.iter().filter(|reference| !reference.resolved);
        let missing = missing.map(|reference| Warning {
            code: "reference_unresolved",
            message: format!("{}: there is no file {}", reference.title, reference.path),
        });
        let id = found.id_warning().map(|message| Warning { code: "legacy_workflow_id", message });
        let warnings = missing.chain(id).collect();
        Self::Begun { run, references, warnings }
    }

    pub(super) fn back(inner: &Inner, session: &Session, position: &Position) -> Self {
        let root = workspace::of_run(&session.view, position.run);
        let root = root.or_else(|| inner.options.workspace.clone());
        let now = inner.catalog.find(&position.plan.workflow_id).ok();
        let package = now.as_ref().and_then(|found| found.path.parent());
        let references = references(&position.plan, root.as_deref(), package);
        let on_disk = now.as_ref().and_then(|found| found.outcome.as_ref().ok());
        let on_disk = on_disk.and_then(|compiled| compiled.plan.hash().ok());
        let drift = on_disk.filter(|hash| *hash != position.hash).map(|_| Warning {
            code: "pinned_drift",
            message: format!(
                "`{}` was changed since the run began; the run goes on with the version it began with",
                position.plan.workflow_id
            ),
        });
        Self::Back { references, warnings: drift.into_iter().collect() }
    }

    const fn lifecycle(&self) -> Lifecycle {
        match self {
            Self::Begun { .. } => Lifecycle::Start,
            Self::Back { .. } => Lifecycle::Rehydrate,
            Self::Advanced { .. } | Self::Blocked { .. } => Lifecycle::Advance,
        }
    }

    const fn other_input(&self) -> bool {
        match self {
            Self::Begun { .. } | Self::Back { .. } => false,
            Self::Advanced { other_input, .. } | Self::Blocked { other_input, .. } => *other_input,
        }
    }

    /// The attempt that keeps the run where it stands, and why: the one that is answered, or
    /// the engine's own at the node that the run came to.
    fn blocked(&self, session: &Session, position: &Position) -> Option<(AttemptId, Vec<Blocker>)> {
        match self {
            Self::Back { .. } => None,
            Self::Blocked { tried, blockers, .. } => Some((tried.attempt, blockers.clone())),
            Self::Begun { .. } | Self::Advanced { .. } => {
                let attempt = Attempt::FIRST.id(position.node);
                position.owed()?;
                match &session.view.attempts.of(position.node, attempt)?.outcome {
                    AdvanceOutcome::Blocked { blockers } => {
                        Some((attempt, blockers.blockers().to_vec()))
                    }
                    AdvanceOutcome::Advanced { .. } => None,
                }
            }
        }
    }
}

/// Answers for where a run stands.
pub(super) async fn answer(
    inner: &Inner,
    session: &Session,
    position: &Position,
    keys: &Keyring,
    tokens: Tokens,
    facts: Facts,
) -> Result<Answer> {
    let spot = Spot::new(session, position.run, position.node);
    let lifecycle = facts.lifecycle();
    let opening = lifecycle != Lifecycle::Advance;
    let coming_back = lifecycle == Lifecycle::Rehydrate;
    let branches = if coming_back { branches(session, position, keys)? } else { Vec::new() };
    let mut mentioned = Vec::new();
    let pending = pending(inner, session, position, opening, &branches, &mut mentioned).await?;
    let preferences = told_preferences(session, position, &facts);
    let blocked = facts.blocked(session, position);
    let other_input = facts.other_input();
    let step_context = step_context(inner, session, position, &facts).await?;
    let recap = recapped(inner, session, position, coming_back).await?;
    let (references, mut warnings) = match facts {
        Facts::Begun { run, references, mut warnings } => {
            warnings.append(&mut mentioned);
            warnings.extend(preferences.and_then(|now| beyond(&position.plan, now)));
            warnings.extend(gaps(session, run, decide::root(run), position.node));
            (references, warnings)
        }
        Facts::Back { references, mut warnings } => {
            warnings.append(&mut mentioned);
            warnings.extend(preferences.and_then(|now| beyond(&position.plan, now)));
            (references, warnings)
        }
        Facts::Advanced { tried, to, .. } => {
            let mut warnings = mentioned;
            warnings.extend(preferences.and_then(|now| beyond(&position.plan, now)));
            warnings.extend(gaps(session, tried.run, to, position.node));
            warnings.extend(cut(session, to));
            warnings.extend(degraded(session, &position.plan, to));
            (Vec::new(), warnings)
        }
        Facts::Blocked { .. } => (Vec::new(), mentioned),
    };
    if position.state.is_complete() {
        warnings.extend(left_open(session, position));
    }
    if other_input {
        warnings.push(Warning {
            code: "replayed_with_other_input",
            message: "this attempt was recorded before, with another answer to the step; what you sent now was not recorded. To answer anew, come back with a `continueToken` and no `output`, and use the fresh token".to_owned(),
        });
    }
    let after = blocked.as_ref().map(|(attempt, _)| Attempt::after(*attempt));
    let retry = after.map(|next| spot.token(session, Kind::Continue, next, keys)).transpose()?;
    let blockers = blocked.map(|(_, blockers)| blockers).unwrap_or_default();
    let next_intent = next_intent(position, &blockers, &pending, other_input);
    Ok(Answer {
        lifecycle,
        retry_continue_token: retry,
        tokens: match after {
            // The attempt after the one that was blocked, also for every repetition of it.
            Some(next) => spot.set(session, keys, tokens, next, next)?,
            None if coming_back => spot.fresh(session, keys, tokens)?,
            None => spot.first(session, keys, tokens)?,
        },
        label: spot.label.as_str().to_owned(),
        is_complete: position.state.is_complete(),
        next_intent,
        session: opening.then_some(RunRef { session: session.id, run: position.run }),
        preferences,
        step_context,
        warnings,
        recap,
        branches,
        references,
        pending: pending.map(|(pending, _)| pending),
        blockers,
    })
}

/// Who must agree to the pending step.
type Confirmed = Option<ConfirmedBy>;

/// The step to do, and who must agree to it.
async fn pending(
    inner: &Inner,
    session: &Session,
    position: &Position,
    opening: bool,
    branches: &[BranchSummary],
    warnings: &mut Vec<Warning>,
) -> Result<Option<(Pending, Confirmed)>> {
    let Some(step) = position.step() else { return Ok(None) };
    let seen = scene(&position.plan, &position.context, position.loop_stack());
    let beside: Vec<&str> = branches.iter().map(|branch| branch.summary.as_str()).collect();
    let (plan, beside) = (&position.plan, beside.join("\n"));
    let shown = render::prompt(plan, step, position.loop_stack(), &seen, opening, &beside);
    warnings.extend(shown.unset.iter().map(|name| Warning {
        code: "context_unset",
        message: format!(
            "the prompt mentions `{name}`, which the context does not have; set it there"
        ),
    }));
    let mut prompt = String::new();
    for outcome in inner.done_before(session, position).await? {
        prompt.push_str(&outcome);
        prompt.push_str("\n\n");
    }
    prompt.push_str(&shown.prompt);
    if let Some(held) = held(inner, session, position).await? {
        prompt = held;
    }
    let asked = step.require_confirmation.as_ref();
    let asked = asked.filter(|asked| decide::is_asked(&position.plan, asked, &seen));
    let pending = Pending {
        step_id: step.id.to_string(),
        title: step.title.clone(),
        prompt,
        require_confirmation: asked.is_some(),
    };
    Ok(Some((pending, asked.map(|asked| asked.by))))
}

/// What stands in place of instructions at a step of the engine's that keeps the run.
async fn held(inner: &Inner, session: &Session, position: &Position) -> Result<Option<String>> {
    if !position.is_owed_by_engine() {
        return Ok(None);
    }
    let held = inner.held(session, position.node).await?;
    Ok(held.map(|held| match held.failed {
        true => format!("{}\n\nThe run stays here until this passes. Mend what is wrong and go on: the engine performs it again.", held.notes),
        false => format!("{}\n\nThe run stays here all the same: what comes next lacks something. Go on with it in `context`; the engine does not perform this again.", held.notes),
    }))
}

fn next_intent(
    position: &Position,
    blockers: &[Blocker],
    pending: &Option<(Pending, Confirmed)>,
    other_input: bool,
) -> NextIntent {
    let autonomy = position.preferences.autonomy;
    let waits = match pending {
        None => return NextIntent::Complete,
        _ if other_input => return NextIntent::RehydrateOnly,
        Some(_) if blockers.iter().any(|b| b.code == BlockerCode::UserOnlyDependency) => true,
        Some((_, None)) => false,
        Some((_, Some(ConfirmedBy::HumanApproval))) => autonomy != Autonomy::FullAutoNeverStop,
        Some((_, Some(ConfirmedBy::User))) => autonomy == Autonomy::Guided,
        // Another agent judges, and that is not the user.
        Some((_, Some(ConfirmedBy::CoordinatorEval))) => false,
    };
    match waits {
        true => NextIntent::AwaitUserConfirmation,
        false => NextIntent::PerformPendingThenContinue,
    }
}

/// What holds now, when the caller cannot know it.
fn told_preferences(session: &Session, position: &Position, facts: &Facts) -> Option<Preferences> {
    let now = position.preferences;
    match facts {
        Facts::Advanced { tried, .. } => {
            let dag = session.dag(tried.run).ok()?;
            (session.view.preferences.at(dag, tried.node) != now).then_some(now)
        }
        Facts::Begun { .. } | Facts::Back { .. } => Some(now),
        Facts::Blocked { .. } => None,
    }
}

/// A warning when more is left to the agent than the workflow's author recommends.
fn beyond(plan: &Plan, now: Preferences) -> Option<Warning> {
    let wanted = &plan.recommendations;
    let autonomy = wanted.autonomy.filter(|wanted| now.autonomy > *wanted);
    let risk = wanted.risk_policy.filter(|wanted| now.risk_policy > *wanted);
    let name = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let autonomy = autonomy.map(|v| format!("autonomy `{}`", name(serde_json::to_value(v))));
    let risk = risk.map(|v| format!("riskPolicy `{}`", name(serde_json::to_value(v))));
    let parts: Vec<String> = autonomy.into_iter().chain(risk).collect();
    (!parts.is_empty()).then(|| Warning {
        code: "recommendation_exceeded",
        message: format!("the workflow's author recommends at most {}", parts.join(" and ")),
    })
}

/// The gaps that were disclosed on the way from one node to another.
fn gaps(session: &Session, run: RunId, from: NodeId, to: NodeId) -> Vec<Warning> {
    let Ok(dag) = session.dag(run) else { return Vec::new() };
    let mut warnings = Vec::new();
    for node in dag.path_back(to) {
        warnings.extend(
            session
                .view
                .gaps
                .told_at(node.id)
                .iter()
                .map(|gap| Warning { code: "gap_recorded", message: gap.summary.clone() }),
        );
        if node.id == from {
            break;
        }
    }
    warnings
}

/// A warning when a capability turned out not to be there that the workflow prefers.
fn degraded(session: &Session, plan: &Plan, node: NodeId) -> Vec<Warning> {
    let preferred = plan.capabilities.iter().filter(|wanted| wanted.need == Need::Preferred);
    let missing = preferred.map(|wanted| wanted.capability).filter(|capability| {
        let seen = session.view.capabilities.at(node, *capability);
        seen.is_some_and(|seen| seen.status == CapabilityStatus::Unavailable)
    });
    let told = |capability| Warning {
        code: "capability_unavailable",
        message: format!(
            "`{}` is not there, so the run goes on without it, as the workflow allows",
            probe::name(capability)
        ),
    };
    missing.map(told).collect()
}

/// A warning at the end of a run that has left something open on its way.
fn left_open(session: &Session, position: &Position) -> Option<Warning> {
    let dag = session.dag(position.run).ok()?;
    let told = dag.path_back(position.node).map(|node| session.view.gaps.told_at(node.id).len());
    let count: usize = told.sum();
    (count > 0).then(|| Warning {
        code: "complete_with_gaps",
        message: format!("the run is complete with {count} gaps; tell the user about them"),
    })
}

/// A warning when the notes that led to a node were cut. A correction changes no answer, so
/// what was first noted counts.
fn cut(session: &Session, node: NodeId) -> Option<Warning> {
    let notes = first_notes(session, node).filter(|notes| notes.ends_with(TRUNCATED));
    notes.map(|_| Warning {
        code: "notes_truncated",
        message: "the notes were longer than 4096 bytes and were cut at their end".to_owned(),
    })
}

fn first_notes(session: &Session, node: NodeId) -> Option<&str> {
    match &session.view.outputs.history(node).first()?.payload {
        OutputPayload::Notes { notes_markdown } => Some(notes_markdown),
        OutputPayload::ArtifactRef { .. } => None,
    }
}

/// A warning when a checkpoint that was left before is left again with other notes.
pub(super) fn other_notes(session: &Session, node: NodeId, sent: &Output) -> Vec<Warning> {
    let sent = sent.notes.as_deref().filter(|notes| !notes.trim().is_empty());
    let sent = sent.map(|notes| truncate(notes, limits::NOTES));
    if sent.as_deref() == first_notes(session, node) {
        return Vec::new();
    }
    vec![Warning {
        code: "replayed_with_other_input",
        message: "this checkpoint was left before, with other notes; what you sent now was not kept. Send it again with the checkpointToken of this answer".to_owned(),
    }]
}

/// The judgements that the step which was just done brought.
async fn step_context(
    inner: &Inner,
    session: &Session,
    position: &Position,
    facts: &Facts,
) -> Result<Option<StepContext>> {
    let Facts::Advanced { tried, to, .. } = facts else { return Ok(None) };
    let (tried, to) = (*tried, *to);
    let step = position.step_at(inner, session, tried.node).await?;
    let asks = step.is_some_and(|step| match &step.action {
        Action::Prompt(prompt) => !prompt.assessments.is_empty(),
        Action::Typed { .. } => false,
    });
    if !asks {
        return Ok(None);
    }
    let mut assessments = Vec::new();
    for output in session.view.outputs.standing(to) {
        // What was sent beside the accepted ones may look the same, and has another id.
        if let OutputPayload::ArtifactRef { sha256, .. } = &output.payload
            && Role::Accepted.of(tried.attempt, *sha256) == output.id
        {
            let artifact = blobs::artifact(&inner.store, *sha256).await?;
            assessments.extend(Accepted::read(&artifact));
        }
    }
    assessments.sort_by(|a, b| a.assessment_id.cmp(&b.assessment_id));
    Ok((!assessments.is_empty()).then_some(StepContext { assessments }))
}

/// What happened so far, for whoever comes back; at the end what the engine did last, which
/// no prompt tells any more.
async fn recapped(
    inner: &Inner,
    session: &Session,
    position: &Position,
    coming_back: bool,
) -> Result<Option<Recap>> {
    if coming_back {
        return told(session, position);
    }
    if !position.state.is_complete() {
        return Ok(None);
    }
    let text = inner.done_before(session, position).await?.join("\n\n");
    Ok((!text.is_empty()).then_some(Recap { text, omitted: 0 }))
}

/// What happened on the way to the node.
fn told(session: &Session, position: &Position) -> Result<Option<Recap>> {
    let dag = session.dag(position.run)?;
    let recap = recap(dag, &session.view.outputs, position.node, RECAP_MAX);
    let empty = recap.text.is_empty();
    Ok((!empty).then_some(Recap { text: recap.text, omitted: recap.omitted }))
}

/// What follows from the node already, the preferred branch first.
fn branches(session: &Session, position: &Position, keys: &Keyring) -> Result<Vec<BranchSummary>> {
    let dag = session.dag(position.run)?;
    let tip = dag.preferred_tip().map(|tip| tip.id);
    let is_preferred = |child: NodeId| tip.is_some_and(|tip| dag.is_on_path(child, tip));
    let steps = dag.children(position.node).filter(|child| child.kind != NodeKind::Checkpoint);
    let mut children: Vec<NodeId> = steps.map(|child| child.id).collect();
    children.sort_by_key(|child| !is_preferred(*child));
    children.truncate(BRANCHES_MAX);
    // The preferred of all leaves first, so the first one behind a child is its own.
    let leaves = if children.is_empty() { Vec::new() } else { dag.branches() };
    let mut found = Vec::new();
    for child in children {
        let end = leaves.iter().map(|leaf| leaf.tip).find(|leaf| dag.is_on_path(child, *leaf));
        let end = end.unwrap_or(child);
        let nodes = dag.nodes().iter().filter(|node| dag.is_on_path(child, node.id)).count();
        let way = recap(dag, &session.view.outputs, end, BRANCH_MAX);
        let behind = way.entries.iter().filter(|entry| dag.is_on_path(child, entry.node));
        let summary: Vec<&str> = behind.map(|entry| entry.notes.as_str()).collect();
        let spot = Spot::new(session, position.run, end);
        let attempt = session.unused(end);
        found.push(BranchSummary {
            node: child,
            preferred: is_preferred(child),
            nodes,
            summary: summary.join("\n\n"),
            continue_token: spot.token(session, Kind::Continue, attempt, keys)?,
        });
    }
    Ok(found)
}

/// The documents of a plan, looked for where their paths begin.
fn references(plan: &Plan, root: Option<&Path>, package: Option<&Path>) -> Vec<Reference> {
    let listed = plan.guide.iter().flat_map(|guide| &guide.references);
    listed
        .map(|reference| {
            let from = match reference.resolve_from {
                ResolveFrom::Workspace => root,
                ResolveFrom::Package => package,
            };
            let path = from.map(|from| from.join(&reference.source));
            let resolved = path.as_ref().is_some_and(|path| path.is_file());
            Reference {
                title: reference.title.clone(),
                path: path.map_or_else(|| reference.source.clone(), |p| p.display().to_string()),
                purpose: reference.purpose.clone(),
                authoritative: reference.authoritative,
                resolved,
            }
        })
        .collect()
}
