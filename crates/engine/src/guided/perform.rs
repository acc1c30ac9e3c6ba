//! Steps that the engine performs itself, in the middle of a guided run.

use std::sync::Arc;
use std::time::Duration;

use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_core::event::guided::{AdvanceOutcome, NodeKind, OutputPayload};
use cairn_core::event::limits;
use cairn_core::guided::condition::lookup;
use cairn_core::guided::decide::{self, Held, Role};
use cairn_core::guided::performed::Performed;
use cairn_core::guided::render::fill;
use cairn_core::guided::scene::{Scene, scene};
use cairn_core::id::{AttemptId, NodeId, RunId};
use cairn_core::plan::Action;
use cairn_core::projection::context::merge;
use cairn_core::text::truncate;
use cairn_core::token::compact::Attempt;
use cairn_store as store;
use serde_json::{Map, Value, json};

use super::input::DEPTH_MAX;
use super::position::Position;
use super::session::Session;
use super::{Inner, TRIES_MAX, blobs, minter, rejected, workspace};
use crate::error::{Error, Result};
use crate::performer::{Ctx, Failed, Outcome};

/// How long the outcomes before a prompt may be together, and how long each.
const OUTCOMES_MAX: usize = 8 << 10;
const OUTCOME_MAX: usize = 4096;
/// What stands for the outcomes that do not fit.
const EARLIER: &str = "[TRUNCATED] earlier outcomes of the engine left out, the latest kept";
/// How many steps in a row the engine performs before it answers.
const CHAIN_MAX: usize = 1000;

impl Inner {
    /// Performs what the engine owes at a node and behind it; gives the node where somebody
    /// else is to act, or where to go on later. What was recorded is not done again.
    pub(super) async fn perform_owed(
        &self,
        session: &mut Session,
        run: RunId,
        from: NodeId,
    ) -> Result<NodeId> {
        let (mut node, mut performed) = (from, 0);
        loop {
            let position = Position::load(self, session, run, node).await?;
            if !position.is_owed_by_engine() {
                return Ok(node);
            }
            let attempt = Attempt::FIRST.id(node);
            match session.view.attempts.of(node, attempt).map(|recorded| &recorded.outcome) {
                Some(AdvanceOutcome::Advanced { to_node_id }) => node = *to_node_id,
                Some(AdvanceOutcome::Blocked { .. }) => return Ok(node),
                None if performed == CHAIN_MAX => return Ok(node),
                None => {
                    self.perform(session, run, node, attempt, None).await?;
                    performed += 1;
                }
            }
        }
    }

    /// Performs the step that is pending at a node, as one attempt at it.
    ///
    /// One process at a time performs the steps of a session; what another has done meanwhile
    /// is not done again. With `ack` somebody goes on from the node.
    pub(super) async fn perform(
        &self,
        session: &mut Session,
        run: RunId,
        node: NodeId,
        attempt: AttemptId,
        ack: Option<decide::Ack<'_>>,
    ) -> Result<()> {
        let _lease =
            self.store.leases.acquire(session.id, "perform a step").await.map_err(|error| {
                match error {
                    error @ store::Error::Owned { .. } => Error::TokenSessionLocked(error),
                    other => Error::Store(other),
                }
            })?;
        self.sync(session).await?;
        if session.view.attempts.of(node, attempt).is_some() {
            return Ok(());
        }
        let position = Position::load(self, session, run, node).await?;
        let Some(owed) = position.owed() else { return Ok(()) };
        let held = self.held(session, run, node).await?.filter(|held| !held.failed);
        let done = match held {
            // It turned out well; only what came behind it kept the run.
            Some(held) => Done { output: held.output, notes: held.notes, ..Done::default() },
            None => self.done(session, &position, owed, attempt, ack).await,
        };
        let told = decide::Outcome {
            attempt,
            save_as: owed.save_as,
            output: &done.output,
            notes: &done.notes,
            failed: done.failed,
            ends: done.ends,
        };
        // What has been performed is recorded, whatever else happens to the run meanwhile.
        for _ in 0..TRIES_MAX {
            let decided =
                decide::perform(position.here(session), told, ack, &mut minter(&*self.host)?);
            let decided = decided.map_err(|rejection| rejected(rejection, ""))?;
            self.append_or_look(session, run, decided).await?;
            if session.view.attempts.of(node, attempt).is_some() {
                return Ok(());
            }
        }
        Err(store::Error::Busy { session: session.id, waiting: TRIES_MAX }.into())
    }

