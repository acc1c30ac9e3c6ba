//! `/api/v1/workflows`: the workflows there are, and what is wrong with them.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use cairn_api::Error;
use cairn_api::call::{Validate, Validated, WorkflowShown, Workflows};
use cairn_api::workflow::Summary;
use cairn_engine as engine;
use cairn_engine::catalog::Found;

use super::{Route, Shared};
use crate::access::{Access, Action, Caller};
use crate::answer::Failure;
use crate::body;

pub(super) fn routes() -> Vec<Route> {
    let read = Access::Needs(Action::ReadWorkflows);
    vec![
        Route::get("/api/v1/workflows", read, "List the workflows", get(list)).gives::<Workflows>(),
        Route::get("/api/v1/workflows/{id}", read, "Show a workflow", get(show))
            .gives::<WorkflowShown>(),
        Route::post(
            "/api/v1/workflows/validate",
            read,
            "Say what is wrong with a text that may be a workflow",
            post(validate),
        )
        .takes::<Validate>()
        .gives::<Validated>(),
    ]
}

/// Asks something of the disk where waiting for it holds nobody up.
pub(super) async fn off_the_loop<T: Send + 'static>(
    ask: impl FnOnce() -> cairn_engine::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let asked = tokio::task::spawn_blocking(ask).await;
    Ok(asked.map_err(|error| Error::Internal(error.to_string()))??)
}

/// The workflow that an id, or the name part of one, means.
pub(super) async fn find(shared: &Shared, given: &str) -> Result<Arc<Found>, Error> {
    let (catalog, given) = (Arc::clone(&shared.automation.catalog), given.to_owned());
    off_the_loop(move || catalog.find(&given)).await
}

/// The workflow that an id means to somebody. To whom it is not covered, it is not there: no more
/// is said than of one that does not exist.
pub(super) async fn find_for(
    shared: &Shared,
    caller: &Caller,
    given: &str,
) -> Result<Arc<Found>, Error> {
    use engine::Error as E;
    let found = find(shared, given).await;
    if caller.workflows().is_empty() {
        return found;
    }
    match found {
        Ok(found) if caller.covers(found.identity()).is_ok() => return Ok(found),
        Ok(_) => caller.turned_away(shared, given.chars().take(64).collect()).await,
        Err(Error::Engine(E::WorkflowUnknown { .. } | E::WorkflowAmbiguous { .. })) => {}
        Err(other) => return Err(other),
    }
    Err(E::WorkflowUnknown { given: given.to_owned(), nearest: None }.into())
}

async fn list(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Workflows>, Failure> {
    let catalog = Arc::clone(&shared.automation.catalog);
    let found = off_the_loop(move || catalog.list()).await?;
    let taken: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
    let covered = found.iter().filter(|found| caller.covers(found.identity()).is_ok());
    let items = covered.map(|found| Summary::of(found, &taken)).collect();
    Ok(Json(Workflows { items }))
}

async fn show(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<WorkflowShown>, Failure> {
    let id = id.map(|Path(id)| id).unwrap_or_default();
    let found = find_for(&shared, &caller, &id).await?;
    let plan = found.outcome.as_ref().ok().map(|compiled| serde_json::to_value(&compiled.plan));
    let plan = plan.transpose().map_err(|error| Error::Internal(error.to_string()))?;
    Ok(Json(WorkflowShown {
        workflow: Summary::of(&found, &[]),
        enabled: found.is_enabled(),
        diagnostics: found.diagnostics().iter().map(Into::into).collect(),
        plan,
    }))
}

async fn validate(
    State(shared): State<Shared>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Validated>, Failure> {
    let Validate { source, path } = body::json(&headers, body).await?;
    let name = path.as_deref().unwrap_or("workflow.yaml");
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if name.is_empty() || name.len() > 100 || name.starts_with('.') || !plain {
        let message = "`path` is the name of a file, such as `triage.yaml`";
        return Err(Failure(Error::RequestInvalid(message.to_owned())));
    }
    let (catalog, name) = (Arc::clone(&shared.automation.catalog), name.to_owned());
    let found = off_the_loop(move || catalog.text(&name, source.into_bytes())).await?;
    let plan = found.outcome.as_ref().ok().map(|compiled| &compiled.plan);
    Ok(Json(Validated {
        valid: plan.is_some(),
        workflow_id: found.id.clone(),
        workflow_hash: plan.and_then(|plan| plan.hash().ok()).map(|hash| hash.to_string()),
        diagnostics: found.diagnostics().iter().map(Into::into).collect(),
    }))
}
