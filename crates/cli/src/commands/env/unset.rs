//! `cairn env unset`: takes the value of a setting away.

use cairn_api::Exit;
use cairn_api::error::Result;
use serde_json::json;

use super::Target;
use crate::config::Config;
use crate::home;

/// Take the value of a setting away
///
/// The value of the file beside the workflow counts then, or else the default.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cairn env unset triage CHANNEL")]
pub(crate) struct Args {
    /// The workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// The setting
    #[arg(value_name = "NAME")]
    name: String,
    /// Take it out of the file beside the workflow
    #[arg(long)]
    beside: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let target = Target::find(&args.workflow, config)?;
    let removed = home::block_on(async {
        let Target { plan, files, changes, .. } = &target;
        Ok(changes.unset_setting((plan, files), &args.name, args.beside).await?)
    })?;
    let output = &config.output;
    if output.json {
        output.object(&json!({"name": args.name, "removed": removed}))?;
    } else if removed {
        output.line(&format!("unset {}", args.name))?;
    } else {
        output.line(&format!("{} had no value", args.name))?;
    }
    Ok(Exit::Success)
}
