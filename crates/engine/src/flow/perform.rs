//! Performing one step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_core::canonical::exact;
use cairn_core::capabilities;
use cairn_core::digest::Digest;
use cairn_core::event::engine::{Failure, Payload};
use cairn_core::flow::{Ask, Command, Fault, Graph, Outcome, Run, Secrets};
use cairn_core::id::{RunId, SessionId};
use cairn_core::instance::StepInstanceKey;
use cairn_core::plan::{Action, FailureKind, Plan};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::Evaluator;
use super::plans::Ready;
use super::trace::Try;
use crate::catalog::Identity;
use crate::error::{Error, Result};
use crate::host::{Host, unpanicked};
use crate::performer::{Ctx, Failed, Performers, UsedSecret};

/// Gives workflows their settings and secrets.
#[async_trait]
pub trait Environment: Send + Sync {
    /// The settings of a workflow, as an object; an error says which are missing.
    async fn settings(&self, workflow: &Identity, plan: &Plan) -> Result<Value>;

    /// The secrets of a workflow. What takes them out takes out the keys to models too, if the
    /// plan hands work to one.
    async fn secrets(&self, workflow: &Identity, plan: &Plan) -> Result<Bindings>;
}

/// No workflow has settings of its own.
pub struct NoSettings;

#[async_trait]
impl Environment for NoSettings {
    async fn settings(&self, _: &Identity, plan: &Plan) -> Result<Value> {
        let given = plan
            .env
            .iter()
            .filter_map(|field| Some((field.name.clone(), field.default.as_ref()?.0.clone())));
        Ok(given.collect())
    }

    async fn secrets(&self, _: &Identity, _: &Plan) -> Result<Bindings> {
        Ok(Bindings::default())
    }
}

/// The secrets of a workflow, by name: there are none without something that takes them out of
/// whatever is recorded.
#[derive(Clone, Default)]
pub struct Bindings(Option<(BTreeMap<String, String>, Arc<dyn Redact>)>);

impl Bindings {
    /// Secrets, and what takes them out of whatever is recorded.
    #[must_use]
    pub fn new(values: BTreeMap<String, String>, redact: Arc<dyn Redact>) -> Self {
        Self(Some((values, redact)))
    }
}

/// Takes secrets out of values.
pub trait Redact: Send + Sync {
    /// The value without secrets.
    fn value(&self, value: Value) -> Value;
    /// The text without secrets.
    fn text(&self, text: String) -> String;
}

impl Secrets for Bindings {
    fn reveal(&self, name: &str) -> Option<String> {
        self.0.as_ref().and_then(|(values, _)| values.get(name).cloned())
    }
}

/// The settings of a step that is to be performed.
pub(super) enum Settings {
    /// As they were recorded.
    Recorded(Value),
    /// With secrets, which are not recorded: they are put in when the step is performed.
    Secret(Box<Run>),
    /// Not to be had.
    Faulty(Fault),
}

impl Settings {
    pub(super) fn of(run: &Run, graph: &Graph, instance: &StepInstanceKey) -> Self {
        let recorded = run.state.steps.get(instance).and_then(|step| step.input.as_ref());
        match recorded {
            _ if graph.reads_secrets(&instance.step) => Self::Secret(Box::new(run.clone())),
            Some(Payload::Inline(value)) => Self::Recorded(value.0.clone()),
            _ => match run.settings(graph, instance, &Bindings::default()) {
                Ok(settings) => Self::Recorded(settings),
                Err(fault) => Self::Faulty(fault),
            },
        }
    }
}

/// A step that is to be performed.
pub(super) struct Work {
    pub(super) workflow: Identity,
    pub(super) session: SessionId,
    pub(super) step: Try,
    pub(super) key: Digest,
    /// How many runs led to its own.
    pub(super) chain: u32,
    /// The run that its own was forked from.
    pub(super) forked_from: Option<RunId>,
    pub(super) ready: Arc<Ready>,
    pub(super) settings: Settings,
    pub(super) slots: Arc<Semaphore>,
}

/// Performs steps.
pub(super) struct Steps {
    pub(super) host: Arc<dyn Host>,
    pub(super) performers: Performers,
    pub(super) environment: Arc<dyn Environment>,
    pub(super) evaluator: Arc<dyn Evaluator>,
    /// The places there are for all of them.
    pub(super) slots: Semaphore,
    /// How long one may take that does not say so.
    pub(super) timeout: Duration,
}

