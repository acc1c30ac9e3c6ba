//! What workflows are given beside their event: settings, and secrets from the vault.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cairn_core::capabilities::asks_models;
use cairn_core::plan::Plan;
use cairn_store::port::documents::Documents;
use serde_json::Value;

use crate::catalog::Identity;
use crate::error::Result;
use crate::flow::{Bindings, Environment, Redact};
use crate::redact::Redactor;
use crate::secrets::{Held, Scope, Secret, Stamps, Vault};
use crate::settings::{Files, Settings};

/// The keys to the models that runs ask: nothing that is recorded may hold them.
#[async_trait]
pub trait ModelKeys: Send + Sync {
    /// All that are there, by name.
    async fn all(&self) -> Result<BTreeMap<String, Secret>>;
}

/// No model is known.
pub struct NoModels;

#[async_trait]
impl ModelKeys for NoModels {
    async fn all(&self) -> Result<BTreeMap<String, Secret>> {
        Ok(BTreeMap::new())
    }
}

/// The settings and secrets of a store.
pub struct Kept {
    documents: Arc<dyn Documents>,
    vault: Vault,
    /// The keys to the models that the configuration knows.
    keys: Arc<dyn ModelKeys>,
    /// What was looked up for workflows, as long as the vault is what it was then.
    known: Mutex<(Option<Stamps>, BTreeMap<Asked, Bindings>)>,
}

/// A workflow, the names of the secrets that its plan asks for, and whether it asks models.
type Asked = (Identity, Vec<String>, bool);
/// For how many of them what was looked up is kept.
const KNOWN_MAX: usize = 256;

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
        let asked = plan.env.iter().filter(|field| field.secret).map(|field| field.name.clone());
        let asked: Asked = (workflow.clone(), asked.collect(), asks_models(plan));
        if asked.1.is_empty() && !asked.2 {
            return Ok(Bindings::default());
        }
        let stamps = self.vault.stamps().await?;
        if let Some(known) = self.known(&stamps, &asked) {
            return Ok(known);
        }
        let looked_up = self.look_up(&asked).await?;
        // What changed meanwhile is not known to be what was looked up.
        if self.vault.stamps().await? == stamps {
            self.keep(stamps, asked, &looked_up);
        }
        Ok(looked_up)
    }
}

impl Kept {
    /// What a store keeps for workflows.
    #[must_use]
    pub fn new(documents: Arc<dyn Documents>, vault: Vault, keys: Arc<dyn ModelKeys>) -> Self {
        Self { documents, vault, keys, known: Mutex::default() }
    }

    fn known(&self, stamps: &Stamps, asked: &Asked) -> Option<Bindings> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.get(asked).filter(|_| known.0.as_ref() == Some(stamps)).cloned()
    }

    fn keep(&self, stamps: Stamps, asked: Asked, looked_up: &Bindings) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, all) = &mut *known;
        if at.as_ref() != Some(&stamps) || all.len() >= KNOWN_MAX {
            all.clear();
        }
        *at = Some(stamps);
        all.insert(asked, looked_up.clone());
    }

    /// Looks up the secrets that are there for a workflow.
    async fn look_up(&self, (workflow, names, asks_models): &Asked) -> Result<Bindings> {
        let scope = Scope::Workflow(workflow.clone());
        let held = self.vault.list().await?;
        let is_there = |name: &&String| {
            let fits = |held: &&Held| held.scope == scope || held.scope == Scope::Global;
            held.iter().filter(fits).any(|held| held.name == **name)
        };
        let mut secrets: BTreeMap<String, Secret> = BTreeMap::new();
        for name in names.iter().filter(is_there) {
            secrets.insert(name.clone(), self.vault.reveal(&scope, name).await?);
        }
        let keys = match asks_models {
            true => self.keys.all().await?,
            false => BTreeMap::new(),
        };
        let hidden = secrets.iter().chain(&keys).map(|(name, secret)| (name.as_str(), secret));
        let hidden = Redactor::new(hidden);
        let values = secrets.iter().map(|(name, secret)| (name.clone(), secret.expose().into()));
        Ok(Bindings::new(values.collect(), Arc::new(Hidden(hidden))))
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
