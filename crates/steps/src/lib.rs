//! What the engine can do by itself, one file for each step type.
//!
//! A step type takes its settings, does one thing, and says what came of it. It knows
//! nothing of runs, logs or stores. [`catalog`] lists them all; [`guard`] says where they may
//! connect to, and [`process`] runs their commands.

mod agent;
pub mod agents;
mod ask;
pub mod catalog;
mod classify;
pub mod db_query;
mod end;
pub mod guard;
mod http;
pub mod lacking;
mod log;
mod page;
pub mod process;
pub mod python;
mod settings;
mod shell;
mod skill;
mod transform;
pub mod workspace;

pub use page::page;
