//! `cairn secret list`: the secrets there are, without their values.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::time;
use cairn_engine::catalog::Identity;
use cairn_engine::secrets::{Held, Scope};
use serde_json::{Value, json};

use crate::config::Config;
use crate::home;
use crate::output::Style;
use crate::render::{self, Cell};

/// List the secrets there are, without their values
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn secret list\n  cairn secret list --json")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, config: &Config) -> Result<Exit> {
    let mut held = home::with_store(config, async |store| Ok(config.vault(store)?.list().await?))?;
    // Those for every workflow first.
    let order = |held: &Held| match &held.scope {
        Scope::Global => (None, held.name.clone()),
        Scope::Workflow(of) => {
            (Some((of.id().to_owned(), of.place().to_owned())), held.name.clone())
        }
    };
    held.sort_by_key(order);
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
    let heading = ["NAME", "FOR", "VERSION", "FILE"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(held.iter().map(|held| {
        let (whom, place) = whom(held);
        let version = held.version.to_string();
        let place = Cell::styled(Style::Faint, place);
        vec![Cell::new(&held.name), Cell::new(whom), Cell::new(version), place]
    }));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Success)
}

/// Who a secret is for, and where that is.
fn whom(held: &Held) -> (&str, &str) {
    match &held.scope {
        Scope::Global => ("every workflow", "-"),
        Scope::Workflow(workflow) => (workflow.id(), workflow.place()),
    }
}

fn for_programs(held: &Held) -> Value {
    let workflow = match &held.scope {
        Scope::Global => None,
        Scope::Workflow(workflow) => Some(workflow),
    };
    json!({
        "name": held.name, "workflowId": workflow.map(Identity::id),
        "path": workflow.map(Identity::place), "version": held.version,
        "setAt": time::rfc3339(held.set_at_ms),
    })
}
