//! `/api/v1/sessions`: the sessions there are, and each of them.

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Extension, Json};
use cairn_api::Error;
use cairn_api::page::{LIMIT_DEFAULT, LIMIT_MAX, Page};
use cairn_api::session::{self, Claims, Detail, Filter, Summary, TIMELINE_DEFAULT, TrustSession};
use cairn_core::id::SessionId;
use cairn_engine::flow::Truster;
use serde::Deserialize;

use super::{Route, Shared};
use crate::access::{Access, Action, Caller};
use crate::answer::Failure;
use crate::body;

pub(super) fn routes() -> Vec<Route> {
    let access = Access::Needs(Action::ReadSessions);
    vec![
        Route::get("/api/v1/sessions", access, "List the sessions", get(list)),
        Route::get("/api/v1/sessions/{id}", access, "Show a session", get(show)),
        Route::get(
            "/api/v1/sessions/{id}/claims",
            access,
            "Show what an imported session claims, and what it would do here",
            get(claims),
        ),
        Route::post(
            "/api/v1/sessions/{id}/trust",
            Access::Needs(Action::TrustSessions),
            "Let an imported session go on here",
            post(trust),
        )
        .takes::<TrustSession>(),
    ]
}

/// What part of the list is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    cursor: Option<String>,
    health: Option<String>,
    limit: Option<String>,
}

async fn list(
    State(shared): State<Shared>,
    params: Result<Query<Params>, QueryRejection>,
) -> Result<Json<Page<Summary>>, Failure> {
    let Query(params) = params.map_err(|error| unreadable(&error))?;
    Ok(Json(session::list(&shared.store.with_papers()?, &filter(&params)?).await?))
}

async fn show(
    State(shared): State<Shared>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Detail>, Failure> {
    let store = shared.store.with_papers()?;
    Ok(Json(session::show(&store, session_id(id)?, TIMELINE_DEFAULT).await?))
}

async fn claims(
    State(shared): State<Shared>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Claims>, Failure> {
    let claims = shared.automation.engine.claims(session_id(id)?).await?;
    Ok(Json(Claims::from(&claims)))
}

/// Trust is given to the bundle that was shown, and to no other.
async fn trust(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Claims>, Failure> {
    let session = session_id(id)?;
    let TrustSession { root_hash: root } = body::json(&headers, body).await?;
    let truster = Truster { by: caller.by(), root, workspace: None };
    let claims = shared.automation.engine.trust(session, &truster).await?;
    Ok(Json(Claims::from(&claims)))
}

fn session_id(id: Result<Path<String>, PathRejection>) -> Result<SessionId, Error> {
    let Path(id) = id.map_err(|_| Error::SessionUnknown(String::new()))?;
    // What is no id cannot be there, either: the answer is the same.
    id.parse().map_err(|_| Error::SessionUnknown(id.chars().take(64).collect()))
}

fn unreadable(error: &QueryRejection) -> Error {
    let text = error.body_text();
    let what = text.rsplit("query string: ").next().unwrap_or(&text);
    Error::RequestInvalid(format!("the query cannot be read: {what}"))
}

fn filter(params: &Params) -> Result<Filter, Error> {
    let wrong = |what: &str| Error::RequestInvalid(what.to_owned());
    let limit = match params.limit.as_deref().map(str::parse) {
        None => LIMIT_DEFAULT,
        Some(Ok(limit)) if (1..=LIMIT_MAX).contains(&limit) => limit,
        Some(_) => return Err(wrong(&format!("`limit` is a whole number from 1 to {LIMIT_MAX}"))),
    };
    let cursor = params.cursor.as_deref().map(str::parse).transpose();
    Ok(Filter {
        cursor: cursor.map_err(|_| wrong("`cursor` is not one that this list gave out"))?,
        limit,
        health: params.health.as_deref().map(str::parse).transpose()?,
        without_runs: true,
    })
}
