//! Steps that the engine performs itself, in the middle of a guided run.

use cairn_core::canonical;
use cairn_core::digest::Digest;
use cairn_core::event::guided::AdvanceOutcome;
use cairn_core::event::limits;
use cairn_core::guided::decide;
use cairn_core::guided::render::fill;
use cairn_core::guided::scene::{Scene, scene};
use cairn_core::id::{NodeId, RunId};
use cairn_core::plan::Action;
use cairn_core::text::truncate;
use cairn_core::token::compact::Attempt;
use cairn_store as store;
use serde_json::{Value, json};

use super::input::DEPTH_MAX;
use super::position::Position;
use super::session::Session;
use super::{Inner, minter, rejected, workspace};
use crate::error::{Error, Result};
use crate::performer::{Ctx, Failed, Outcome};

/// How many steps in a row the engine performs before it answers.
const CHAIN_MAX: usize = 1000;
/// How long the outcomes before a prompt may be together, and how long each.
const OUTCOMES_MAX: usize = 8 << 10;
const OUTCOME_MAX: usize = 4096;
/// What stands for the outcomes that do not fit.
const EARLIER: &str = "[TRUNCATED] earlier outcomes of the engine left out, the latest kept";

impl Inner {
    /// Performs what the engine owes at a node and behind it; gives the node where somebody
    /// else is to act. What was recorded is not done again.
    pub(super) async fn perform_owed(
        &self,
        session: &mut Session,
        run: RunId,
        from: NodeId,
    ) -> Result<NodeId> {
        let mut node = from;
        // Whatever is recorded is only walked along, so that every call gets further. A step
        // takes two rounds: it is performed, and then it is recorded.
        let recorded = session.dag(run)?.nodes().len();
        for _ in 0..recorded + 2 * CHAIN_MAX {
            let position = Position::load(self, session, run, node).await?;
            let Some(step) = position.step() else { return Ok(node) };
            let Action::Typed { config, r#type } = &step.action else { return Ok(node) };
            let attempt = Attempt::FIRST.id(node);
            if let Some(recorded) = session.view.attempts.of(node, attempt) {
                match recorded.outcome {
                    AdvanceOutcome::Advanced { to_node_id } => node = to_node_id,
                    AdvanceOutcome::Blocked { .. } => return Ok(node),
                }
                continue;
            }
            let seen = scene(&position.plan, &position.context, position.loop_stack());
            let instance = position.state.pending().map(|key| key.to_string()).unwrap_or_default();
            let ctx = Ctx {
                workspace: workspace::known_root(&session.view)
                    .or_else(|| self.options.workspace.clone()),
                idempotency_key: Digest::of_parts(
                    "step",
                    &[&run.to_string(), &node.to_string(), &instance],
                ),
            };
            let outcome = match self.performers.get(r#type.as_str()) {
                Some(performer) => performer.perform(filled(&config.0, &seen), &ctx).await,
                None => {
                    Err(Failed(format!("this program has no step type `{type}`", type = r#type)))
                }
            };
            let mut outcome = outcome.unwrap_or_else(|Failed(message)| Outcome {
                notes: format!("it could not be performed: {message}"),
                output: json!({"error": message}),
                ends: false,
            });
            let save_as = config.0.get("saveAs").and_then(Value::as_str);
            if let Err(fault) = is_keepable(save_as, &outcome.output) {
                outcome.notes.push_str(&format!("\nWhat came out was not kept: {fault}"));
                outcome.output = json!({"error": fault});
            }
            outcome.notes = format!("The engine performed `{}`: {}", step.id, outcome.notes);
            let told = decide::Outcome {
                attempt,
                save_as,
                output: &outcome.output,
                notes: &outcome.notes,
                ends: outcome.ends,
            };
            let decided = decide::perform(position.here(session), told, &mut minter()?);
            let decided = decided.map_err(|rejection| rejected(rejection, ""))?;
            match self.append(session, run, decided).await {
                Ok(()) => {}
                Err(Error::Store(
                    store::Error::Conflict { .. } | store::Error::PartlyRecorded { .. },
                )) => self.sync(session).await?,
                Err(error) => return Err(error),
            }
        }
        Err(session.broken("the engine was asked for too many steps in a row"))
    }

    /// What the engine did right before a node, oldest first, as much of the latest as fits.
    pub(super) async fn done_before(
        &self,
        session: &Session,
        position: &Position,
    ) -> Result<Vec<String>> {
        let dag = session.dag(position.run)?;
        let mut told = Vec::new();
        let mut room = OUTCOMES_MAX;
        for at in dag.path_back(position.node) {
            let Some(parent) = at.parent else { break };
            let step = position.step_at(self, session, parent).await?;
            if !step.is_some_and(|step| matches!(step.action, Action::Typed { .. })) {
                break;
            }
            let notes = session.view.outputs.notes(at.id).unwrap_or_default();
            let notes = truncate(notes, OUTCOME_MAX);
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
fn is_keepable(key: Option<&str>, output: &Value) -> Result<(), String> {
    let whole = json!({key.unwrap_or_default(): output});
    match canonical::to_vec_within(&whole, DEPTH_MAX) {
        Ok(bytes) if bytes.len() <= limits::CONTEXT => Ok(()),
        Ok(bytes) => {
            Err(format!("it has {} bytes, and at most {} fit", bytes.len(), limits::CONTEXT))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The config with values in the place of paths. A text that is one path alone keeps the
/// value's type.
fn filled(config: &Value, seen: &Scene<'_>) -> Value {
    match config {
        Value::String(text) => {
            let alone = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
            let alone = alone.map(str::trim).filter(|path| !path.contains(['{', '}']));
            let value = alone.and_then(|path| cairn_core::guided::condition::lookup(seen, path));
            match value {
                Some(value) => value.into_owned(),
                None => Value::String(fill(text, seen).prompt),
            }
        }
        Value::Array(items) => items.iter().map(|item| filled(item, seen)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (name.clone(), filled(value, seen));
            Value::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}
