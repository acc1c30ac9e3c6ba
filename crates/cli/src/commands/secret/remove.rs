//! `cairn secret remove`: forgets a secret.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use serde_json::json;

use crate::commands::named::{self, Named};
use crate::config::Config;
use crate::{home, somebody};

/// Forget a secret
#[derive(clap::Args)]
#[command(
    override_usage = "cairn secret remove NAME [--workflow WORKFLOW] --yes\n       cairn secret remove WORKFLOW NAME --yes",
    after_help = "Examples:\n  cairn secret remove GITHUB_PAT --yes\n  cairn secret remove GITHUB_PAT --workflow triage --yes"
)]
pub(crate) struct Args {
    /// The secret; or the workflow, before the secret
    #[arg(value_name = "NAME")]
    first: String,
    /// The secret, when the workflow comes first
    #[arg(value_name = "NAME_LAST", hide = true)]
    second: Option<String>,
    /// The workflow that it is for: its id, the name part of it, or its file
    #[arg(long, value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// Do it; it cannot be undone
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let mut words = vec![args.first.as_str()];
    words.extend(args.second.as_deref());
    let command = ("cairn secret remove", &[][..]);
    let Named { workflow: of, name, .. } = named::read(&words, args.workflow.as_deref(), command)?;
    let scope = super::scope(of, None, config)?;
    if !args.yes {
        return Err(Error::Unconfirmed(format!("forgetting the secret `{name}`")));
    }
    let removed = home::with_store(config, async |store| {
        let vault = config.vault(store)?;
        Ok(somebody::changes(store).remove_secret(&vault, &scope, name).await?)
    })?;
    if !removed {
        let name = name.to_owned();
        return Err(cairn_engine::Error::SecretUnknown { scope, name }.into());
    }
    if config.output.json {
        config.output.object(&json!({"name": name, "removed": true}))?;
    } else {
        config.output.line(&format!("removed {name}"))?;
    }
    Ok(Exit::Success)
}
