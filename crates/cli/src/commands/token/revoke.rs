//! `cairn token revoke`: lets a token be good no more.

use cairn_api::Exit;
use cairn_api::error::Result;

use crate::config::Config;
use crate::{fresh, home, somebody};

/// Let a token be good no more
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn token revoke ci\n  cairn token revoke tok_1f2e3d4c5b6a")]
pub(crate) struct Args {
    /// Token: its id, or its name
    #[arg(value_name = "TOKEN")]
    token: String,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let token = home::with_store(config, async |store| {
        let changes = somebody::changes(store);
        super::tokens(store).revoke(&changes, &args.token, fresh::now_ms()).await
    })?;
    if config.output.json {
        config.output.object(&token)?;
    } else {
        config.output.line(&format!("revoked {} ({})", token.name, token.token_id))?;
    }
    Ok(Exit::Success)
}
