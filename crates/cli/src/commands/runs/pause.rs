//! `cairn runs pause`: lets a run begin no more steps.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::flow::Automations;
use serde_json::json;

use super::RunArg;
use crate::config::Config;
use crate::somebody;

/// Let a run begin no more steps until it is resumed
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn runs pause run_01hf7yat")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
}

pub(crate) async fn run(args: &Args, engine: &Automations, config: &Config) -> Result<Exit> {
    let run = args.run.find(engine).await?;
    engine.pause(run, somebody::by()).await?;
    if config.output.json {
        config.output.object(&json!({"runId": run, "paused": true}))?;
    } else {
        config
            .output
            .line(&format!("{run} is paused; resume it with `cairn runs resume {run}`"))?;
    }
    Ok(Exit::Success)
}
