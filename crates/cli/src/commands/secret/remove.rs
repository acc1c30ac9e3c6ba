//! `cairn secret remove`: forgets a secret.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use serde_json::json;

use crate::config::Config;
use crate::{home, somebody};

/// Forget a secret
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn secret remove GITHUB_PAT --yes\n  cairn secret remove GITHUB_PAT --workflow triage --yes"
)]
pub(crate) struct Args {
    /// The secret
    #[arg(value_name = "NAME")]
    name: String,
    /// The workflow that it is for: its id, the name part of it, or its file
    #[arg(long, value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// Do it; it cannot be undone
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let scope = super::scope(args.workflow.as_deref(), None, config)?;
    if !args.yes {
        return Err(Error::Unconfirmed(format!("forgetting the secret `{}`", args.name)));
    }
    let removed = home::with_store(config, async |store| {
        let vault = config.vault(store)?;
        Ok(somebody::changes(store).remove_secret(&vault, &scope, &args.name).await?)
    })?;
    if !removed {
        let (scope, name) = (scope.to_string(), args.name.clone());
        return Err(cairn_engine::Error::SecretUnknown { scope, name }.into());
    }
    if config.output.json {
        config.output.object(&json!({"name": args.name, "removed": true}))?;
    } else {
        config.output.line(&format!("removed {}", args.name))?;
    }
    Ok(Exit::Success)
}
