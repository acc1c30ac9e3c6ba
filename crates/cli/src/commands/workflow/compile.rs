//! `cairn workflow compile`: the plan that a workflow compiles to.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use serde_json::json;

use super::marks;
use crate::config::Config;
use crate::sources;

/// Print the plan that a workflow compiles to, as canonical JSON
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn workflow compile triage.yaml\n  cairn workflow compile project.triage --hash"
)]
pub(crate) struct Args {
    /// Workflow: its file or its id
    #[arg(value_name = "FILE|ID")]
    workflow: String,

    /// Print only the plan's hash
    #[arg(long)]
    hash: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let found = sources::find(&args.workflow, config)?;
    let output = &config.output;
    if !output.json {
        let told = sources::diagnostics(&found);
        marks::render(&found, &told).iter().for_each(|line| output.remark(line));
    }
    let plan = &found.compiled()?.plan;
    let internal = |error: cairn_core::canonical::Error| Error::Internal(error.to_string());
    if args.hash {
        let hash = plan.hash().map_err(internal)?.to_string();
        if output.json {
            output.object(&json!({"workflowHash": hash}))?;
        } else {
            output.line(&hash)?;
        }
        return Ok(Exit::Success);
    }
    let mut bytes = plan.encode().map_err(internal)?;
    bytes.push(b'\n');
    output.bytes(&bytes)?;
    Ok(Exit::Success)
}
