//! The HTTP door: sessions, runs and what starts them, and the tools for agents.
//!
//! A request passes the same stations in the same order: is it meant for this server
//! (`guard`), who sends it and may they (`access`), what is asked (`routes`). Every route
//! says in the route table what it takes to call it. Beside the requests there is one task that
//! looks at the files of workflows (`watched`), one in which the engine keeps time, and one that
//! sends traces (`telemetry`). Nothing here decides anything about runs, reads the environment,
//! or prints.

mod access;
mod answer;
mod automation;
mod body;
mod clock;
mod config;
mod guard;
mod metrics;
mod patience;
mod phase;
mod refused;
mod routes;
mod serve;
mod strict;
mod strikes;
mod telemetry;
pub mod tokens;
pub mod watched;

pub use automation::Automation;
pub use config::{Config, DEFAULT_ADDRESS, DEFAULT_DRAIN, Front, listen};
pub use guard::BODY_MAX;
pub use phase::Stopping;
pub use serve::serve;
pub use telemetry::Telemetry;

/// How the API looks, as OpenAPI 3.1.
#[must_use]
pub fn openapi() -> serde_json::Value {
    routes::document()
}
