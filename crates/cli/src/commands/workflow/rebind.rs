//! `cairn workflow rebind`: gives a workflow what was kept for it in another place.

use std::path::PathBuf;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::catalog::Identity;
use serde_json::json;

use crate::config::Config;
use crate::{home, render, somebody, sources};

/// Give a workflow that was moved its secrets and settings back
///
/// Secrets, and settings of the data directory, are kept for the file in one place. After the file or its project has been moved or renamed, this binds them to the new place. `cairn secret list` shows the places that secrets are kept for.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn workflow rebind /home/me/old/workflows/triage.yaml triage\n  cairn workflow rebind ../old/deploy.yaml ./deploy.yaml"
)]
pub(crate) struct Args {
    /// Where its file was; there must be none now
    #[arg(value_name = "OLD_FILE")]
    from: PathBuf,

    /// The workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let found = sources::find(&args.workflow, config)?;
    let (from, to) = (Identity::of_place(&args.from), found.identity());
    let bound = home::with_store(config, async |store| {
        Ok(somebody::changes(store).rebind(&config.vault(store)?, &from, to).await?)
    })?;
    let output = &config.output;
    if output.json {
        output.object(&json!({
            "workflowId": to.id(), "path": to.place(),
            "secrets": bound.secrets, "settings": bound.settings,
        }))?;
        return Ok(Exit::Success);
    }
    let secrets = render::count(bound.secrets as u64, "secret", "secrets");
    let settings = render::count(bound.settings as u64, "setting", "settings");
    output.line(&format!("{secrets} and {settings} are bound to {to} now"))?;
    Ok(Exit::Success)
}
