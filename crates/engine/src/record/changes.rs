//! The changes that are made to anything but runs. Doors ask for them here and nowhere else.

use std::path::Path;

use cairn_core::event::By;
use cairn_core::id::SessionId;
use cairn_core::keyring::Keyring;
use cairn_core::plan::Plan;
use cairn_store::Store;
use cairn_store::bundle::{self, ExportInfo, Salvaged};
use cairn_store::gc::{self, Policy, Report};
use serde_json::{Value, json};

use super::{Action, Deed, Object, Record};
use crate::catalog::Identity;
use crate::error::Result;
use crate::secrets::{Scope, Secret, Vault};
use crate::settings::{self, Files, Rebound};

/// Makes changes on behalf of somebody.
#[derive(Clone)]
pub struct Changes {
    record: Record,
    store: Store,
    by: By,
}

impl Changes {
    /// Changes to a store that somebody asks for.
    #[must_use]
    pub fn new(record: &Record, store: &Store, by: By) -> Self {
        Self { record: record.clone(), store: store.clone(), by }
    }

    /// A change that this somebody asks for.
    #[must_use]
    pub fn deed(&self, action: Action, object: Object, arguments: &Value) -> Deed {
        Deed { by: self.by.clone(), action, object, arguments: None }.with(arguments)
    }

    /// Makes a change that is not one of these.
    pub async fn make<T, E: From<crate::Error> + super::Coded>(
        &self,
        deed: Deed,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.record.change(deed, work).await
    }

    /// Keeps a secret; gives its version.
    pub async fn set_secret(
        &self,
        vault: &Vault,
        (scope, name): (&Scope, &str),
        value: &Secret,
        now_ms: u64,
    ) -> Result<u64> {
        let deed = self.about_secret(Action::SetSecret, scope, name);
        self.record.change(deed, vault.set(scope, name, value, now_ms)).await
    }

    /// Forgets a secret. Says whether there was one.
    pub async fn remove_secret(&self, vault: &Vault, scope: &Scope, name: &str) -> Result<bool> {
        let deed = self.about_secret(Action::RemoveSecret, scope, name);
        self.record.change(deed, vault.remove(scope, name)).await
    }

    /// Seals every secret under a fresh master key; gives how many there are.
    pub async fn rotate_secrets(&self, vault: &Vault, to: Option<&Path>) -> Result<usize> {
        let to_file = to.map(|to| to.display().to_string());
        let deed =
            self.deed(Action::RotateSecrets, Object::default(), &json!({"keyFile": to_file}));
        self.record.change(deed, vault.rotate(to)).await
    }

    /// Gives a setting a value; gives where it is kept.
    pub async fn set_setting(
        &self,
        (plan, files): (&Plan, &Files),
        name: &str,
        value: &Value,
        beside: bool,
    ) -> Result<String> {
        let arguments = json!({"name": name, "value": value, "beside": beside});
        let deed = self.deed(Action::SetSetting, of_workflow(&files.workflow, name), &arguments);
        self.record.change(deed, settings::set(plan, files, name, value, beside)).await
    }

    /// Takes the value of a setting away. Says whether there was one.
    pub async fn unset_setting(
        &self,
        (plan, files): (&Plan, &Files),
        name: &str,
        beside: bool,
    ) -> Result<bool> {
        let arguments = json!({"name": name, "beside": beside});
        let deed = self.deed(Action::UnsetSetting, of_workflow(&files.workflow, name), &arguments);
        self.record.change(deed, settings::unset(plan, files, name, beside)).await
    }

    /// Binds what is kept for a file that was moved to its new place.
    pub async fn rebind(&self, vault: &Vault, from: &Identity, to: &Identity) -> Result<Rebound> {
        let arguments = json!({"from": from.place(), "to": to.place()});
        let deed = self.deed(Action::RebindWorkflow, of_workflow(to, from.place()), &arguments);
        self.record.change(deed, settings::rebind(&self.store.documents, vault, from, to)).await
    }

    /// Signs tokens of runs with a fresh key from now on.
    pub async fn rotate_keys(&self) -> Result<Keyring> {
        let deed = self.deed(Action::RotateKeys, Object::default(), &Value::Null);
        self.record.change(deed, async { Ok(self.store.keys.rotate().await?) }).await
    }

    /// A whole session as a bundle.
    pub async fn export(&self, session: SessionId, info: ExportInfo) -> Result<Vec<u8>> {
        let deed = self.about_session(Action::ExportSession, session, &json!({"kind": "bundle"}));
        let work = async { Ok(bundle::export(&self.store, session, info).await?) };
        self.record.change(deed, work).await
    }

    /// What is sound of a session as a bundle.
    pub async fn salvage(&self, session: SessionId, info: ExportInfo) -> Result<Salvaged> {
        let deed = self.about_session(Action::ExportSession, session, &json!({"kind": "partial"}));
        let work = async { Ok(bundle::salvage(&self.store, session, info).await?) };
        self.record.change(deed, work).await
    }

    /// Removes a session for good.
    pub async fn delete_session(&self, session: SessionId) -> Result<()> {
        let deed = self.about_session(Action::DeleteSession, session, &Value::Null);
        let work = async { Ok(self.store.sessions.delete(session, None).await?) };
        self.record.change(deed, work).await
    }

    /// Keeps a session whatever its age, or no more.
    pub async fn keep_session(&self, session: SessionId, kept: bool) -> Result<()> {
        let deed = self.about_session(Action::KeepSession, session, &json!({"kept": kept}));
        let work = async { Ok(self.store.sessions.keep(session, kept).await?) };
        self.record.change(deed, work).await
    }

    /// Removes what nobody needs any more; what would only be looked at changes nothing.
    pub async fn collect(&self, policy: &Policy, now_ms: u64) -> Result<Report> {
        let work = async {
            let report = gc::collect(&self.store, policy, now_ms).await?;
            // What came from elsewhere goes by the same rules, with what it brought.
            if let Some(papers) = self.store.papers.find()? {
                gc::collect(&papers, policy, now_ms).await?;
            }
            Ok(report)
        };
        if policy.dry_run {
            return work.await;
        }
        let arguments = json!({"olderThanMs": policy.older_than_ms});
        let deed = self.deed(Action::CollectSessions, Object::default(), &arguments);
        self.record.change(deed, work).await
    }

    fn about_session(&self, action: Action, session: SessionId, arguments: &Value) -> Deed {
        let object = Object { session: Some(session), ..Object::default() };
        self.deed(action, object, arguments)
    }

    fn about_secret(&self, action: Action, scope: &Scope, name: &str) -> Deed {
        let object = match scope {
            Scope::Global => Object { name: name.to_owned(), ..Object::default() },
            Scope::Workflow(workflow) => of_workflow(workflow, name),
        };
        self.deed(action, object, &json!({"name": name, "scope": scope.to_string()}))
    }
}

fn of_workflow(workflow: &Identity, name: &str) -> Object {
    let workflow = Some(workflow.id().to_owned());
    Object { workflow, name: name.to_owned(), ..Object::default() }
}
