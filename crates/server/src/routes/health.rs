//! `/healthz` and `/readyz`: whether the server lives, and whether it can work.
//!
//! Anybody may ask, so the answers say nothing else.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use cairn_api::Error;
use serde::Serialize;

use super::{Route, Shared};
use crate::access::Access;
use crate::answer::Failure;

/// An answer in one word.
#[derive(Serialize)]
struct Status {
    status: &'static str,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route { path: "/healthz", access: Access::Public, handler: get(alive) },
        Route { path: "/readyz", access: Access::Public, handler: get(ready) },
    ]
}

async fn alive() -> Json<Status> {
    Json(Status { status: "ok" })
}

async fn ready(State(shared): State<Shared>) -> Result<Json<Status>, Failure> {
    match shared.store.sessions.list().await {
        Ok(_) => Ok(Json(Status { status: "ready" })),
        // What is wrong is for those who may see the data.
        Err(_) => Err(Failure(Error::NotReady)),
    }
}
