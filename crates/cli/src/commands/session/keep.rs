//! `cairn session keep`: keeps a session whatever its age.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::session;
use serde_json::json;

use crate::config::Config;
use crate::{home, somebody};

/// Keep a session whatever its age
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session keep sess_01hf7yat\n  cairn session keep sess_01hf7yat --off"
)]
pub(crate) struct Args {
    /// Session: its id, the beginning of that, or the label of a run
    #[arg(value_name = "ID")]
    session: String,

    /// Let it go when its time is over, like the others
    #[arg(long)]
    off: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let kept = !args.off;
    let session = home::with_papers(config, async |store| {
        let session = session::resolve(store, &args.session).await?;
        somebody::changes(store).keep_session(session, kept).await?;
        Ok(session)
    })?;
    if config.output.json {
        config.output.object(&json!({"sessionId": session.to_string(), "kept": kept}))?;
    } else if kept {
        config.output.line(&format!("keeping {session} whatever its age"))?;
    } else {
        config.output.line(&format!("{session} goes when its time is over"))?;
    }
    Ok(Exit::Success)
}
