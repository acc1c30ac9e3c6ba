//! `cairn runs resolve`: says what became of a step that a crash cut off.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_core::event::engine::InterruptDecision;
use cairn_core::instance::StepInstanceKey;
use cairn_engine::flow::{Automations, Decider};
use serde_json::json;

use super::RunArg;
use crate::config::Config;
use crate::somebody;

/// Say what became of a step that a crash cut off
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn runs resolve run_01hf7yat charge --decision skip")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Step, such as `charge` or `each@2::charge`
    #[arg(value_name = "STEP")]
    step: StepInstanceKey,

    /// What to do: do it again, count it as failed, or go on behind it
    #[arg(long, value_name = "WHAT")]
    decision: Decision,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Decision {
    Retry,
    Fail,
    Skip,
}

pub(crate) async fn run(args: &Args, engine: &Automations, config: &Config) -> Result<Exit> {
    let run = args.run.find(engine).await?;
    let decision = match args.decision {
        Decision::Retry => InterruptDecision::Retry,
        Decision::Fail => InterruptDecision::Fail,
        Decision::Skip => InterruptDecision::Skip,
    };
    engine.resolve(run, args.step.clone(), Decider::local(somebody::by()), decision).await?;
    if config.output.json {
        config.output.object(&json!({"runId": run, "step": args.step, "decision": decision}))?;
    } else {
        config.output.line("decided")?;
        if engine.is_here(run).await? {
            config.output.remark(&format!("go on with `cairn runs resume {run}`"));
        }
    }
    Ok(Exit::Success)
}
