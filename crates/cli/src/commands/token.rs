//! `cairn token`: who may use the server, and for what.

use std::sync::Arc;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_server::tokens::Tokens;
use cairn_store::Store;
use clap::Subcommand;

use crate::config::Config;

mod create;
mod list;
mod revoke;

/// Look after the tokens that open the server
///
/// A token is shown once, when it is made; only its digest is kept. A running server knows of a change at once.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn token create --name ci --scope read --scope run\n  cairn token list\n  cairn token revoke ci"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Create(create::Args),
    List(list::Args),
    Revoke(revoke::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::Create(args) => create::run(&args, config),
        Command::List(args) => list::run(&args, config),
        Command::Revoke(args) => revoke::run(&args, config),
    }
}

fn tokens(store: &Store) -> Tokens {
    Tokens::new(Arc::clone(&store.documents))
}
