//! `cairn session delete`: removes a session for good.

use std::io::{self, IsTerminal as _, Write as _};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::session;
use serde_json::json;

use crate::config::Config;
use crate::home;
use crate::render;
use crate::somebody;

/// Remove a session and everything in it
///
/// Asks first on a terminal. Blobs that no other session needs go with the next
/// `cairn session gc`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cairn session delete sess_01hf7yat --yes")]
pub(crate) struct Args {
    /// Session: its id, the beginning of that, or the label of a run
    #[arg(value_name = "ID")]
    session: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let session = home::with_papers(config, async |store| {
        let session = session::resolve(store, &args.session).await?;
        let events = store.log.status(session).await?.events;
        let what = format!("deleting {session} with {}", render::count(events, "event", "events"));
        if !args.yes && !confirmed(&what)? {
            return Err(Error::Unconfirmed(what));
        }
        somebody::changes(store).delete_session(session).await?;
        Ok(session)
    })?;
    if config.output.json {
        config.output.object(&json!({"sessionId": session.to_string(), "deleted": true}))?;
    } else {
        config.output.line(&format!("deleted {session}"))?;
    }
    Ok(Exit::Success)
}

/// Asks whoever sits at the terminal; nobody there says no.
pub(super) fn confirmed(what: &str) -> Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    let mut terminal = io::stderr().lock();
    write!(terminal, "{what}: sure? [y/N] ").map_err(Error::Output)?;
    terminal.flush().map_err(Error::Output)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(Error::Output)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
