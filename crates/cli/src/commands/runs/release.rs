//! `cairn runs release`: frees a run that an agent has claimed.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::flow::Automations;
use serde_json::json;

use super::RunArg;
use crate::config::Config;
use crate::somebody;

/// Free a run that an agent has claimed, so that another can join
///
/// A claim ends by itself 15 minutes after the last call of whoever has it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn runs release run_01hf7yat")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
}

pub(crate) async fn run(args: &Args, engine: &Automations, config: &Config) -> Result<Exit> {
    let run = args.run.find(engine).await?;
    let held = engine.release(run, somebody::by()).await?;
    if config.output.json {
        let by = held.as_ref().map(|claimant| &claimant.by);
        config.output.object(&json!({"runId": run, "claimedBy": by}))?;
        return Ok(Exit::Success);
    }
    match held {
        Some(claimant) => config.output.line(&format!("{run} is free; {} had it", claimant.by))?,
        None => config.output.line(&format!("{run} is not claimed"))?,
    }
    Ok(Exit::Success)
}
