//! `/healthz` and `/readyz`: whether the server lives, and whether it can work.
//!
//! Anybody may ask, so the answers say nothing else.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use cairn_api::Error;
use cairn_api::probe::{Probe, ProbeStatus};
use cairn_core::id::SessionId;
use cairn_store as store;
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
    let engine = &shared.automation.engine;
    // Webhooks and schedules are known once the files were looked at, and runs that were left go
    // on then. Runs that are being loaded again can take nothing until they are.
    let is_up = shared.watched.view().is_known && engine.is_recovered();
    if !is_up || !engine.fallen().is_empty() {
        return Err(Failure(Error::NotReady));
    }
    // What is wrong is for those who may see the data.
    match shared.store.log.room(Room::Run).await {
        Ok(()) if can_read(&shared).await => Ok(Json(Probe { status: ProbeStatus::Ready })),
        _ => Err(Failure(Error::NotReady)),
    }
}

/// Whether the data can be read: then it is known of a session that nobody has that it is not
/// there, at the same cost however many there are.
async fn can_read(shared: &Shared) -> bool {
    let nobodys = SessionId::from_bits(0);
    matches!(shared.store.sessions.origin(nobodys).await, Ok(_) | Err(store::Error::NotFound(_)))
}
