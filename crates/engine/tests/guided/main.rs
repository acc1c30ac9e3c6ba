//! Guided runs, through the engine's public calls.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod bad_input;
mod blocking;
mod branches;
mod examples;
mod loops;
mod modes;
mod replay;
mod travel;
mod world;
