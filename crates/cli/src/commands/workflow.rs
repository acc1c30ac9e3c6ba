//! `cairn workflow`: the workflows there are, and whether they are right.

use cairn_api::Exit;
use cairn_api::error::Result;
use clap::Subcommand;

use crate::config::Config;

mod compile;
mod list;
mod marks;
mod new;
mod rebind;
mod sarif;
mod show;
mod validate;

/// Begin, see, check and compile workflows
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn workflow new triage --template support-triage\n  cairn workflow validate\n  cairn workflow show project.triage"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Compile(compile::Args),
    List(list::Args),
    New(new::Args),
    Rebind(rebind::Args),
    Show(show::Args),
    Validate(validate::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::Compile(args) => compile::run(&args, config),
        Command::List(args) => list::run(&args, config),
        Command::New(args) => new::run(&args, config),
        Command::Rebind(args) => rebind::run(&args, config),
        Command::Show(args) => show::run(&args, config),
        Command::Validate(args) => validate::run(&args, config),
    }
}
