//! `cairn runs resume`: goes on with a run that was left, or that rests.

use std::cell::Cell;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_core::event::By;
use cairn_engine::flow::{Automations, Past};
use serde_json::json;

use super::RunArg;
use crate::config::Config;
use crate::somebody;

/// Go on with a run that was left or paused, and show how it goes
///
/// A run that another process performs is only told to go on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn runs resume run_01hf7yat")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Stay until the run is over, also while another process performs it
    #[arg(long, hide = true)]
    stay: bool,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let run = args.run.find(&engine).await?;
    let past = engine.past(run).await?;
    let elsewhere = Cell::new(false);
    let resumed = async {
        elsewhere.set(resume(args, &engine, &past).await? && !args.stay);
        if elsewhere.get() {
            return Ok(None);
        }
        Ok(Some(run))
    };
    let exit = crate::commands::run::ask(&engine, resumed, config).await?;
    if !elsewhere.get() {
        return Ok(exit);
    }
    if config.output.json {
        config.output.object(&json!({"runId": run, "resumed": true}))?;
    } else {
        config.output.line(&format!("{run} is performed by another process, and goes on"))?;
    }
    Ok(Exit::Success)
}

/// Has a run go on; says whether another process performs it.
async fn resume(args: &Args, engine: &Automations, past: &Past) -> Result<bool> {
    let run = past.summary.run;
    // Who left a run to a process of its own was recorded when it began.
    let by = if args.stay { By::engine() } else { somebody::by() };
    // One that does not rest was left by whoever performed it, and is taken over by being
    // spoken to.
    engine.go_on(run, by).await?;
    Ok(!engine.is_here(run).await?)
}
