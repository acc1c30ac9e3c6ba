//! `cairn runs replay`: the same event, in a new run.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::flow::Roles;

use super::RunArg;
use crate::config::Config;
use crate::somebody;

/// Do a run again with the same event, on the workflow as it is now
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn runs replay run_01hf7yat")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let run = args.run.find(&engine).await?;
    let again = async { Ok(Some(engine.replay(run, somebody::by(), Roles::Any).await?.run)) };
    crate::commands::run::ask(&engine, again, config).await
}
