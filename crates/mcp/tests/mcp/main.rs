//! The MCP door against a whole engine in memory.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly, too"
)]

mod protocol;
mod stories;
