//! `cairn serve` with automations, from outside: killed over and over, and searched for secrets.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails may panic")]

mod brought;
mod canary;
mod guarded;
mod kills;
mod modes;
mod receiver;
mod record;
mod server;
mod stopped;
mod strange;
