//! `/api/v1/audit`: the record of who changed what.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::routing::get;
use cairn_api::audit::Entries;
use cairn_engine::record::Wanted;
use serde::Deserialize;

use super::runs::{limit, unreadable};
use super::{Route, Shared};
use crate::access::{Access, Action};
use crate::answer::Failure;

pub(super) fn routes() -> Vec<Route> {
    let read = Access::Needs(Action::ReadAudit);
    vec![
        Route::get("/api/v1/audit", read, "Tell who changed what, oldest first", get(list))
            .gives::<Entries>(),
    ]
}

/// What part of the record is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    cursor: Option<u64>,
    limit: Option<String>,
    run: Option<String>,
    token: Option<String>,
    workflow: Option<String>,
}

async fn list(
    State(shared): State<Shared>,
    params: Result<Query<Params>, QueryRejection>,
) -> Result<Json<Entries>, Failure> {
    let Query(params) = params.map_err(|error| unreadable(&error))?;
    let limit = limit(params.limit.as_deref())?;
    let Params { cursor, workflow, run, token, .. } = params;
    let wanted = Wanted { workflow, run, token };
    Ok(Json(shared.record.read(cursor.unwrap_or_default(), limit, &wanted).await?.into()))
}
