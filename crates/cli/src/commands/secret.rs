//! `cairn secret`: values that are kept encrypted.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::secrets::Scope;
use clap::Subcommand;

use crate::config::Config;
use crate::sources;

mod list;
mod remove;
mod rotate;
mod set;
pub(crate) mod shape;

/// Look after secrets, which are kept encrypted
///
/// A secret is for every workflow that asks for its name, or with --workflow for one: the one whose file is in that place, whatever others are called. The master key is in `cairn/master.key` of the XDG configuration directory, made when it is first needed, or where CAIRN_MASTER_KEY_FILE says; CAIRN_MASTER_KEY gives the key itself. Without the key no secret can be read again: keep a copy of it.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn secret set GITHUB_PAT --workflow triage\n  cairn secret list"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Args),
    Remove(remove::Args),
    Rotate(rotate::Args),
    Set(set::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::List(args) => list::run(&args, config),
        Command::Remove(args) => remove::run(&args, config),
        Command::Rotate(args) => rotate::run(&args, config),
        Command::Set(args) => set::run(&args, config),
    }
}

/// Who a secret is for: one workflow, when one is named, which then has to ask for it.
fn scope(workflow: Option<&str>, name: Option<&str>, config: &Config) -> Result<Scope> {
    let Some(given) = workflow else { return Ok(Scope::Global) };
    let found = sources::find(given, config)?;
    let plan = &found.compiled()?.plan;
    if let Some(name) = name {
        let field = cairn_engine::settings::find(plan, name)?;
        if !field.secret {
            return Err(cairn_api::Error::Usage {
                message: format!("`{name}` is no secret of `{}`", plan.workflow_id),
                suggestion: format!("cairn env set {name} VALUE --workflow {given}"),
            });
        }
    }
    Ok(Scope::Workflow(found.identity().clone()))
}
