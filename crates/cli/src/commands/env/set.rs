//! `cairn env set`: gives a setting a value.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::settings;
use serde_json::json;

use super::Target;
use crate::config::Config;
use crate::home;

/// Give a setting of a workflow a value
///
/// The value is kept in the data directory, or with --beside in the file beside the workflow. What a person wrote around it stays.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn env set triage CHANNEL '#support'\n  cairn env set triage LIMIT 500 --beside\n  cairn env set triage PEOPLE '[{\"id\": \"U1\", \"name\": \"Ann\"}]'"
)]
pub(crate) struct Args {
    /// The workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// The setting
    #[arg(value_name = "NAME")]
    name: String,
    /// Its value; lists in JSON
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    /// Keep it beside the workflow's file
    #[arg(long)]
    beside: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let target = Target::find(&args.workflow, config)?;
    let value = settings::find(&target.plan, &args.name)?.value_of(&args.value);
    let place = home::block_on(async {
        let Target { plan, files, changes, .. } = &target;
        Ok(changes.set_setting((plan, files), &args.name, &value, args.beside).await?)
    })?;
    let output = &config.output;
    if output.json {
        output.object(&json!({"name": args.name, "value": value, "path": place}))?;
    } else {
        output.line(&format!("set {} in {place}", args.name))?;
    }
    Ok(Exit::Success)
}
