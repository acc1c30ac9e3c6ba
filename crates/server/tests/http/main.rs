//! The server over a real socket, spoken to byte by byte.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly, too"
)]

mod access;
mod client;
mod env;
mod fallen;
mod hooks;
mod hooks_bad;
mod limits;
mod odd;
mod problems;
mod runs;
mod schedule;
mod sessions;
mod shutdown;
mod stale;
mod streams;
mod traces;
