//! `cairn runs resume`: goes on with a run that was left, or that rests.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::Error as Engine;
use serde_json::json;

use super::RunArg;
use crate::config::Config;

/// Go on with a run that was left or paused, and show how it goes
///
/// A run that another process performs is only told to go on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn runs resume run_01hf7yat")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let run = args.run.find(&engine).await?;
    let was_over = engine.state(run).await?.0.is_over();
    let watch = engine.watch();
    // One that does not rest was left by whoever performed it, and is taken over by being
    // spoken to.
    let elsewhere = match engine.resume(run, &super::somebody()).await {
        Ok(()) => !engine.is_here(run).await?,
        Err(error @ (Engine::RunRefused { .. } | Engine::Told { .. })) => {
            // It may come to its end as soon as somebody takes it over.
            let ended_now = error.code() == "RUN_ENDED" && !was_over;
            if error.code() != "RUN_STATE" && !ended_now {
                return Err(error.into());
            }
            !engine.is_here(run).await?
        }
        Err(error) => return Err(error.into()),
    };
    if !elsewhere {
        return crate::commands::run::follow(&engine, run, watch, config).await;
    }
    if config.output.json {
        config.output.object(&json!({"runId": run, "resumed": true}))?;
    } else {
        config.output.line(&format!("{run} is performed by another process, and goes on"))?;
    }
    Ok(Exit::Success)
}
