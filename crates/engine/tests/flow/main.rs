//! Automations, through the engine's public calls, on a real store.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]
#![expect(clippy::disallowed_methods, reason = "the tests run on a real machine")]

mod approvals;
mod authority;
mod disk;
mod forged;
mod hand;
mod history;
mod hostile;
mod ids;
mod join;
mod kept;
mod listed;
mod owners;
mod papers;
mod projects;
mod record;
mod recovery;
mod rights;
mod runs;
mod snapshots;
mod steered;
mod world;
