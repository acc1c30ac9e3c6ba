//! `cairn secret rotate`: seals every secret under a fresh master key.

use std::path::PathBuf;

use cairn_api::Exit;
use cairn_api::error::Result;
use serde_json::json;

use crate::config::Config;
use crate::{home, somebody};

/// Seal every secret under a fresh master key
///
/// The values stay as they are. The key before ends here, and with it every copy of the vault that was made under it. A crash at any point loses nothing.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn secret rotate\n  cairn secret rotate --key-file /run/keys/cairn-2"
)]
pub(crate) struct Args {
    /// Put the fresh key into this file, which must not be there; needed when CAIRN_MASTER_KEY gives the key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let count = home::with_store(config, async |store| {
        let vault = config.vault(store)?;
        Ok(somebody::changes(store).rotate_secrets(&vault, args.key_file.as_deref()).await?)
    })?;
    let output = &config.output;
    if output.json {
        let file = args.key_file.as_ref().map(|file| file.display().to_string());
        output.object(&json!({"secrets": count, "keyFile": file}))?;
        return Ok(Exit::Success);
    }
    let count = crate::render::count(count.try_into().unwrap_or(u64::MAX), "secret", "secrets");
    output.line(&format!("{count} under a fresh master key"))?;
    if let Some(file) = &args.key_file {
        output.remark(&format!("set CAIRN_MASTER_KEY_FILE to {} from now on", file.display()));
    }
    Ok(Exit::Success)
}
