//! The server over a real socket, spoken to byte by byte.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly, too"
)]

mod client;
mod limits;
mod problems;
mod sessions;
mod shutdown;
