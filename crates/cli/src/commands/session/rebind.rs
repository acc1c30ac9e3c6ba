//! `cairn session rebind`: binds runs to a project that was moved.

use std::path::PathBuf;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::session;
use serde_json::json;

use crate::config::Config;
use crate::{door, home, render, somebody, sources};

/// Bind the guided runs of a session to a project that was moved
///
/// References, commands of `run` and `verification` steps and the search by branch use the directory that a run was started in. After the project was moved, or on another machine, this binds the runs to where it is now. A checkpoint records it; tokens that were given out stay valid.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session rebind sess_01hf7yat ~/work/shop\n  cairn session rebind quick-calm-otter ."
)]
pub(crate) struct Args {
    /// Session: its id, the beginning of that, or the label of a run
    #[arg(value_name = "ID")]
    session: String,

    /// Directory that the project is in now
    #[arg(value_name = "DIR")]
    workspace: PathBuf,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let (session, runs) = home::with_store(config, async |store| {
        let session = session::resolve(store, &args.session).await?;
        let catalog = sources::catalog(config).into();
        let guide = door::guide(config, store.clone(), catalog, None)?;
        let runs = guide.rebind(session, &args.workspace, somebody::by()).await?;
        Ok((session, runs))
    })?;
    if config.output.json {
        let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
        config.output.object(&json!({"sessionId": session.to_string(), "reboundRuns": runs}))?;
        return Ok(Exit::Success);
    }
    let count = render::count(u64::try_from(runs.len()).unwrap_or(u64::MAX), "run", "runs");
    let place = args.workspace.display();
    config.output.line(&format!("bound {count} of {session} to {place}"))?;
    Ok(Exit::Success)
}
