//! Answers, made from what is recorded and from the pinned plan.

mod branches;
mod recall;
pub(super) mod warnings;

use std::path::Path;

use cairn_core::event::guided::{AdvanceOutcome, Autonomy, NodeKind, OutputPayload, Preferences};
use cairn_core::guided::decide::{self, Role};
use cairn_core::guided::scene::{Scene, scene};
use cairn_core::guided::{keys, render};
use cairn_core::id::{AttemptId, NodeId, RunId};
use cairn_core::keyring::Keyring;
use cairn_core::plan::{Action, ConfirmedBy, Plan, ResolveFrom};
use cairn_core::projection::recap::recap_with;
use cairn_core::reason::{Blocker, BlockerCode};
use cairn_core::text::truncate;
use cairn_core::token::compact::{Attempt, Kind};

use super::answer::{
    Accepted, Answer, Asks, BranchSummary, Lifecycle, NextIntent, NotesAsked, Pending, Recap,
    Reference, RunRef, StepContext, Warning, WarningCode,
};
use super::ask::Tokens;
use super::position::Position;
use super::session::Session;
use super::tokens::Spot;
use super::{Inner, blobs, workspace};
use crate::catalog::Found;
use crate::error::Result;

/// How long a recap may be, in bytes of UTF-8.
const RECAP_MAX: usize = 8 << 10;
/// How long the line may be that says which step an entry of a recap belongs to.
const HEADING_MAX: usize = 96;

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
    },
    /// An attempt was blocked.
    Blocked {
        /// The attempt.
        tried: Attempted,
        /// Why.
        blockers: Vec<Blocker>,
        /// What was sent now and not recorded: the attempt was recorded with another answer.
        unrecorded: Option<Warning>,
    },
}

impl Facts {
    pub(super) fn begun(
        found: &Found,
        id_warning: Option<String>,
        run: RunId,
        root: Option<&Path>,
    ) -> Self {
        let plan = found.outcome.as_ref().ok().map(|compiled| &compiled.plan);
        let package = found.path.parent();
        let references = plan.map(|plan| references(plan, root, package)).unwrap_or_default();
        let missing = references.iter().filter(|reference| !reference.resolved);
        let missing = missing.map(warnings::unresolved);
        let id = id_warning.map(|message| Warning { code: WarningCode::LegacyWorkflowId, message });
        let warnings = missing.chain(id).collect();
        Self::Begun { run, references, warnings }
    }

    /// Somebody came back, or was brought back by a call whose attempt has another answer on
    /// record: `unrecorded` says what was not taken.
    pub(super) fn back(
        inner: &Inner,
        session: &Session,
        position: &Position,
        unrecorded: Option<Warning>,
    ) -> Self {
        let root = workspace::of_run(&session.view, position.run);
        let moved = root.as_ref().filter(|root| !root.is_dir());
        let moved = moved.map(|root| warnings::moved(root, session.id));
        let root = root.or_else(|| inner.options.workspace.clone());
        let now = inner.catalog.find(&position.plan.workflow_id).ok();
        let package = now.as_ref().and_then(|found| found.path.parent());
        let references = references(&position.plan, root.as_deref(), package);
        let on_disk = now.as_ref().and_then(|found| found.outcome.as_ref().ok());
        let on_disk = on_disk.and_then(|compiled| compiled.plan.hash().ok());
        let drifted = on_disk.is_some_and(|hash| hash != position.hash);
        let drift = drifted.then(|| warnings::drifted(&position.plan.workflow_id));
        let warnings = unrecorded.into_iter().chain(drift).chain(moved).collect();
        Self::Back { references, warnings }
    }

    const fn lifecycle(&self) -> Lifecycle {
        match self {
            Self::Begun { .. } => Lifecycle::Start,
            Self::Back { .. } => Lifecycle::Rehydrate,
            Self::Advanced { .. } | Self::Blocked { .. } => Lifecycle::Advance,
        }
    }

    /// The attempt that keeps the run where it stands, and why: the one that is answered, or
    /// the engine's own at the node that the run came to.
    fn blocked(&self, session: &Session, position: &Position) -> Option<(Retry, Vec<Blocker>)> {
        match self {
            Self::Back { .. } => None,
            Self::Blocked { tried, blockers, unrecorded } => {
                let retry = match unrecorded {
                    Some(_) => Retry::Fresh,
                    None if position.node == tried.node => Retry::After(tried.attempt),
                    None => Retry::First,
                };
                Some((retry, blockers.clone()))
            }
            Self::Begun { .. } | Self::Advanced { .. } => {
                let attempt = Attempt::FIRST.id(position.node);
                position.owed()?;
                match &session.view.attempts.of(position.node, attempt)?.outcome {
                    AdvanceOutcome::Blocked { blockers } => {
                        Some((Retry::After(attempt), blockers.blockers().to_vec()))
                    }
                    AdvanceOutcome::Advanced { .. } => None,
                }
            }
        }
    }
}

