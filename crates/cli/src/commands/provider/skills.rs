//! `cairn provider skills`: the skills that a provider finds.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use serde_json::json;

use crate::config::Config;
use crate::home;
use crate::output::{Style, plain};
use crate::render::{self, Cell};

/// List the skills that a provider finds in this project and in the home
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn provider skills claude\n  cairn provider skills codex --json"
)]
pub(crate) struct Args {
    /// The provider
    name: String,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let found = home::with_store(config, async |store| {
        let found = super::agents(config, store)?.skills(&args.name);
        found.map_err(|refusal| Error::Usage {
            message: refusal.message,
            suggestion: "list the providers with `cairn provider list`".to_owned(),
        })
    })?;
    let output = &config.output;
    if output.json {
        let items = found.iter().map(|skill| {
            json!({"name": skill.name, "description": skill.description, "path": skill.folder})
        });
        output.object(&json!({"items": items.collect::<Vec<_>>()}))?;
        return Ok(Exit::Success);
    }
    if found.is_empty() {
        output.line(&format!("`{}` finds no skills here", plain(&args.name)))?;
        return Ok(Exit::Success);
    }
    let heading = ["SKILL", "WHAT", "FOLDER"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(found.iter().map(|skill| {
        let folder = skill.folder.display().to_string();
        vec![
            Cell::new(plain(&skill.name)),
            Cell::new(plain(&skill.description)),
            Cell::styled(Style::Faint, plain(&folder)),
        ]
    }));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Success)
}
