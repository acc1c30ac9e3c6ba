//! What the engine can do by itself, one file for each step type.
//!
//! A step type takes its settings, does one thing, and says what came of it. It knows
//! nothing of runs, logs or stores. [`catalog`] lists them all.

pub mod catalog;
mod end;
mod kinds;
mod log;
mod settings;
mod shell;
mod transform;
