//! `cairn env list`: what a workflow asks for, and what it gets.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_core::plan::EnvField;
use cairn_engine::settings::Settings;
use serde_json::{Value, json};

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
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// List hidden settings too, and those that hang on another that does not ask for them
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let target = Target::find(&args.workflow, config)?;
    let settings = target.settings(config)?;
    let all = &target.plan.env;
    let shown = |field: &&EnvField| args.all || (!field.hidden && settings.shows(field, all));
    let fields: Vec<&EnvField> = all.iter().filter(shown).collect();
    let output = &config.output;
    if output.json {
        let items: Vec<Value> = fields.iter().map(|field| for_programs(field, &settings)).collect();
        output.object(&json!({"workflowId": target.plan.workflow_id, "items": items}))?;
        return Ok(Exit::Success);
    }
    if fields.is_empty() {
        output.line("the workflow asks for no settings")?;
        return Ok(Exit::Success);
    }
    let heading = ["NAME", "KIND", "VALUE", "FROM"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(fields.iter().map(|field| row(field, &settings)));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Success)
}

fn row(field: &EnvField, settings: &Settings) -> Vec<Cell> {
    let origin = settings.origins.get(&field.name);
    let value = match (settings.values.get(&field.name), origin) {
        (Some(Value::String(text)), _) => Cell::new(text),
        (Some(value), _) => Cell::new(value.to_string()),
        (None, Some(_)) => Cell::new("***"),
        (None, None) if settings.missing.contains(&field.name) => {
            Cell::styled(Style::Bad, "missing")
        }
        (None, None) => Cell::styled(Style::Faint, "-"),
    };
    let from = origin.map_or("-", |origin| origin.name());
    vec![
        Cell::new(&field.name),
        Cell::new(field.r#type.as_str()),
        value,
        Cell::styled(Style::Faint, from),
    ]
}

fn for_programs(field: &EnvField, settings: &Settings) -> Value {
    json!({
        "name": field.name,
        "widget": field.r#type,
        "description": field.description,
        "required": field.required,
        "secret": field.secret,
        "value": settings.values.get(&field.name),
        "isSet": settings.origins.contains_key(&field.name),
        "origin": settings.origins.get(&field.name).map(|origin| origin.name()),
        "missing": settings.missing.contains(&field.name),
    })
}
