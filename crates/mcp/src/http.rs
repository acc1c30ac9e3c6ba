//! Streamable HTTP: every request stands by itself, and gets plain JSON.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, post_service};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::handler::Handler;
use crate::{Door, ToolSet, message};

/// The door over HTTP, for one path of a server.
///
/// Whom a request is meant for, where it comes from and who sends it is checked by that server,
/// as for all its other paths.
pub fn http(door: Door, set: ToolSet, body_max: usize) -> MethodRouter {
    let handler = Handler::new(door, set);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(body_max)
        .disable_allowed_hosts();
    let sessions = Arc::new(NeverSessionManager::default());
    post_service(StreamableHttpService::new(move || Ok(handler.clone()), sessions, config))
        .layer(from_fn(move |request, next| messages(request, next, body_max)))
}

/// Hands messages on, and answers what is none.
async fn messages(request: Request, next: Next, body_max: usize) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    // What is too long is the next one's to refuse, in its own words.
    let Ok(bytes) = to_bytes(body, body_max).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match message::fault(&bytes) {
        None => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Some(fault) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            let is_error = fault.get("error").is_some();
            let status = if is_error { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            (status, json, fault.to_string()).into_response()
        }
    }
}
