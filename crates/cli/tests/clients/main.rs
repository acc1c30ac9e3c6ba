//! Other people's MCP clients, driven through whole runs against the built binary.
//!
//! `scripts/setup.sh` puts the clients into the target directory; the tests need no network.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly, too"
)]

mod conformance;
mod inspector;
mod place;
mod python;
mod story;
