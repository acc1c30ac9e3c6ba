//! Streamable HTTP: every request stands by itself, and gets plain JSON.

use std::sync::Arc;

use axum::routing::{MethodRouter, post_service};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::handler::Handler;
use crate::{Door, ToolSet};

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
}