    /// Does what a step asks for.
    async fn done(
        &self,
        session: &Session,
        position: &Position,
        owed: Performed<'_>,
        attempt: AttemptId,
        ack: Option<decide::Ack<'_>>,
    ) -> Done {
        let mut context = position.context.clone();
        if let Some(ack) = ack {
            merge(&mut context, ack.context);
        }
        let seen = scene(&position.plan, &context, position.loop_stack());
        let ctx = Ctx {
            workflow_id: position.plan.workflow_id.clone(),
            workflow_key: position.plan.workflow_id.clone(),
            session: session.id,
            workspace: workspace::of_run(&session.view, position.run),
            idempotency_key: key(position, attempt),
            chain: 0,
            trace: None,
            timeout: Duration::MAX,
            assets: Arc::default(),
            secrets: Vec::new(),
            hosts: position.plan.policy.hosts.clone(),
        };
        let r#type = owed.r#type.as_str();
        let outcome = match (self.performers.get(r#type), filled(owed.config, &seen)) {
            (_, Err(failed)) => Err(failed),
            (None, _) => {
                let message = format!("this program has no step type `{type}`", type = r#type);
                Err(Failed::new("STEP_TYPE", message))
            }
            (Some(performer), Ok(config)) => match self.performers.end_left(session.id).await {
                Ok(()) => performer.perform(config, &ctx).await,
                Err(failed) => Err(failed),
            },
        };
        let mut done = Done::from(outcome);
        if let Err(fault) = is_keepable(&context, owed.save_as, &done.output) {
            done.notes.push_str(&format!("\nWhat came out was not kept: {fault}"));
            done.output = json!({"error": fault});
        }
        done.notes = format!("The engine performed `{}`: {}", owed.step, done.notes);
        done
    }

    /// What came of a step at a node where the run stayed, the latest of several.
    pub(super) async fn held(
        &self,
        session: &Session,
        run: RunId,
        node: NodeId,
    ) -> Result<Option<Held>> {
        // The attempt that made the node, where one was blocked, and those made at it.
        let parent = session.dag(run)?.node(node).and_then(|node| node.parent);
        let mut attempts =
            parent.map(|parent| session.view.attempts.at(parent)).unwrap_or_default();
        attempts.retain(|attempt| decide::blocked_at(*attempt) == node);
        attempts.extend(session.view.attempts.at(node));
        for output in session.view.outputs.standing(node).rev() {
            let OutputPayload::ArtifactRef { sha256, .. } = &output.payload else { continue };
            if attempts.iter().any(|attempt| Role::Held.of(*attempt, *sha256) == output.id) {
                return Ok(Held::read(&blobs::artifact(&self.store, *sha256).await?));
            }
        }
        Ok(None)
    }

    /// What the engine did right before a node, oldest first, as much of the latest as fits.
    pub(super) async fn done_before(
        &self,
        session: &Session,
        position: &Position,
    ) -> Result<Vec<String>> {
        let dag = session.dag(position.run)?;
        let (mut told, mut room) = (Vec::new(), OUTCOMES_MAX);
        for at in dag.path_back(position.node) {
            let Some(parent) = at.parent else { break };
            if at.kind != NodeKind::Step {
                continue;
            }
            let step = position.step_at(self, session, parent).await?;
            if !step.is_some_and(|step| matches!(step.action, Action::Typed { .. })) {
                break;
            }
            let first = session.view.outputs.history(at.id).first();
            let Some(OutputPayload::Notes { notes_markdown }) = first.map(|o| &o.payload) else {
                continue;
            };
            let notes = truncate(notes_markdown, OUTCOME_MAX);
            let Some(left) = room.checked_sub(notes.len()) else {
                told.push(EARLIER.to_owned());
                break;
            };
            room = left;
            told.push(notes);
        }
        told.reverse();
        Ok(told)
    }
}

/// Whether an outcome can go into the log, under its key of the context.
fn is_keepable(
    context: &Map<String, Value>,
    key: Option<&str>,
    output: &Value,
) -> Result<(), String> {
    let whole = json!({key.unwrap_or_default(): output});
    if let (Some(key), Ok(bytes)) = (key, canonical::to_vec(context)) {
        let other = context.get(key).map_or(0, |value| value.to_string().len());
        let all = bytes.len().saturating_sub(other) + output.to_string().len();
        if all > limits::CONTEXT_TOTAL {
            let max = limits::CONTEXT_TOTAL;
            return Err(format!("the run's context would have {all} bytes, and at most {max} fit"));
        }
    }
    match canonical::to_vec_within(&whole, DEPTH_MAX) {
        Ok(bytes) if bytes.len() <= limits::CONTEXT => Ok(()),
        Ok(bytes) => {
            Err(format!("it has {} bytes, and at most {} fit", bytes.len(), limits::CONTEXT))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// What was done.
#[derive(Default)]
struct Done {
    output: Value,
    notes: String,
    failed: bool,
    ends: bool,
}

impl From<std::result::Result<Outcome, Failed>> for Done {
    fn from(outcome: std::result::Result<Outcome, Failed>) -> Self {
        match outcome {
            Ok(Outcome { output, notes, ends, fault, .. }) => {
                let failed = fault.is_some() || output.get("ok") == Some(&Value::Bool(false));
                Self { output, notes, failed, ends }
            }
            Err(Failed { message, .. }) => Self {
                output: json!({"error": message}),
                notes: format!("it could not be performed: {message}"),
                failed: true,
                ends: false,
            },
        }
    }
}

/// What a repetition of the same attempt carries too; a fork of it does not.
fn key(position: &Position, attempt: AttemptId) -> Digest {
    let instance = position.state.pending().map(|key| key.to_string()).unwrap_or_default();
    let (run, node) = (position.run, position.node);
    let parts = [run.to_string(), node.to_string(), instance, attempt.to_string()];
    Digest::of_parts("step", &parts.each_ref().map(String::as_str))
}

/// The config with values in the place of paths. A text that is one path alone keeps the
/// value's type. A command is never filled in: data does not become program text.
fn filled(config: &Value, seen: &Scene<'_>) -> Result<Value, Failed> {
    match config {
        Value::String(text) => {
            let alone = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
            let alone = alone.map(str::trim).filter(|path| !path.contains(['{', '}']));
            if let Some(value) = alone.and_then(|path| lookup(seen, path)) {
                return Ok(value.into_owned());
            }
            let shown = fill(text, seen);
            match shown.unset.first() {
                None => Ok(Value::String(shown.prompt)),
                Some(name) => {
                    Err(Failed::new("STEP_UNSET", format!("`{name}` is not set in the context")))
                }
            }
        }
        Value::Array(items) => items.iter().map(|item| filled(item, seen)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| match name.as_str() {
                "command" => Ok((name.clone(), value.clone())),
                _ => Ok((name.clone(), filled(value, seen)?)),
            };
            members.iter().map(member).collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        other => Ok(other.clone()),
    }
}
