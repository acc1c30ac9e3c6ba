//! `cairn runs events`: what happened to a run, in order.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::run::moment;

use super::RunArg;
use crate::config::Config;
use crate::output::{Style, plain};

/// Show what happened to a run, oldest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn runs events run_01hf7yat\n  cairn runs events run_01hf7yat --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let past = engine.past(args.run.find(&engine).await?).await?;
    let output = &config.output;
    for event in &past.events {
        let moment = moment(event);
        if output.json {
            output.object(&moment)?;
            continue;
        }
        let at = output.paint(Style::Faint, moment.at.as_deref().unwrap_or_default());
        let step = moment.step.map(|step| format!("{step}  ")).unwrap_or_default();
        output.line(&format!("{at}  {:<14} {step}{}", moment.kind, plain(&moment.what)))?;
    }
    Ok(Exit::Success)
}
