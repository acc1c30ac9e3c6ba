//! `cairn env`: the settings of a workflow.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_core::plan::Plan;
use cairn_engine::record::changes::Changes;
use cairn_engine::secrets::Vault;
use cairn_engine::settings::{Files, Settings};
use clap::Subcommand;

use crate::config::Config;
use crate::{home, somebody, sources};

mod check;
mod list;
mod set;
mod unset;

/// Look after the settings that a workflow asks for
///
/// Values are in a file beside the workflow (`env.yaml`, or `NAME.env.yaml` beside `NAME.yaml`) and in a file of the data directory, which wins and is for the workflow in that place alone. Secrets are in neither; see `cairn secret`.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn env list triage\n  cairn env set CHANNEL '#support' --workflow triage\n  cairn env check triage"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    List(list::Args),
    Set(set::Args),
    Unset(unset::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    match args.command {
        Command::Check(args) => check::run(&args, config),
        Command::List(args) => list::run(&args, config),
        Command::Set(args) => set::run(&args, config),
        Command::Unset(args) => unset::run(&args, config),
    }
}

/// The workflow that a command is about. A setting belongs to one.
fn workflow(named: Option<&str>) -> Result<&str> {
    named.ok_or_else(|| Error::Usage {
        message: "a setting belongs to a workflow, and none is named".to_owned(),
        suggestion: "name it with `--workflow WORKFLOW`".to_owned(),
    })
}

/// A workflow, and where its values are.
struct Target {
    plan: Plan,
    files: Files,
    vault: Vault,
    changes: Changes,
}

impl Target {
    fn find(given: &str, config: &Config) -> Result<Self> {
        let found = sources::find(given, config)?;
        let plan = found.compiled()?.plan.clone();
        let store = home::open(config)?;
        let files = Files::of(&store.documents, found.identity())?;
        let changes = somebody::changes(&store);
        Ok(Self { files, plan, vault: config.vault(&store)?, changes })
    }

    /// Whether a run could read the secrets that are kept.
    fn secrets_can_be_read(&self) -> Result<()> {
        home::block_on(async { Ok(self.vault.check().await?) })
    }

    fn settings(&self) -> Result<Settings> {
        home::block_on(async {
            Ok(Settings::with_secrets(&self.plan, &self.files, &self.vault).await?)
        })
    }
}
