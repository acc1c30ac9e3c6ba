//! `cairn dev`: commands for those who work on Cairn itself. They may change at any time.

use cairn_api::Exit;
use cairn_api::error::Result;
use clap::Subcommand;

use crate::config::Config;

mod append_loop;
mod workload;

/// Tools for working on Cairn itself
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Example:\n  cairn dev append-loop --session sess_01hf7yat000000000000000007 --count 100"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    AppendLoop(append_loop::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::AppendLoop(args) => append_loop::run(&args, config),
    }
}
