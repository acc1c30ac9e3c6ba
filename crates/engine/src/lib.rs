//! The loop that loads, decides, appends and performs.
//!
//! Decisions are made in `core`; here they meet the store, the clock and the world. The
//! engine knows no door: it takes questions as plain values and answers with plain values.
//!
//! In reading order: workflows ([`catalog`]), what starts runs ([`trigger`]), what the engine
//! does itself ([`performer`]), the machine it runs on ([`host`]), the values that workflows ask for ([`settings`], [`secrets`], [`environment`])
//! and how they stay hidden ([`redact`]), guided runs ([`guided`]), who changed what ([`record`]) and who may ([`rights`]),
//! failures ([`error`]).

pub mod catalog;
pub mod environment;
pub mod error;
mod file;
pub mod flow;
pub mod guided;
pub mod host;
pub mod performer;
pub mod record;
pub mod redact;
pub mod rights;
pub mod secrets;
pub mod settings;
pub mod trigger;

pub use error::{Error, Result};
