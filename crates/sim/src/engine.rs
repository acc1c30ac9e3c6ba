//! The real engine in a simulated world: several processes on one store, driven by a seed.
//!
//! The seed decides which task goes on next, how long everything takes, what people ask for and
//! what goes wrong: processes that are killed or stopped, leases that are lost, a disk that fails
//! or is full, a clock that jumps, settings that are missing. The checkers know what was
//! acknowledged, what reached the disk and what was done outside, and nothing of how the engine
//! works.

mod book;
mod check;
mod executor;
mod host;
mod outside;
mod ports;
#[cfg(test)]
mod schedule;
mod shelf;
mod ticks;
mod weather;
mod workflows;
mod world;

use std::fmt::Write as _;

use cairn_core::canonical;

pub use world::Counts;

use executor::Process;
use world::World;

/// A world that came to its end.
#[derive(Clone, Debug)]
pub struct Played {
    /// How many events were recorded.
    pub events: usize,
    /// How many processes there were at once.
    pub seats: usize,
    /// What was done how often.
    pub counts: Counts,
    /// What went wrong, and for how many: what nobody noticed does not count.
    pub hits: Counts,
    /// What was recorded, a line for each event.
    pub log: String,
    /// What must not be.
    pub violations: Vec<String>,
    /// What the engines told of trouble.
    pub trouble: Vec<String>,
}

/// Plays the world of a seed.
#[must_use]
pub fn play(seed: u64) -> Played {
    world::trouble();
    let mut world = World::new(seed);
    world.play();
    let store = world.read_back();
    world.end();
    let hits = world.hits();
    let mut book = world.book.open();
    if book.violations.is_empty() {
        check::check(&mut book, &hits, store.as_deref());
    }
    let mut log = String::new();
    for (event, Process(by)) in book.log.iter().zip(&book.by) {
        let line =
            event.encode().unwrap_or_else(|error: canonical::Error| error.to_string().into());
        // Writing to a text does not fail.
        let _ = writeln!(log, "{by} {}", String::from_utf8_lossy(&line));
    }
    Played {
        events: book.log.len(),
        seats: world.seats(),
        counts: world.counts.clone(),
        hits,
        log,
        violations: book.violations.clone(),
        trouble: world::trouble(),
    }
}

/// Whether the workflows of the world compile; else what is wrong with them.
pub fn compiles() -> Result<(), String> {
    let catalog = cairn_engine::catalog::Catalog::of_tree(workflows::tree(), workflows::types());
    let found = catalog.list().map_err(|error| error.to_string())?;
    let wrong = |found: &std::sync::Arc<cairn_engine::catalog::Found>| match found.compiled() {
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    let wrong: Vec<String> = found.iter().filter_map(wrong).collect();
    match wrong.is_empty() && found.len() == workflows::ALL.len() {
        true => Ok(()),
        false => Err(format!("{} of {}: {wrong:?}", found.len(), workflows::ALL.len())),
    }
}
