//! `cairn session`: the sessions there are.

use cairn_api::Exit;
use cairn_api::error::Result;
use clap::Subcommand;

use crate::config::Config;
use crate::home;

mod delete;
mod export;
mod gc;
mod import;
mod keep;
mod list;
mod rebind;
mod resume;
mod show;
mod trust;
mod verify;

/// See, check, move and remove sessions
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn session list\n  cairn session show sess_01hf7yat"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Delete(delete::Args),
    Export(export::Args),
    Gc(gc::Args),
    Import(import::Args),
    Keep(keep::Args),
    List(list::Args),
    Rebind(rebind::Args),
    Resume(resume::Args),
    Show(show::Args),
    Trust(trust::Args),
    Verify(verify::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::Delete(args) => delete::run(&args, config),
        Command::Export(args) => export::run(&args, config),
        Command::Gc(args) => gc::run(&args, config),
        Command::Import(args) => home::on_threads(import::run(&args, config)),
        Command::Keep(args) => keep::run(&args, config),
        Command::List(args) => list::run(&args, config),
        Command::Rebind(args) => rebind::run(&args, config),
        Command::Resume(args) => resume::run(&args, config),
        Command::Show(args) => show::run(&args, config),
        Command::Trust(args) => home::on_threads(trust::run(&args, config)),
        Command::Verify(args) => verify::run(&args, config),
    }
}
