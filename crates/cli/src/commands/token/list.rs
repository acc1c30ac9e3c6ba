//! `cairn token list`: the tokens there are, without their secrets.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::token::{Token, TokenKind, Tokens};

use crate::config::Config;
use crate::fresh;
use crate::home;
use crate::output::Style;
use crate::render::{self, Cell};

/// List the tokens there are, without their secrets
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn token list\n  cairn token list --json")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, config: &Config) -> Result<Exit> {
    let items = home::with_store(config, async |store| super::tokens(store).list().await)?;
    let output = &config.output;
    if output.json {
        output.object(&Tokens { items })?;
        return Ok(Exit::Success);
    }
    if items.is_empty() {
        output.remark("there are no tokens beside the admin token");
        return Ok(Exit::Success);
    }
    let now_ms = fresh::now_ms();
    let heading = ["TOKEN", "NAME", "SCOPES", "FOR", "GOOD UNTIL", "LAST USED"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(items.iter().map(|token| {
        let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
        let whom = match token.workflows.as_slice() {
            [] => "every workflow".to_owned(),
            some => some.join(", "),
        };
        let used = match &token.last_used_at {
            Some(at) => render::ago(now_ms, Some(at)),
            None => "never".to_owned(),
        };
        let name = match token.kind {
            TokenKind::Person => token.name.clone(),
            TokenKind::Agent => format!("{} (agent)", token.name),
        };
        vec![
            Cell::styled(Style::Strong, &token.token_id),
            Cell::new(name),
            Cell::new(scopes.join(", ")),
            Cell::new(whom),
            good_until(token),
            Cell::new(used),
        ]
    }));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Success)
}

fn good_until(token: &Token) -> Cell {
    match &token.expires_at {
        _ if token.revoked => Cell::styled(Style::Bad, "revoked"),
        Some(at) => Cell::new(at),
        None => Cell::new("it is revoked"),
    }
}
