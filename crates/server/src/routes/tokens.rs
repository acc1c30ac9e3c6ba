//! `/api/v1/tokens`: the tokens there are, without their secrets. They are made and revoked on
//! the machine itself.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use cairn_api::token::Tokens;

use super::{Route, Shared};
use crate::access::{Access, Action};
use crate::answer::Failure;

pub(super) fn routes() -> Vec<Route> {
    let read = Access::Needs(Action::ReadTokens);
    vec![Route::get("/api/v1/tokens", read, "List the tokens", get(list)).gives::<Tokens>()]
}

async fn list(State(shared): State<Shared>) -> Result<Json<Tokens>, Failure> {
    Ok(Json(Tokens { items: shared.tokens.list()? }))
}
