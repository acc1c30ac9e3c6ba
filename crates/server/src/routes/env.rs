//! `/api/v1/workflows/{id}/env`: the settings and secrets of a workflow.
//!
//! Values are kept in the data directory. A secret can be set and forgotten, and never read.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::HeaderMap;
use axum::routing::{delete, get, put};
use cairn_api::Error;
use cairn_api::env::{Checked, Env, SecretSet, SetSecret, SetValue, Setting, Unset};
use cairn_core::plan::Plan;
use cairn_engine as engine;
use cairn_engine::secrets::{Scope, Secret, Vault};
use cairn_engine::settings::{self, Files, Settings};

use super::workflows::find_for;
use super::{Route, Shared};
use crate::access::{Access, Action, Caller};
use crate::answer::Failure;
use crate::body;
use crate::clock::now_ms;

pub(super) fn routes() -> Vec<Route> {
    let read = Access::Needs(Action::ReadWorkflows);
    let edit = Access::Needs(Action::EditSettings);
    let seal = Access::Needs(Action::WriteSecrets);
    let (all, one) = ("/api/v1/workflows/{id}/env", "/api/v1/workflows/{id}/env/{name}");
    let (checked, secret) =
        ("/api/v1/workflows/{id}/env-check", "/api/v1/workflows/{id}/secrets/{name}");
    vec![
        Route::get(all, read, "List the settings of a workflow with their values", get(list))
            .gives::<Env>(),
        Route::get(checked, read, "Say whether a run would find all that it needs", get(check))
            .gives::<Checked>(),
        Route::put(one, edit, "Give a setting of a workflow a value", put(set))
            .takes::<SetValue>()
            .gives::<Setting>(),
        Route::delete(one, edit, "Take the value of a setting away", delete(unset))
            .gives::<Unset>(),
        Route::put(secret, seal, "Give a secret of a workflow a value", put(seal_secret))
            .takes::<SetSecret>()
            .gives::<SecretSet>(),
        Route::delete(secret, seal, "Forget a secret of a workflow", delete(forget_secret))
            .gives::<Unset>(),
    ]
}

/// A workflow whose settings are asked about, and where their values are.
struct Target {
    plan: Plan,
    files: Files,
    vault: Vault,
}

impl Target {
    async fn find(shared: &Shared, caller: &Caller, id: &str) -> Result<Self, Error> {
        let found = find_for(shared, caller, id).await?;
        let plan = found.compiled()?.plan.clone();
        let files = Files::of(&shared.store.documents, found.identity())?;
        Ok(Self { files, plan, vault: shared.automation.vault.clone() })
    }

    async fn settings(&self) -> engine::Result<Settings> {
        Settings::with_secrets(&self.plan, &self.files, &self.vault).await
    }

    /// The scope of its secrets. Only what it asks for can be one of them.
    fn secret(&self, name: &str) -> engine::Result<Scope> {
        if !settings::find(&self.plan, name)?.secret {
            return Err(engine::Error::Invalid {
                message: format!("`{name}` is no secret of `{}`", self.plan.workflow_id),
                fix: "set it as a setting, under `env`".to_owned(),
                details: serde_json::Value::Null,
            });
        }
        Ok(Scope::Workflow(self.files.workflow.clone()))
    }
}

type One = Result<Path<(String, String)>, PathRejection>;

/// The workflow and the setting that a path names.
async fn named(shared: &Shared, caller: &Caller, at: One) -> Result<(Target, String), Error> {
    let Path((id, name)) = at.map_err(|_| Error::PathUnknown)?;
    Ok((Target::find(shared, caller, &id).await?, name))
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Env>, Failure> {
    let id = id.map(|Path(id)| id).unwrap_or_default();
    let target = Target::find(&shared, &caller, &id).await?;
    Ok(Json(Env::of(&target.plan, &target.settings().await?)))
}

async fn check(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Checked>, Failure> {
    let id = id.map(|Path(id)| id).unwrap_or_default();
    let target = Target::find(&shared, &caller, &id).await?;
    Ok(Json(Checked::of(&target.plan, &target.settings().await?)))
}

async fn set(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    at: One,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Setting>, Failure> {
    let (target, name) = named(&shared, &caller, at).await?;
    let SetValue { value } = body::json(&headers, body).await?;
    let at = (&target.plan, &target.files);
    caller.changes(&shared).set_setting(at, &name, &value, false).await?;
    let field = settings::find(&target.plan, &name)?;
    Ok(Json(Setting::of(field, &target.settings().await?, &target.plan.env)))
}

async fn unset(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    at: One,
) -> Result<Json<Unset>, Failure> {
    let (target, name) = named(&shared, &caller, at).await?;
    let at = (&target.plan, &target.files);
    let removed = caller.changes(&shared).unset_setting(at, &name, false).await?;
    Ok(Json(Unset { name, removed }))
}

async fn seal_secret(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    at: One,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<SecretSet>, Failure> {
    let (target, name) = named(&shared, &caller, at).await?;
    let SetSecret { value } = body::json(&headers, body).await?;
    let (scope, value) = (target.secret(&name)?, Secret::new(value));
    let changes = caller.changes(&shared);
    let version = changes.set_secret(&target.vault, (&scope, &name), &value, now_ms()).await?;
    Ok(Json(SecretSet { name, version }))
}

async fn forget_secret(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    at: One,
) -> Result<Json<Unset>, Failure> {
    let (target, name) = named(&shared, &caller, at).await?;
    let scope = target.secret(&name)?;
    let removed = caller.changes(&shared).remove_secret(&target.vault, &scope, &name).await?;
    Ok(Json(Unset { name, removed }))
}
