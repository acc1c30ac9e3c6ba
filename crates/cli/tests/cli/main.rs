//! Every command of the built binary, in a data directory of its own.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests may fail loudly, too"
)]

mod agents;
mod append_loop;
mod automation;
mod completions;
mod config;
mod delete;
mod doctor;
mod drain;
mod env;
mod export;
mod gc;
mod graph_examples;
mod guide;
mod guided_examples;
mod hand;
mod help;
mod homes;
mod identity;
mod import;
mod keep;
mod key;
mod large;
mod list;
mod mcp;
mod new;
mod newcomer;
mod newer;
mod pages;
mod processes;
mod readme;
mod reference;
mod run;
mod runs;
mod secret;
mod serve;
mod settings;
mod show;
mod token;
mod trigger;
mod usage;
mod verify;
mod workflow;
