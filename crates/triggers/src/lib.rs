//! What starts runs, one file for each type of trigger.
//!
//! A type of trigger reads its settings, says what is wrong with them, and then decides: when
//! it fires, or whether a request or a message is meant for it. It knows neither clock,
//! network nor store. [`catalog`] lists them all.

pub mod catalog;
pub mod channel;
pub mod cron;
pub mod error;
pub mod manual;
pub mod schedule_at;
mod settings;
pub mod webhook;
