//! `cairn runs export`: a run as two files, for other programs.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::run::Shown;
use cairn_engine::record::{Action, Object};
use serde_json::json;

use super::RunArg;
use crate::config::Config;
use crate::{home, somebody};

/// Write a run to `state.json` and `events.jsonl` in a folder
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn runs export run_01hf7yat --to out")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Folder to write to; it is made when it is not there [default: the run's id]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let run = args.run.find(&engine).await?;
    let workflow = engine.past(run).await?.summary.workflow;
    let changes = somebody::changes(&home::open(config)?);
    let object = Object { run: Some(run), workflow: Some(workflow), ..Object::default() };
    let deed = changes.deed(Action::ExportRun, object, &json!({}));
    let past = changes.make(deed, engine.past(run)).await?;
    let folder = args.to.clone().unwrap_or_else(|| past.summary.run.to_string().into());
    let shown = serde_json::to_vec_pretty(&Shown::from(&past));
    let shown = shown.map_err(|error| Error::Internal(error.to_string()))?;
    let mut lines = Vec::new();
    for event in &past.events {
        let line = event.encode().map_err(|error| Error::Internal(error.to_string()))?;
        lines.extend(line);
        lines.push(b'\n');
    }
    write(&folder, "state.json", &shown)?;
    write(&folder, "events.jsonl", &lines)?;
    let (path, count) = (folder.display().to_string(), past.events.len());
    if config.output.json {
        config.output.object(&json!({"folder": path, "events": count}))?;
    } else {
        config.output.line(&format!("{count} events written to {path}"))?;
    }
    Ok(Exit::Success)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    let failed = |source| Error::File { path: path.clone(), source };
    // It may hold what is nobody else's business.
    let written = || {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(bytes)
    };
    written().map_err(failed)
}
