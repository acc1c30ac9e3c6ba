//! The loop that loads, decides, appends and performs.
//!
//! Decisions are made in `core`; here they meet the store, the clock and the world. The
//! engine knows no door: it takes questions as plain values and answers with plain values.
//!
//! In reading order: workflows ([`catalog`]), what the engine does itself ([`performer`]),
//! guided runs ([`guided`]), failures ([`error`]).

pub mod catalog;
pub mod error;
pub mod flow;
pub mod guided;
pub mod performer;

pub use error::{Error, Result};
