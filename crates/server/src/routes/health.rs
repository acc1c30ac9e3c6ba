//! `/healthz` and `/readyz`: whether the server lives, and whether it can work.
//!
//! Anybody may ask, so the answers say nothing else.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use cairn_api::Error;
use cairn_api::probe::{Probe, ProbeStatus};
use cairn_store::port::Room;

use super::{Route, Shared};
use crate::access::Access;
use crate::answer::Failure;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", Access::Public, "Say whether the server lives", get(alive)),
        Route::get("/readyz", Access::Public, "Say whether the server can work", get(ready)),
    ]
}

async fn alive() -> Json<Probe> {
    Json(Probe { status: ProbeStatus::Ok })
}

async fn ready(State(shared): State<Shared>) -> Result<Json<Probe>, Failure> {
    // Whoever sends requests is to send them elsewhere.
    if !shared.phase.takes_work() {
        return Err(Failure(Error::Stopping));
    }
    // Runs that are being loaded again can take nothing until they are.
    if !shared.automation.engine.fallen().is_empty() {
        return Err(Failure(Error::NotReady));
    }
    // What is wrong is for those who may see the data.
    let can_work = async {
        shared.store.log.room(Room::Run).await?;
        shared.store.sessions.list().await
    };
    match can_work.await {
        Ok(_) => Ok(Json(Probe { status: ProbeStatus::Ready })),
        Err(_) => Err(Failure(Error::NotReady)),
    }
}
