//! `cairn provider check`: whether providers can be asked from here.

use cairn_api::Exit;
use cairn_api::error::Result;
use serde_json::json;

use crate::config::Config;
use crate::home;
use crate::output::{Style, plain};
use crate::render::{self, Cell};

/// Check whether a provider, or every one, is installed and has its key
///
/// No model is asked anything. The exit code is 3 when the provider that is named cannot be used.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn provider check\n  cairn provider check claude --json")]
pub(crate) struct Args {
    /// The provider [default: all of them]
    name: Option<String>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let found = home::with_store(config, async |store| {
        let agents = super::agents(config, store)?;
        let names: Vec<String> = match &args.name {
            Some(name) => vec![name.clone()],
            None => agents.configuration().providers.keys().cloned().collect(),
        };
        let mut found = Vec::new();
        for name in names {
            let checked = agents.check(&name).await;
            found.push((name, checked));
        }
        Ok(found)
    })?;
    let bad = args.name.is_some() && found.iter().any(|(_, checked)| checked.is_err());
    let exit = if bad { Exit::Invalid } else { Exit::Success };
    let output = &config.output;
    if output.json {
        let items = found.iter().map(|(name, checked)| match checked {
            Ok(what) => json!({"name": name, "ok": true, "text": what}),
            Err(refusal) => {
                json!({"name": name, "ok": false, "code": refusal.kind.code(), "text": refusal.message})
            }
        });
        output.object(&json!({"items": items.collect::<Vec<_>>()}))?;
        return Ok(exit);
    }
    let rows: Vec<Vec<Cell>> = found
        .iter()
        .map(|(name, checked)| match checked {
            Ok(what) => {
                vec![Cell::styled(Style::Good, "ok"), Cell::new(name), Cell::new(plain(what))]
            }
            Err(refusal) => vec![
                Cell::styled(Style::Warning, "no"),
                Cell::new(name),
                Cell::new(plain(&refusal.message)),
            ],
        })
        .collect();
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(exit)
}
