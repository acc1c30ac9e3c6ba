//! What a store promises, tried through its ports.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that fails may panic"
)]

mod bundles;
mod damage;
mod documents;
mod fence;
mod given;
mod habits;
mod laws;
mod locks;
mod mailbox;
mod memory;
mod newer;
mod private;
mod processes;
mod races;
mod salvage;
mod suite;