impl Steps {
    /// Performs a step; gives what to tell its run.
    pub(super) async fn perform(&self, work: Work) -> Command {
        let instance = work.step.instance.clone();
        // Of one workflow first, so that it cannot take all the places of the others.
        let own = Arc::clone(&work.slots);
        let _own = own.acquire().await;
        let _shared = self.slots.acquire().await;
        let begun = self.host.uptime();
        // One that panics fails, and takes nothing else along.
        let result = unpanicked(self.try_perform(work)).await.unwrap_or_else(|| {
            let message = "the program that performs the step has a fault; its log has more";
            Err(Fault::new("STEP_PANICKED", message))
        });
        let duration_ms =
            u64::try_from(self.host.uptime().saturating_sub(begun).as_millis()).unwrap_or(u64::MAX);
        Command::Complete { instance, result, duration_ms }
    }

    async fn try_perform(&self, work: Work) -> Result<Outcome, Fault> {
        let Work {
            workflow, session, step: trace, key, chain, forked_from, ready, settings, ..
        } = work;
        let instance = &trace.instance;
        let graph = &ready.graph;
        let found = graph.plan.steps.iter().find(|step| step.id == instance.step);
        let Some((step, r#type)) = found.and_then(|step| match &step.action {
            Action::Typed { r#type, .. } => Some((step, r#type)),
            Action::Prompt(_) => None,
        }) else {
            return Err(Fault::new("STEP_UNKNOWN", format!("the plan has no `{instance}`")));
        };
        let Some(performer) = self.performers.get(r#type.as_str()) else {
            let message = format!("this program has no step type `{type}`", type = r#type);
            return Err(Fault::new("STEP_TYPE", message));
        };
        // A step that names no secret may be told one by whoever was sent it before, and the
        // programs of an agent have the key to its model.
        let secrets = graph.plan.env.iter().any(|field| field.secret);
        let bindings = match secrets || capabilities::asks_models(&graph.plan) {
            true => self.environment.secrets(&workflow, &graph.plan).await,
            false => Ok(Bindings::default()),
        };
        let bindings = bindings.map_err(|error| Fault::new(error.code(), error.to_string()))?;
        let config = match settings {
            Settings::Recorded(config) => config,
            Settings::Faulty(fault) => return Err(fault),
            Settings::Secret(run) => {
                match self.secret_settings(&run, graph, instance, &bindings).await {
                    Ok(config) => config,
                    // What cannot be put together may be quoted.
                    Err(fault) => return redacted(Err(fault), &bindings),
                }
            }
        };
        let workspace = match performer.needs_workspace(&config) {
            true => self.performers.workspace(trace.run, forked_from).await.map_err(fault)?,
            false => None,
        };
        let timeout = step.timeout_ms.map_or(self.timeout, Duration::from_millis);
        let ctx = Ctx {
            workflow_id: graph.plan.workflow_id.clone(),
            workflow_key: workflow.key().to_owned(),
            session,
            workspace,
            idempotency_key: key,
            chain,
            timeout,
            assets: Arc::clone(&ready.assets),
            secrets: used(graph, instance),
            hosts: graph.plan.policy.hosts.clone(),
            trace: Some(trace),
        };
        let more = performer.preparation(&config).saturating_add(performer.grace());
        let limit = timeout.saturating_add(more);
        let done = self.host.within(limit, performer.perform(config, &ctx)).await;
        let done = match done {
            None => Err(late(timeout)),
            Some(Ok(outcome)) => match outcome.fault {
                Some(failed) => {
                    let (output, usage) = (Some(outcome.output), outcome.usage.map(Box::new));
                    Err(Fault { output, usage, ..fault(failed) })
                }
                None => {
                    let output = exact(outcome.output);
                    Ok(Outcome { output, case: outcome.case, usage: outcome.usage })
                }
            },
            Some(Err(failed)) => Err(fault(failed)),
        };
        redacted(done, &bindings)
            .map_err(|fault| Fault { output: fault.output.and_then(kept), ..fault })
    }

    /// Ends what whoever owned a session before left running: a try is not repeated beside the
    /// first one.
    pub(super) async fn end_left(&self, session: SessionId) -> Result<()> {
        let ended = self.performers.end_left(session).await;
        ended.map_err(|failed| Error::LeftRunning { session, message: failed.message })
    }

    /// The settings of a step with its secrets in them.
    async fn secret_settings(
        &self,
        run: &Run,
        graph: &Graph,
        instance: &StepInstanceKey,
        bindings: &Bindings,
    ) -> Result<Value, Fault> {
        match run.question(graph, instance, Ask::Settings, bindings) {
            Some((settings, context)) if settings.needs_worker() => {
                self.evaluator.evaluate(settings.source(), false, context).await
            }
            _ => run.settings(graph, instance, bindings),
        }
    }
}

/// Takes secrets out of what came of a step.
fn redacted(done: Result<Outcome, Fault>, bindings: &Bindings) -> Result<Outcome, Fault> {
    let Some((_, redact)) = &bindings.0 else { return done };
    match done {
        Ok(outcome) => Ok(Outcome { output: redact.value(outcome.output), ..outcome }),
        Err(mut fault) => {
            fault.error.message = redact.text(fault.error.message);
            fault.output = fault.output.map(|output| redact.value(output));
            Err(fault)
        }
    }
}

/// The secrets that a step's settings name, and where they may go.
fn used(graph: &Graph, instance: &StepInstanceKey) -> Vec<UsedSecret> {
    let names = graph.secrets_of(&instance.step);
    let field = |name: &String| graph.plan.env.iter().find(|field| field.name == *name);
    let hosts = |name: &String| field(name).map(|field| field.hosts.clone()).unwrap_or_default();
    names.iter().map(|name| UsedSecret { name: name.clone(), hosts: hosts(name) }).collect()
}

/// How many bytes are kept of what came of a step that failed.
const KEPT_MAX: usize = 8 << 10;
/// How many bytes are kept of a text in it.
const TEXT_MAX: usize = 2 << 10;

/// As much of what came of a step that failed as may be recorded: long texts lose their middle,
/// and what is too large even so is left out, the largest first.
fn kept(mut output: Value) -> Option<Value> {
    shorten(&mut output);
    let mut size = output.to_string().len();
    if size > KEPT_MAX {
        let members = output.as_object_mut()?;
        let sized = |(name, value): (&String, &Value)| (value.to_string().len(), name.clone());
        let mut by_size: Vec<(usize, String)> = members.iter().map(sized).collect();
        by_size.sort();
        while size > KEPT_MAX {
            let (bytes, largest) = by_size.pop()?;
            members.remove(&largest);
            size -= bytes;
        }
    }
    let says_nothing =
        output.is_null() || output.as_object().is_some_and(serde_json::Map::is_empty);
    (!says_nothing).then_some(output)
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > TEXT_MAX => {
            let head = text.floor_char_boundary(TEXT_MAX / 2);
            let tail = text.ceil_char_boundary(text.len() - TEXT_MAX / 2);
            let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
            *text = format!("{}\n[…]\n{}", part(0..head), part(tail..text.len()));
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

fn fault(failed: Failed) -> Fault {
    let Failed { code, message, kind, after_ms } = failed;
    let error = Failure { code: code.to_owned(), message };
    Fault { error, kind, after_ms, output: None, usage: None }
}

fn late(timeout: Duration) -> Fault {
    let message = format!("it took longer than its limit of {} ms", timeout.as_millis());
    Fault { kind: FailureKind::Timeout, ..Fault::new("STEP_TIMEOUT", message) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_of_a_failure_is_short() {
        let long = format!("begin{}end", "é".repeat(10_000));
        let found = kept(json!({"stderr": long, "exit_code": 3, "stdout": ""})).unwrap();
        let text = found["stderr"].as_str().unwrap();
        assert!(text.starts_with("begin") && text.ends_with("end") && text.len() < 2_100, "{text}");
        assert_eq!(found["exit_code"], 3);
        let many = kept(json!({"json": vec!["x"; 9_000], "status": 500})).unwrap();
        assert_eq!(many, json!({"status": 500}));
        for nothing in
            [json!(null), json!({}), json!(vec!["x"; 9_000]), json!({"json": vec![1; 9_000]})]
        {
            assert_eq!(kept(nothing), None);
        }
    }
}
