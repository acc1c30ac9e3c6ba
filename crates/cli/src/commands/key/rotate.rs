//! `cairn key rotate`: signs with a fresh key from now on.

use cairn_api::Exit;
use cairn_api::error::Result;
use serde_json::json;

use crate::config::Config;
use crate::{home, somebody};

/// Sign tokens with a fresh key from now on
///
/// Tokens that the key before signed stay valid until the next rotation; older ones end
/// here. A run is never lost by this: a new token for it can be asked for at any time.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cairn key rotate")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, config: &Config) -> Result<Exit> {
    let keyring =
        home::with_store(config, async |store| Ok(somebody::changes(store).rotate_keys().await?))?;
    let generation = keyring.generation;
    if config.output.json {
        config.output.object(&json!({"generation": generation}))?;
    } else {
        config.output.line(&format!("signing with key {generation} from now on"))?;
    }
    Ok(Exit::Success)
}
