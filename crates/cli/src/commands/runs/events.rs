//! `cairn runs events`: what happened to a run, in order.

use std::time::{Duration, Instant};

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::run::moment;
use cairn_core::event::Event;

use super::RunArg;
use crate::config::Config;
use crate::output::{Output, Style, plain};

/// How often a run is looked at that is followed.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How much longer than a look nothing is looked at.
const REST: u32 = 20;

/// Show what happened to a run, oldest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn runs events run_01hf7yat\n  cairn runs events run_01hf7yat --follow\n  cairn runs events run_01hf7yat --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Go on until the run is over, whoever performs it
    #[arg(long, short)]
    follow: bool,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let run = args.run.find(&engine).await?;
    let mut next = 0;
    loop {
        let begun = Instant::now();
        let past = engine.past(run).await?;
        let mut fresh = past.events.iter().filter(|event| event.index.0 >= next);
        fresh.try_for_each(|event| show(event, &config.output))?;
        next = past.events.last().map_or(next, |last| last.index.0 + 1);
        if !args.follow || past.summary.is_over() {
            return Ok(Exit::Success);
        }
        tokio::time::sleep(LOOK_EVERY.max(begun.elapsed() * REST)).await;
    }
}

fn show(event: &Event, output: &Output) -> Result<()> {
    let moment = moment(event);
    if output.json {
        return output.object(&moment);
    }
    let at = output.paint(Style::Faint, moment.at.as_deref().unwrap_or_default());
    let step = moment.step.map(|step| format!("{step}  ")).unwrap_or_default();
    output.line(&format!("{at}  {:<14} {step}{}", moment.kind, plain(&moment.what)))
}
