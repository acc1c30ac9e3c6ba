//! What workflows are given beside their event: settings, and secrets from the vault.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cairn_core::plan::Plan;
use cairn_engine::catalog::Identity;
use cairn_engine::error::Result;
use cairn_engine::flow::{Bindings, Environment, Redact};
use cairn_engine::redact::Redactor;
use cairn_engine::secrets::{Held, Scope, Secret, Vault};
use cairn_engine::settings::{Files, Settings};
use cairn_store::port::documents::Documents;
use serde_json::Value;

/// The settings and secrets of a store.
pub(super) struct Kept {
    pub(super) documents: Arc<dyn Documents>,
    pub(super) vault: Vault,
}

#[async_trait]
impl Environment for Kept {
    async fn settings(&self, workflow: &Identity, plan: &Plan) -> Result<Value> {
        if plan.env.is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let files = Files::of(&self.documents, workflow)?;
        let settings = Settings::with_secrets(plan, &files, &self.vault).await?;
        settings.ready(plan, &files).map(Value::Object)
    }

    async fn secrets(&self, workflow: &Identity, plan: &Plan) -> Result<Bindings> {
        let scope = Scope::Workflow(workflow.clone());
        let held = self.held(&scope, plan).await?;
        let mut secrets: BTreeMap<String, Secret> = BTreeMap::new();
        let asked = plan.env.iter().filter(|field| field.secret);
        for field in asked.filter(|field| held.iter().any(|held| held.name == field.name)) {
            let secret = self.vault.reveal(&scope, &field.name).await?;
            secrets.insert(field.name.clone(), secret);
        }
        let hidden = Redactor::new(secrets.iter().map(|(name, secret)| (name.as_str(), secret)));
        let values = secrets.iter().map(|(name, secret)| (name.clone(), secret.expose().into()));
        Ok(Bindings { values: values.collect(), redact: Some(Arc::new(Hidden(hidden))) })
    }
}

impl Kept {
    /// The secrets that are there for a workflow.
    async fn held(&self, own: &Scope, plan: &Plan) -> Result<Vec<Held>> {
        if !plan.env.iter().any(|field| field.secret) {
            return Ok(Vec::new());
        }
        let mut held = self.vault.list().await?;
        held.retain(|held| held.scope == *own || held.scope == Scope::Global);
        Ok(held)
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
