//! How runs go through automation graphs, told as what is recorded.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod approvals;
mod cases;
mod cycles;
mod failures;
mod forks;
mod imported;
mod loops;
mod numbers;
mod play;
mod rests;
mod waits;
mod workers;
