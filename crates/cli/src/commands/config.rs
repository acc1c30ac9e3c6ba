//! `cairn config`: what commands work with.

use cairn_api::Exit;
use cairn_api::error::Result;
use clap::Subcommand;

use crate::config::Config;

mod show;

/// See the configuration
///
/// A value comes from the command line, else from the environment, else from the configuration file, else it is the default.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Example:\n  cairn config show --origin"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Show(show::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::Show(args) => show::run(&args, config),
    }
}