/// The attempt that a retry is. It follows from the one that was blocked, so that a repetition
/// of the call is answered with it again.
#[derive(Clone, Copy)]
enum Retry {
    /// The first at the node that keeps what was sent.
    First,
    /// The one after the blocked one, where nothing was sent to keep.
    After(AttemptId),
    /// One of its own, since what was sent is another answer than the recorded one.
    Fresh,
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
    let branches = match (coming_back, position.state.is_complete()) {
        (_, true) => branches::others(inner, session, position, keys, coming_back).await?,
        (true, false) => branches::branches(inner, session, position, keys).await?,
        (false, false) => Vec::new(),
    };
    let preferences = told_preferences(session, position, &facts);
    let telling = render::Telling { opening, mode: preferences.is_some() };
    let (pending, mentioned) = pending(inner, session, position, telling, &branches).await?;
    let blocked = facts.blocked(session, position);
    let step_context = step_context(inner, session, position, &facts).await?;
    let recap = recapped(inner, session, position, coming_back).await?;
    let (references, mut warnings) = match facts {
        Facts::Begun { run, references, mut warnings } => {
            warnings.extend(mentioned);
            warnings.extend(preferences.and_then(|now| warnings::beyond(&position.plan, now)));
            warnings.extend(warnings::gaps(session, run, decide::root(run), position.node));
            (references, warnings)
        }
        Facts::Back { references, mut warnings } => {
            warnings.extend(mentioned);
            warnings.extend(preferences.and_then(|now| warnings::beyond(&position.plan, now)));
            if !position.state.is_complete() {
                warnings.extend(warnings::open_gaps(position));
            }
            (references, warnings)
        }
        Facts::Advanced { tried, to, .. } => {
            let mut warnings = mentioned;
            warnings.extend(preferences.and_then(|now| warnings::beyond(&position.plan, now)));
            warnings.extend(warnings::gaps(session, tried.run, to, position.node));
            warnings.extend(warnings::closed(session, to));
            warnings.extend(unset_keys(inner, session, position, tried.node, to).await?);
            warnings.extend(warnings::branched(session, tried.run, to));
            warnings.extend(warnings::cut(session, to));
            warnings.extend(warnings::degraded(session, &position.plan, to));
            (Vec::new(), warnings)
        }
        Facts::Blocked { tried, unrecorded, .. } => {
            let kept = position.node != tried.node && unrecorded.is_none();
            let cut = kept.then(|| warnings::cut(session, position.node)).flatten();
            (Vec::new(), unrecorded.into_iter().chain(cut).chain(mentioned).collect())
        }
    };
    if position.state.is_complete() {
        warnings.extend(warnings::left_open(position));
    }
    let after = match blocked.as_ref().map(|(retry, _)| *retry) {
        None => None,
        Some(Retry::First) => Some(Attempt::FIRST),
        Some(Retry::After(attempt)) => Some(Attempt::after(attempt)),
        Some(Retry::Fresh) => Some(inner.fresh()?),
    };
    let retry = after.map(|next| spot.token(session, Kind::Continue, next, keys)).transpose()?;
    let blockers = blocked.map(|(_, blockers)| blockers).unwrap_or_default();
    let next_intent = next_intent(position, &blockers, &pending);
    Ok(Answer {
        lifecycle,
        retry_continue_token: retry,
        tokens: match after {
            // The attempt after the one that was blocked, also for every repetition of it.
            Some(next) => spot.set(session, keys, tokens, next, next)?,
            None if coming_back => spot.fresh(session, keys, tokens, inner.fresh()?)?,
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
        standing: None,
    })
}

/// Warnings of keys of the context that a step which was done asks for, and nobody set.
async fn unset_keys(
    inner: &Inner,
    session: &Session,
    position: &Position,
    from: NodeId,
    to: NodeId,
) -> Result<Vec<Warning>> {
    let Some(step) = position.step_at(inner, session, from).await? else { return Ok(Vec::new()) };
    let context = session.view.contexts.at(session.dag(position.run)?, to);
    let seen = Scene::from(&context);
    let faults = keys::of(&position.plan, step).into_iter().filter_map(|key| key.fault(&seen));
    let is_complete = position.state.is_complete();
    Ok(faults.map(|fault| warnings::unset_key(step, &fault, is_complete)).collect())
}

/// Who must agree to the pending step.
type Confirmed = Option<ConfirmedBy>;

/// The step to do and who must agree to it, with what is worth knowing about its prompt.
async fn pending(
    inner: &Inner,
    session: &Session,
    position: &Position,
    telling: render::Telling,
    branches: &[BranchSummary],
) -> Result<(Option<(Pending, Confirmed)>, Vec<Warning>)> {
    let Some(step) = position.step() else { return Ok((None, Vec::new())) };
    let seen = scene(&position.plan, &position.context, position.loop_stack());
    let beside: Vec<&str> = branches.iter().map(|branch| branch.summary.as_str()).collect();
    let asked = step.require_confirmation.as_ref();
    let asked = asked.filter(|asked| decide::is_asked(&position.plan, asked, &seen));
    let stage = render::Stage {
        plan: &position.plan,
        step,
        loop_stack: position.loop_stack(),
        scene: &seen,
        preferences: position.preferences,
        confirmed_by: asked.map(|asked| asked.by),
        done: position.done(),
    };
    let shown = render::prompt(stage, telling, &beside.join("\n"));
    let warnings = shown.unset.iter().map(|name| warnings::unset(name)).collect();
    let mut prompt = String::new();
    for outcome in inner.done_before(session, position).await? {
        prompt.push_str(&outcome);
        prompt.push_str("\n\n");
    }
    prompt.push_str(&shown.prompt);
    let mut is_owed = position.is_owed_by_engine();
    if let Some(held) = held(inner, session, position).await? {
        (prompt, is_owed) = (held, false);
    }
    let pending = Pending {
        step_id: step.id.to_string(),
        title: step.title.clone(),
        prompt,
        require_confirmation: asked.is_some(),
        asks: asks(stage),
        is_owed,
    };
    Ok((Some((pending, asked.map(|asked| asked.by))), warnings))
}

/// What the answer to a step brings.
fn asks(stage: render::Stage<'_>) -> Asks {
    let render::Asks { notes, artifacts, context } = render::asks(stage);
    let notes = if notes { NotesAsked::Required } else { NotesAsked::Optional };
    Asks { notes, artifacts, context }
}

/// What stands in place of instructions at a step of the engine's that keeps the run.
async fn held(inner: &Inner, session: &Session, position: &Position) -> Result<Option<String>> {
    if !position.is_owed_by_engine() {
        return Ok(None);
    }
    let held = inner.held(session, position.run, position.node).await?;
    Ok(held.map(|held| match held.failed {
        true => format!("{}\n\nThe run stays here until this passes. Fix what is wrong and continue: the engine runs it again.", held.notes),
        false => format!("{}\n\nThis passed, but the next step lacks a value. Continue with that value in `context`; the engine does not run this again.", held.notes),
    }))
}

fn next_intent(
    position: &Position,
    blockers: &[Blocker],
    pending: &Option<(Pending, Confirmed)>,
) -> NextIntent {
    let autonomy = position.preferences.autonomy;
    let waits = match pending {
        None => return NextIntent::Complete,
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
        Facts::Blocked { tried, .. } => {
            let dag = session.dag(tried.run).ok()?;
            (session.view.preferences.at(dag, tried.node) != now).then_some(now)
        }
    }
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
        return told(inner, session, position).await;
    }
    if !position.state.is_complete() {
        return Ok(None);
    }
    let text = inner.done_before(session, position).await?.join("\n\n");
    Ok((!text.is_empty()).then_some(Recap { text, omitted: 0 }))
}

