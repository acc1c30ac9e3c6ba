//! `cairn env`: the settings of a workflow.

use std::sync::Arc;

use cairn_api::Exit;
use cairn_api::env::Fault;
use cairn_api::error::{Error, Result};
use cairn_core::plan::Plan;
use cairn_engine::catalog::Found;
use cairn_engine::record::changes::Changes;
use cairn_engine::secrets::{Scope, Vault};
use cairn_engine::settings::{Files, Settings};
use clap::Subcommand;

use super::secret::shape;
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
    found: Arc<Found>,
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
        Ok(Self { found, files, plan, vault: config.vault(&store)?, changes })
    }

    /// The secrets that webhooks cannot be signed with.
    fn misfits(&self, workflow: &str) -> Result<Vec<Fault>> {
        let scope = Scope::Workflow(self.found.identity().clone());
        let mut faults = Vec::new();
        for field in self.plan.env.iter().filter(|field| field.secret) {
            let name = field.name.as_str();
            // One that is not there, or cannot be read, is told of as such.
            let held =
                home::block_on(async { Ok(self.vault.signing(&scope, name, 0).await.ok()) })?;
            let Some(held) = held.as_ref().and_then(|held| held.first()) else { continue };
            let found = std::slice::from_ref(&self.found);
            let Some(misfit) = shape::misfit(found, name, &held.secret) else { continue };
            let (why, trigger) = (misfit.why, misfit.trigger);
            faults.push(Fault {
                name: name.to_owned(),
                message: format!("the value of `{name}` {why}, and `{trigger}` is signed with it"),
                suggestion: shape::generate(name, Some(workflow)),
            });
        }
        Ok(faults)
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
