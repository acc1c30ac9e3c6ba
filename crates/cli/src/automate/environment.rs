//! What workflows are given beside their event: settings from files, secrets from the vault.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::plan::Plan;
use cairn_engine::catalog::Identity;
use cairn_engine::error::{Error, Result};
use cairn_engine::flow::{Bindings, Environment, Redact};
use cairn_engine::redact::Redactor;
use cairn_engine::secrets::{Held, Scope, Secret, Vault};
use cairn_engine::settings::{Files, Settings};
use serde_json::Value;

/// The settings and secrets of a data directory.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) home: PathBuf,
    pub(super) vault: Vault,
}

#[async_trait]
impl Environment for Kept {
    async fn settings(&self, workflow: &Identity, plan: &Plan) -> Result<Value> {
        if plan.env.is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let (kept, workflow, plan) = (self.clone(), workflow.clone(), plan.clone());
        off_the_loop(move || kept.read_settings(&workflow, &plan)).await
    }

    async fn secrets(&self, workflow: &Identity, plan: &Plan) -> Result<Bindings> {
        let (kept, workflow, plan) = (self.clone(), workflow.clone(), plan.clone());
        off_the_loop(move || kept.read_secrets(workflow, &plan)).await
    }
}

/// Reads files where waiting for them holds nobody up.
async fn off_the_loop<T: Send + 'static>(
    read: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|error| Error::Broken(error.to_string()))?
}

impl Kept {
    fn read_settings(&self, workflow: &Identity, plan: &Plan) -> Result<Value> {
        let files = Files::of(&self.home, workflow);
        Settings::with_secrets(plan, &files, &self.vault)?.ready(plan, &files).map(Value::Object)
    }

    /// The secrets that are there for a workflow.
    fn held(&self, own: &Scope, plan: &Plan) -> Result<Vec<Held>> {
        if !plan.env.iter().any(|field| field.secret) {
            return Ok(Vec::new());
        }
        let mut held = self.vault.list()?;
        held.retain(|held| held.scope == *own || held.scope == Scope::Global);
        Ok(held)
    }

    fn read_secrets(&self, workflow: Identity, plan: &Plan) -> Result<Bindings> {
        let scope = Scope::Workflow(workflow);
        let held = self.held(&scope, plan)?;
        let mut secrets: BTreeMap<String, Secret> = BTreeMap::new();
        let asked = plan.env.iter().filter(|field| field.secret);
        for field in asked.filter(|field| held.iter().any(|held| held.name == field.name)) {
            secrets.insert(field.name.clone(), self.vault.reveal(&scope, &field.name)?);
        }
        let hidden = Redactor::new(secrets.iter().map(|(name, secret)| (name.as_str(), secret)));
        let values = secrets.iter().map(|(name, secret)| (name.clone(), secret.expose().into()));
        Ok(Bindings { values: values.collect(), redact: Some(Arc::new(Hidden(hidden))) })
    }
}

/// Takes the secrets of a workflow out of whatever is recorded.
struct Hidden(Redactor);

impl Redact for Hidden {
    fn value(&self, value: Value) -> Value {
        self.0.value(value)
    }

    fn text(&self, text: String) -> String {
        self.0.text(&text).into_owned()
    }
}
