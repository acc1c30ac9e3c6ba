//! `cairn runs cancel`: ends a run.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::flow::Automations;
use serde_json::json;

use super::RunArg;
use crate::config::Config;
use crate::somebody;

/// Cancel a run and its steps under way
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn runs cancel run_01hf7yat --reason 'wrong input'")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Why
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

pub(crate) async fn run(args: &Args, engine: &Automations, config: &Config) -> Result<Exit> {
    let run = args.run.find(engine).await?;
    engine.cancel(run, somebody::by(), &args.reason).await?;
    if config.output.json {
        config.output.object(&json!({"runId": run, "cancelled": true}))?;
    } else {
        config.output.line(&format!("{run} is cancelled"))?;
    }
    Ok(Exit::Success)
}
