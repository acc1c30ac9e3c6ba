//! `cairn secret list`: the secrets there are, without their values.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::time;
use cairn_engine::secrets::{Held, Scope};
use serde_json::{Value, json};

use crate::config::Config;
use crate::output::Style;
use crate::render::{self, Cell};

/// List the secrets there are, without their values
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn secret list\n  cairn secret list --json")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, config: &Config) -> Result<Exit> {
    let held = config.vault()?.list()?;
    let output = &config.output;
    if output.json {
        let items: Vec<Value> = held.iter().map(for_programs).collect();
        output.object(&json!({"items": items}))?;
        return Ok(Exit::Success);
    }
    if held.is_empty() {
        output.line("there are no secrets")?;
        return Ok(Exit::Success);
    }
    let heading = ["NAME", "FOR", "VERSION"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(held.iter().map(|held| {
        vec![Cell::new(&held.name), Cell::new(whom(held)), Cell::new(held.version.to_string())]
    }));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Success)
}

fn whom(held: &Held) -> &str {
    match &held.scope {
        Scope::Global => "every workflow",
        Scope::Workflow(id) => id,
    }
}

fn for_programs(held: &Held) -> Value {
    let workflow = match &held.scope {
        Scope::Global => None,
        Scope::Workflow(id) => Some(id),
    };
    json!({
        "name": held.name, "workflowId": workflow, "version": held.version,
        "setAt": time::rfc3339(held.set_at_ms),
    })
}
