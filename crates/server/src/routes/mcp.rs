//! `/mcp`: the tools for agents.
//!
//! What is done there is not this server's business; who may come in is.

use axum::middleware::from_fn;
use axum::routing::MethodRouter;

use super::Route;
use crate::access::{Access, Action};
use crate::body;

pub(super) fn routes(handler: Option<&MethodRouter>) -> Vec<Route> {
    let handler = handler.map(|handler| handler.clone().layer(from_fn(body::whole)).with_state(()));
    let access = Access::Needs(Action::RunWorkflows);
    let route = |handler| Route::post("/mcp", access, "Speak MCP", handler);
    handler.map(route).into_iter().collect()
}
