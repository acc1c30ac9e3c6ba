//! `/mcp`: the tools for agents.
//!
//! What is done there is not this server's business; who may come in is.

use super::{App, Route};
use crate::access::{Access, Action};

pub(super) fn routes(app: &App) -> Vec<Route> {
    let handler = app.mcp.clone().map(|handler| handler.with_state(()));
    let access = Access::Needs(Action::RunWorkflows);
    handler.map(|handler| Route { path: "/mcp", access, handler }).into_iter().collect()
}
