//! `cairn env unset`: takes the value of a setting away.

use cairn_api::Exit;
use cairn_api::error::Result;
use serde_json::json;

use super::Target;
use crate::commands::named::{self, Named};
use crate::config::Config;
use crate::home;

/// Take the value of a setting away
///
/// The value of the file beside the workflow counts then, or else the default.
#[derive(clap::Args)]
#[command(
    override_usage = "cairn env unset NAME --workflow WORKFLOW\n       cairn env unset WORKFLOW NAME",
    after_help = "Examples:\n  cairn env unset CHANNEL --workflow triage\n  cairn env unset triage CHANNEL"
)]
pub(crate) struct Args {
    /// The setting; or the workflow, before the setting
    #[arg(value_name = "NAME")]
    first: String,
    /// The setting, when the workflow comes first
    #[arg(value_name = "NAME_LAST", hide = true)]
    second: Option<String>,
    /// The workflow: its id, the name part of it, or its file
    #[arg(long, value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// Take it out of the file beside the workflow
    #[arg(long)]
    beside: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let mut words = vec![args.first.as_str()];
    words.extend(args.second.as_deref());
    let command = ("cairn env unset", &[][..]);
    let Named { workflow, name, .. } = named::read(&words, args.workflow.as_deref(), command)?;
    let target = Target::find(super::workflow(workflow)?, config)?;
    let removed = home::block_on(async {
        let Target { plan, files, changes, .. } = &target;
        Ok(changes.unset_setting((plan, files), name, args.beside).await?)
    })?;
    let output = &config.output;
    if output.json {
        output.object(&json!({"name": name, "removed": removed}))?;
    } else if removed {
        output.line(&format!("unset {name}"))?;
    } else {
        output.line(&format!("{name} had no value"))?;
    }
    Ok(Exit::Success)
}
