//! Step types as the engine uses them, against real processes, servers and databases.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails may panic")]

mod agents;
mod arguments;
mod databases;
mod db_query;
mod http;
mod model;
mod processes;
mod python;
mod shell;
mod shell_limits;
mod sinks;
mod world;
