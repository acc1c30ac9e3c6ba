//! `cairn env set`: gives a setting a value.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::settings;
use serde_json::json;

use super::Target;
use crate::commands::named::{self, Named};
use crate::config::Config;
use crate::home;

/// Give a setting of a workflow a value
///
/// The value is kept in the data directory, or with --beside in the file beside the workflow. What a person wrote around it stays.
#[derive(clap::Args)]
#[command(
    override_usage = "cairn env set NAME VALUE --workflow WORKFLOW\n       cairn env set WORKFLOW NAME VALUE",
    after_help = "Examples:\n  cairn env set CHANNEL '#support' --workflow triage\n  cairn env set triage LIMIT 500 --beside\n  cairn env set triage PEOPLE '[{\"id\": \"U1\", \"name\": \"Ann\"}]'"
)]
pub(crate) struct Args {
    /// The setting; or the workflow, before the setting
    #[arg(value_name = "NAME")]
    first: String,
    /// Its value; lists in JSON
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    second: String,
    /// The value, when the workflow comes first
    #[arg(value_name = "VALUE_LAST", hide = true, allow_hyphen_values = true)]
    third: Option<String>,
    /// The workflow: its id, the name part of it, or its file
    #[arg(long, value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// Keep it beside the workflow's file
    #[arg(long)]
    beside: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let mut words = vec![args.first.as_str(), &args.second];
    words.extend(args.third.as_deref());
    let command = ("cairn env set", &["VALUE"][..]);
    let Named { workflow, name, rest } = named::read(&words, args.workflow.as_deref(), command)?;
    let target = Target::find(super::workflow(workflow)?, config)?;
    let text = rest.first().copied().unwrap_or_default();
    let value = settings::find(&target.plan, name)?.value_of(text);
    let place = home::block_on(async {
        let Target { plan, files, changes, .. } = &target;
        Ok(changes.set_setting((plan, files), name, &value, args.beside).await?)
    })?;
    let output = &config.output;
    if output.json {
        output.object(&json!({"name": name, "value": value, "path": place}))?;
    } else {
        output.line(&format!("set {name} in {place}"))?;
    }
    Ok(Exit::Success)
}
