//! `cairn runs`: the runs that the engine performs.

use cairn_api::Exit;
use cairn_api::beginning::{Meant, is_beginning, meant};
use cairn_api::error::{Error, Result};
use cairn_core::id::RunId;
use cairn_engine::flow::Automations;
use clap::Subcommand;

use crate::config::Config;
use crate::{automate, home, sources};

use super::run::PATIENCE;

mod answer;
mod cancel;
mod events;
mod export;
mod fork;
mod list;
mod pause;
mod release;
mod replay;
mod resolve;
mod resume;
pub(crate) mod show;

/// See, stop, carry on and repeat runs of automations
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn runs list\n  cairn runs show run_01hf7yat\n  cairn runs fork run_01hf7yat --from notify"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Answer(answer::Args),
    Cancel(cancel::Args),
    Events(events::Args),
    Export(export::Args),
    Fork(fork::Args),
    List(list::Args),
    Pause(pause::Args),
    Release(release::Args),
    Replay(replay::Args),
    Resolve(resolve::Args),
    Resume(resume::Args),
    Show(show::Args),
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    home::on_threads(async {
        match args.command {
            Command::Answer(args) => {
                say(config, async |engine| answer::run(&args, engine, config).await).await
            }
            Command::Cancel(args) => {
                say(config, async |engine| cancel::run(&args, engine, config).await).await
            }
            Command::Events(args) => events::run(&args, config).await,
            Command::Export(args) => export::run(&args, config).await,
            Command::Fork(args) => fork::run(&args, config).await,
            Command::List(args) => list::run(&args, config).await,
            Command::Pause(args) => {
                say(config, async |engine| pause::run(&args, engine, config).await).await
            }
            Command::Release(args) => {
                say(config, async |engine| release::run(&args, engine, config).await).await
            }
            Command::Replay(args) => replay::run(&args, config).await,
            Command::Resolve(args) => {
                say(config, async |engine| resolve::run(&args, engine, config).await).await
            }
            Command::Resume(args) => resume::run(&args, config).await,
            Command::Show(args) => show::run(&args, config).await,
        }
    })
}

/// The engine over the data directory.
pub(super) fn engine(config: &Config) -> Result<Automations> {
    let catalog = sources::catalog(config).into();
    automate::open(config, home::open(config)?, catalog)
}

/// Says something to a run. Nothing is performed for it in this process: a run that nobody
/// performs is left to whoever goes on with it.
async fn say(
    config: &Config,
    said: impl AsyncFnOnce(&Automations) -> Result<Exit>,
) -> Result<Exit> {
    let engine = engine(config)?;
    engine.drain().await;
    let exit = said(&engine).await;
    engine.stop(PATIENCE).await;
    exit
}

/// A run: its id, or the beginning of it.
#[derive(clap::Args)]
struct RunArg {
    /// Run, or the beginning of its id
    #[arg(value_name = "RUN")]
    run: String,
}

impl RunArg {
    /// The run that is meant.
    async fn find(&self, engine: &Automations) -> Result<RunId> {
        find(&self.run, engine).await
    }
}

/// The run with this id, or with an id that begins so. A whole id is taken as it is.
pub(crate) async fn find(text: &str, engine: &Automations) -> Result<RunId> {
    if let Ok(run) = text.parse() {
        return Ok(run);
    }
    if !is_beginning(text, RunId::PREFIX, RunId::from_bits(0)) {
        return Err(Error::RunIdInvalid(text.chars().take(64).collect()));
    }
    let all = engine.list(&cairn_engine::flow::Filter::default()).await?;
    match meant(text, all.iter().map(|row| row.run)) {
        Meant::None => Err(Error::RunUnknown(text.to_owned())),
        Meant::One(run) => Ok(run),
        Meant::Several(matches) => Err(Error::RunIdAmbiguous { prefix: text.to_owned(), matches }),
    }
}
