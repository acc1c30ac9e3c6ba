//! What every door speaks: wire types, the error envelope, exit codes.
//!
//! Doors parse, ask and render; what they show is built here, once. Nothing here opens a
//! socket, prints, or reads the clock.
//!
//! In reading order: failures ([`error`], [`exit`], [`problem`]), times ([`time`]), lists
//! ([`page`]), ids ([`beginning`]), sessions ([`session`]), workflows ([`workflow`]), guided runs ([`guided`]) with
//! how their arguments are checked ([`arguments`], [`schema`]), automations ([`run`],
//! [`call`]) and their settings ([`env`]), who may ([`token`]) and who did ([`audit`]), probes ([`probe`]).

pub mod arguments;
pub mod audit;
pub mod beginning;
pub mod call;
pub mod env;
pub mod error;
pub mod exit;
pub mod guided;
pub mod page;
pub mod probe;
pub mod problem;
pub mod run;
pub mod schema;
pub mod session;
pub mod time;
pub mod token;
pub mod workflow;

pub use error::Error;
pub use exit::Exit;
