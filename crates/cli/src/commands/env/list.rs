//! `cairn env list`: what a workflow asks for, and what it gets.

use cairn_api::Exit;
use cairn_api::env::{Env, Setting};
use cairn_api::error::Result;
use serde_json::Value;

use super::Target;
use crate::config::Config;
use crate::output::Style;
use crate::render::{self, Cell};

/// List the settings of a workflow with their values
///
/// Secrets are listed without theirs.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn env list triage\n  cairn env list ./triage.yaml --all --json"
)]
pub(crate) struct Args {
    /// The workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW", required_unless_present = "of")]
    workflow: Option<String>,
    /// The same, as other commands take it
    #[arg(
        long = "workflow",
        id = "of",
        value_name = "WORKFLOW",
        hide = true,
        conflicts_with = "workflow"
    )]
    of: Option<String>,
    /// List hidden settings too, and those that hang on another that does not ask for them
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let target =
        Target::find(super::workflow(args.workflow.as_deref().or(args.of.as_deref()))?, config)?;
    let mut env = Env::of(&target.plan, &target.settings()?);
    env.items.retain(|setting| args.all || (!setting.hidden && setting.shown));
    let output = &config.output;
    if output.json {
        output.object(&env)?;
        return Ok(Exit::Success);
    }
    if env.items.is_empty() {
        output.line("the workflow asks for no settings")?;
        return Ok(Exit::Success);
    }
    let heading = ["NAME", "KIND", "VALUE", "FROM"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(env.items.iter().map(row));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Success)
}

fn row(setting: &Setting) -> Vec<Cell> {
    let value = match &setting.value {
        Some(Value::String(text)) => Cell::new(text),
        Some(value) => Cell::new(value.to_string()),
        None if setting.is_set => Cell::new("***"),
        None if setting.missing => Cell::styled(Style::Bad, "missing"),
        None => Cell::styled(Style::Faint, "-"),
    };
    vec![
        Cell::new(&setting.name),
        Cell::new(&setting.widget),
        value,
        Cell::styled(Style::Faint, setting.origin.unwrap_or("-")),
    ]
}
