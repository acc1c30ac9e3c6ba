//! `cairn completions`: prints a script that completes commands in a shell.

use cairn_api::Exit;
use cairn_api::error::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use crate::config::Config;

/// Print a script that lets a shell complete commands
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  cairn completions bash > ~/.local/share/bash-completion/completions/cairn"
)]
pub(crate) struct Args {
    /// Shell to write it for
    shell: Shell,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cairn", &mut script);
    config.output.bytes(&script)?;
    Ok(Exit::Success)
}
