//! The HTTP door: a view of the sessions, and the tools for agents.
//!
//! A request passes the same stations in the same order: is it meant for this server
//! (`guard`), who sends it and may they (`access`), what is asked (`routes`). Every route
//! says in the route table what it takes to call it. Nothing here decides anything about
//! runs, reads the environment, or prints.

mod access;
mod answer;
mod config;
mod guard;
mod patience;
mod routes;
mod serve;

pub use config::{Config, DEFAULT_ADDRESS, Front, listen};
pub use guard::BODY_MAX;
pub use serve::serve;
