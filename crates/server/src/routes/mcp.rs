//! `/mcp`: the tools for agents.
//!
//! What is done there is not this server's business; who may come in is.

use axum::http::{StatusCode, header};
use axum::middleware::{from_fn, map_response};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use cairn_api::Error;

use super::Route;
use crate::access::{Access, Action};
use crate::answer::Failure;
use crate::{body, guard};

pub(super) fn routes(handler: Option<&MethodRouter>) -> Vec<Route> {
    let handler = handler.map(|handler| {
        handler.clone().layer(map_response(told)).layer(from_fn(body::whole)).with_state(())
    });
    let access = Access::Needs(Action::RunWorkflows);
    let route = |handler| Route::post("/mcp", access, "Speak MCP", handler);
    handler.map(route).into_iter().collect()
}

/// What the protocol's own library says no to, in the words of every other path.
async fn told(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("application/")) {
        return response;
    }
    let error = match response.status() {
        StatusCode::NOT_ACCEPTABLE => Error::NotAcceptable,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Error::MediaType("a message is JSON"),
        StatusCode::PAYLOAD_TOO_LARGE => Error::RequestTooLarge { max: guard::BODY_MAX },
        status if status.is_client_error() => {
            let status = status.canonical_reason().unwrap_or("it is no request of the protocol");
            Error::RequestInvalid(status.to_owned())
        }
        _ => return response,
    };
    Failure(error).into_response()
}