/// What the run is for and what happened on the way to the node, each entry under its step.
async fn told(inner: &Inner, session: &Session, position: &Position) -> Result<Option<Recap>> {
    let dag = session.dag(position.run)?;
    let run = session.view.runs.get(&position.run);
    let goal = run.and_then(|run| run.goal.as_ref()).map(|goal| format!("Goal: {goal}"));
    let facts = recall::context(&position.context);
    let artifacts = recall::artifacts(inner, session, position).await?;
    let mut parts: Vec<String> = goal.into_iter().chain(facts).chain(artifacts).collect();
    let told: usize = parts.iter().map(String::len).sum();
    let budget = RECAP_MAX.saturating_sub(told);
    let recap = recap_with(dag, &session.view.outputs, position.node, budget, HEADING_MAX);
    parts.extend(Some(recap.opening()).filter(|opening| !opening.is_empty()));
    for entry in &recap.entries {
        let heading = heading(inner, session, position, entry.node).await?;
        parts.push(format!("{heading}\n{}", entry.notes));
    }
    let text = parts.join("\n\n");
    Ok((!text.is_empty()).then_some(Recap { text, omitted: recap.omitted }))
}

/// Which step and turn the notes of a node belong to.
pub(super) async fn heading(
    inner: &Inner,
    session: &Session,
    position: &Position,
    at: NodeId,
) -> Result<String> {
    let dag = session.dag(position.run)?;
    let node = dag.node(at).ok_or_else(|| session.broken("a node is missing"))?;
    // Notes stand at the node that their step led to; others at the step that was pending.
    let (of, what) = match node.kind {
        NodeKind::Step => (node.parent.unwrap_or(at), ""),
        NodeKind::Checkpoint => (at, ", checkpoint"),
        NodeKind::BlockedAttempt => (at, ", blocked attempt"),
    };
    let Some(key) = position.pending_at(inner, session, of).await? else {
        return Ok(format!("[end of the run{what}]"));
    };
    let turn = key.loop_path.last().map(|turn| format!(", turn {}", turn.iteration + 1));
    let heading = format!("[{}{}{what}]", key.step, turn.unwrap_or_default());
    Ok(truncate(&heading, HEADING_MAX))
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
