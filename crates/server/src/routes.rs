//! The route table: every path, and what it takes to call it.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::MethodRouter;
use cairn_api::Error;
use cairn_api::schema::{self, Schema};
use cairn_core::digest::Digest;
use cairn_engine::flow::schedule::Schedule;
use cairn_engine::host::SystemHost;
use cairn_engine::record::Record;
use cairn_store::Store;
use schemars::JsonSchema;
use tokio::sync::Semaphore;

use crate::access::{self, Access};
use crate::answer::Failure;
use crate::automation::Automation;
use crate::clock::Seldom;
use crate::guard;
use crate::metrics::Metrics;
use crate::phase::Phases;
use crate::strikes::Strikes;
use crate::tokens::Tokens;
use crate::watched::Watched;

mod audit;
mod env;
mod health;
mod hooks;
mod mcp;
mod metrics;
mod openapi;
mod runs;
mod sessions;
mod streams;
mod tasks;
mod tokens;
mod triggers;
mod workflows;

pub(crate) use hooks::Peer;
pub(crate) use openapi::document;
use streams::Streams;

/// How much the bodies of webhooks may hold that are looked at at once: 64 MiB.
const BODIES_KIB: usize = 64 * 1024;
pub(crate) use triggers::shown as shown_trigger;

/// What handlers work with.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) admin_token: Digest,
    pub(crate) new_token: fn() -> cairn_api::error::Result<String>,
    pub(crate) public_hosts: Vec<String>,
    pub(crate) mcp: Option<MethodRouter>,
    pub(crate) automation: Automation,
    pub(crate) tokens: Tokens,
    /// When the use of a token was last noted.
    pub(crate) used: Seldom,
    pub(crate) record: Record,
    pub(crate) watched: Arc<Watched>,
    pub(crate) schedule: Schedule,
    pub(crate) metrics: Arc<Metrics>,
    /// The wrong tokens of a while.
    pub(crate) strikes: Strikes,
    /// The streams of events that there are.
    pub(crate) streams: Arc<Streams>,
    /// Room for the bodies of webhooks that are looked at, in kibibytes.
    pub(crate) bodies: Semaphore,
    /// Whether the server is about to stop.
    pub(crate) phase: Phases,
}

impl App {
    pub(crate) async fn new(config: crate::config::Config, store: Store, phase: Phases) -> Self {
        let automation = config.automation;
        let (catalog, triggers) = (Arc::clone(&automation.catalog), automation.triggers.clone());
        // Before anybody looks at the files: what does not compile is served as it was.
        if let Err(error) = catalog.recall(&*store.documents).await {
            automation.engine.tell_trouble(&format!("the plans that compiled last: {error}"));
        }
        Self {
            admin_token: config.admin_token,
            new_token: config.new_token,
            public_hosts: config.public_hosts,
            mcp: config.mcp,
            tokens: Tokens::new(Arc::clone(&store.documents)),
            used: Seldom::default(),
            record: Record::new(&store, SystemHost::shared()),
            watched: Arc::new(Watched::new(catalog, triggers)),
            schedule: Schedule::load(automation.engine.clone()).await,
            metrics: Arc::default(),
            strikes: Strikes::default(),
            streams: Arc::default(),
            bodies: Semaphore::new(BODIES_KIB),
            automation,
            store,
            phase,
        }
    }
}

/// The same for every request.
pub(crate) type Shared = Arc<App>;

/// One path with what is done there by one method. There is no other way into the router.
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) handler: MethodRouter<Shared>,
    pub(crate) method: &'static str,
    /// What it does, for people.
    pub(crate) what: &'static str,
    /// What it takes, when it takes something.
    pub(crate) request: Option<fn() -> Schema>,
    /// What it gives, when that is JSON of a known shape.
    pub(crate) answer: Option<fn() -> Schema>,
}

impl Route {
    /// A path that is looked at.
    pub(crate) fn get(
        path: &'static str,
        access: Access,
        what: &'static str,
        handler: MethodRouter<Shared>,
    ) -> Self {
        Self { path, access, handler, method: "get", what, request: None, answer: None }
    }

    /// A path that something is sent to.
    pub(crate) fn post(
        path: &'static str,
        access: Access,
        what: &'static str,
        handler: MethodRouter<Shared>,
    ) -> Self {
        Self { method: "post", ..Self::get(path, access, what, handler) }
    }

    /// A path that something is put at.
    pub(crate) fn put(
        path: &'static str,
        access: Access,
        what: &'static str,
        handler: MethodRouter<Shared>,
    ) -> Self {
        Self { method: "put", ..Self::get(path, access, what, handler) }
    }

    /// A path that something is taken away from.
    pub(crate) fn delete(
        path: &'static str,
        access: Access,
        what: &'static str,
        handler: MethodRouter<Shared>,
    ) -> Self {
        Self { method: "delete", ..Self::get(path, access, what, handler) }
    }

    pub(crate) fn takes<T: JsonSchema>(self) -> Self {
        Self { request: Some(schema::of_request::<T>), ..self }
    }

    pub(crate) fn gives<T: JsonSchema>(self) -> Self {
        Self { answer: Some(schema::of_answer::<T>), ..self }
    }
}

/// Every route there is, in alphabetical order of the files.
pub(crate) fn table(mcp: Option<&MethodRouter>) -> Vec<Route> {
    let all = [
        audit::routes(),
        env::routes(),
        health::routes(),
        hooks::routes(),
        mcp::routes(mcp),
        metrics::routes(),
        openapi::routes(),
        runs::routes(),
        sessions::routes(),
        streams::routes(),
        tasks::routes(),
        tokens::routes(),
        triggers::routes(),
        workflows::routes(),
    ];
    all.into_iter().flatten().collect()
}

/// The whole of the server, without its socket.
pub(crate) fn router(app: Shared) -> Router {
    let router = table(app.mcp.as_ref()).into_iter().fold(Router::new(), |router, route| {
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
