//! `cairn trigger`: what starts runs.

use cairn_api::Exit;
use cairn_api::error::Result;
use clap::Subcommand;

use crate::config::Config;

mod curl;
mod fire;
mod list;
mod next;

/// See what starts runs, and fire it by hand
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn trigger list\n  cairn trigger next digest --count 5\n  cairn trigger fire digest nightly\n  cairn trigger curl pager --set service=api"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Curl(curl::Args),
    Fire(fire::Args),
    List(list::Args),
    Next(next::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::Curl(args) => curl::run(&args, config),
        Command::Fire(args) => fire::run(&args, config),
        Command::List(args) => list::run(&args, config),
        Command::Next(args) => next::run(&args, config),
    }
}

/// The types of triggers there are.
pub(crate) fn types() -> cairn_engine::trigger::Triggers {
    cairn_triggers::catalog::all(cairn_triggers::channel::Channels::default())
}
