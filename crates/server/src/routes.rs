//! The route table: every path, and what it takes to call it.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::MethodRouter;
use cairn_api::Error;
use cairn_core::digest::Digest;
use cairn_store::Store;

use crate::access::{self, Access};
use crate::answer::Failure;
use crate::guard;

mod health;
mod mcp;
mod sessions;

/// What handlers work with.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) admin_token: Digest,
    pub(crate) public_hosts: Vec<String>,
    pub(crate) mcp: Option<MethodRouter>,
}

/// The same for every request.
pub(crate) type Shared = Arc<App>;

/// One path with what is done there. There is no other way into the router.
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) handler: MethodRouter<Shared>,
}

/// Every route there is, in alphabetical order of the files.
pub(crate) fn table(app: &App) -> Vec<Route> {
    [health::routes(), mcp::routes(app), sessions::routes()].into_iter().flatten().collect()
}

/// The whole of the server, without its socket.
pub(crate) fn router(app: Shared) -> Router {
    let router = table(&app).into_iter().fold(Router::new(), |router, route| {
        let handler = match route.access {
            Access::Public => route.handler,
            Access::Needs(action) => {
                let state = (Arc::clone(&app), action);
                route.handler.route_layer(from_fn_with_state(state, access::check))
            }
        };
        router.route(route.path, handler)
    });
    router
        .fallback(|| async { Failure(Error::PathUnknown) })
        .method_not_allowed_fallback(|method: Method| async move {
            Failure(Error::MethodNotAllowed(method.to_string()))
        })
        .layer(DefaultBodyLimit::max(usize::try_from(guard::BODY_MAX).unwrap_or(usize::MAX)))
        .layer(from_fn_with_state(Arc::clone(&app), guard::check))
        .layer(map_response(guard::seal))
        .with_state(app)
}

#[cfg(test)]
mod tests;
