//! Guided runs, through the engine's public calls.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]
#![expect(clippy::disallowed_methods, reason = "the tests run on a real machine")]

mod bad_input;
mod blocking;
mod branches;
mod conditions;
mod context;
mod damage;
mod examples;
mod kept;
mod law;
mod loops;
mod modes;
mod outputs;
mod performed;
mod prompts;
mod record;
mod replay;
mod reports;
mod sources;
mod tokens;
mod travel;
mod turns;
mod world;
