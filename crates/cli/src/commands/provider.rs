//! `cairn provider`: the models and agents that steps hand work to.

use std::sync::Arc;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_steps::agents::Agents;
use cairn_store::Store;
use clap::Subcommand;

use crate::automate::credentials::ProviderKeys;
use crate::config::Config;

mod check;
mod list;
mod skills;

/// Look at the providers that `agent`, `classify` and `skill` steps ask
///
/// `claude`, `codex`, `gemini`, `anthropic`, `openai` and `scripted` are there without being named. Others, and what these need, are in `[providers]` of the configuration; their keys are secrets.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn provider list\n  cairn provider check claude\n  cairn provider skills claude"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    List(list::Args),
    Skills(skills::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::Check(args) => check::run(&args, config),
        Command::List(args) => list::run(&args, config),
        Command::Skills(args) => skills::run(&args, config),
    }
}

/// Those that work is handed to.
fn agents(config: &Config, store: &Store) -> Result<Agents> {
    let mut settings = config.step_settings()?;
    let credentials = ProviderKeys::new(config.vault(store)?, &settings.agents);
    settings.credentials = Some(Arc::new(credentials));
    Ok(settings.agents())
}
