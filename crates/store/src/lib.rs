//! The durable store. The only place that knows files.
//!
//! One mutation makes anything durable: [`EventLog::append`]. Whoever wants to know what
//! the store promises reads [`port`]; how files keep those promises is in [`files`], from
//! `writer` (commit) over `walk` (the decision table) to `seal`.

mod admit;
pub mod bundle;
mod error;
mod fence;
pub mod files;
pub mod gc;
mod health;
pub mod memory;
mod open;
mod papers;
mod plan;
pub mod port;
pub mod regular;
pub mod verify;

pub use error::{Error, Result};
pub use fence::{Epoch, Owner};
pub use health::{Health, Notice};
pub use open::{Config, Store, open};
pub use plan::{AppendPlan, Appended, Blob};
pub use port::EventLog;
pub use verify::verify;

use std::sync::Arc;

/// Random bytes from the system.
fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Io {
        context: "asking the system for random bytes".into(),
        source: Arc::new(std::io::Error::other(error.to_string())),
    })?;
    Ok(bytes)
}

/// A random number from the system.
fn random() -> Result<u64> {
    random_bytes().map(u64::from_le_bytes)
}
