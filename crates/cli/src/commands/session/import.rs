//! `cairn session import`: takes in what `export` wrote.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_core::bundle::BYTES_MAX;
use serde_json::json;

use crate::config::Config;
use crate::render;
use crate::{fresh, home, somebody};

/// Take in a session from a bundle
///
/// The bundle is checked in full before anything is stored. When there is a session of
/// that id already, the bundle becomes a new session of its own.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session import work.bundle.json\n  cairn session import - < work.bundle.json"
)]
pub(crate) struct Args {
    /// Bundle to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let bytes =
        read(&args.file).map_err(|source| Error::File { path: args.file.clone(), source })?;
    let fresh = fresh::session_id()?;
    let imported = home::with_store(config, async |store| {
        Ok(somebody::changes(store).import(&bytes, fresh).await?)
    })?;
    if config.output.json {
        config.output.object(&json!({
            "sessionId": imported.session.to_string(),
            "originalSessionId": imported.original.to_string(),
            "events": imported.events,
            "asNew": imported.as_new,
        }))?;
        return Ok(Exit::Success);
    }
    let events = render::count(imported.events, "event", "events");
    config.output.line(&format!("imported {} with {events}", imported.session))?;
    if imported.as_new {
        let original = imported.original;
        config.output.remark(&format!("there is a session {original} already; this is a new one"));
    }
    Ok(Exit::Success)
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
