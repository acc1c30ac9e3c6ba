//! `cairn key`: the keys that sign tokens.

use cairn_api::Exit;
use cairn_api::error::Result;
use clap::Subcommand;

use crate::config::Config;

mod rotate;

/// Look after the keys that sign tokens
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Example:\n  cairn key rotate"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Rotate(rotate::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::Rotate(args) => rotate::run(&args, config),
    }
}
