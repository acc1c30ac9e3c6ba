//! `cairn session import`: imports what `export` wrote.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_core::bundle::BYTES_MAX;
use cairn_engine::Error as Engine;
use serde_json::json;

use super::trust;
use crate::commands::run::{end, follow};
use crate::config::Config;
use crate::{automate, home, render, somebody, sources};

/// Import a session from a bundle; it stays read-only until you trust it
///
/// The bundle is checked in full before anything is stored. An id that is already in use here is replaced by a new one. Nothing of the session runs until you trust it with `cairn session trust`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session import work.bundle.json\n  cairn session import - < work.bundle.json\n  cairn session import work.bundle.json --trust --workspace ."
)]
pub(crate) struct Args {
    /// Bundle to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Show what it would do, ask, and go on with its runs
    #[arg(long)]
    trust: bool,

    #[command(flatten)]
    how: trust::How,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let bytes =
        read(&args.file).map_err(|source| Error::File { path: args.file.clone(), source })?;
    let engine = automate::open(config, home::open(config)?, sources::catalog(config).into())?;
    let imported = engine.import(&bytes, somebody::by()).await?;
    let (session, original) = (imported.session, imported.original);
    let claims = match engine.claims(session).await {
        Ok(claims) => Some(claims),
        // It is trusted already.
        Err(Engine::Store(cairn_store::Error::NotFound(_))) => None,
        Err(error) => return Err(error.into()),
    };
    if config.output.json {
        config.output.object(&json!({
            "sessionId": session.to_string(),
            "originalSessionId": original.to_string(),
            "rootHash": imported.root,
            "events": imported.events,
            "asNew": imported.as_new,
            "again": imported.again,
            "trusted": claims.is_none(),
        }))?;
    } else {
        let events = render::count(imported.events, "event", "events");
        let verb = if imported.again { "already imported:" } else { "imported" };
        config.output.line(&format!("{verb} {session} with {events}"))?;
        if imported.as_new {
            let what = "what it brings has ids of its own, since some were taken";
            config.output.remark(&format!("{what}; it was {original}"));
        }
    }
    let Some(claims) = claims else { return Ok(Exit::Success) };
    if !args.trust {
        if !config.output.json {
            let hint =
                format!("it does nothing here before you say so: cairn session trust {session}");
            config.output.remark(&hint);
        }
        return Ok(Exit::Success);
    }
    trust::show(&claims, &config.output);
    trust::trust(&engine, &claims, (&args.how, None), config).await?;
    let resumed = async {
        let mut exit = Exit::Success;
        // What people decided elsewhere is asked again in a fork, as was said.
        for run in trust::open(&claims).filter(|run| run.decided.is_empty()) {
            let watch = engine.watch();
            engine.resume(run.run, somebody::by()).await?;
            exit = follow(&engine, run.run, watch, config).await?;
            if matches!(exit, Exit::Interrupted | Exit::Terminated) {
                break;
            }
        }
        Ok(exit)
    };
    let resumed = resumed.await;
    end(&engine, config).await;
    resumed
}

/// Reads no more than one byte beyond what a bundle may have; that one tells it is too long.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
