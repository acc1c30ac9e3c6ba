//! `cairn workflow list`: the workflows there are.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::workflow::Summary;
use serde_json::json;

use crate::config::Config;
use crate::output::Style;
use crate::render::{self, Cell};
use crate::sources;

/// List the workflows there are, by id
///
/// Workflows come from `workflows` and `.cairn/workflows` here, from the directories in
/// CAIRN_WORKFLOWS or else in the configuration file, from `cairn/workflows` in the user's
/// configuration directory, from the directories in CAIRN_BUNDLED or else in the file, and
/// some are built in. Where several have the same id, the first of these wins; only ids that
/// begin with `wr.` are always the bundled ones.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cairn workflow list\n  cairn workflow list --json")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, config: &Config) -> Result<Exit> {
    let found = sources::catalog(config).list()?;
    let taken: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
    let items: Vec<Summary> = found.iter().map(|found| Summary::of(found, &taken)).collect();
    let output = &config.output;
    if output.json {
        output.object(&json!({"items": items}))?;
        return Ok(Exit::Success);
    }
    let heading = ["WORKFLOW", "NAME", "SOURCE", "STEPS"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(items.iter().map(row));
    for line in render::table(output, &rows) {
        output.line(&line)?;
    }
    Ok(Exit::Success)
}

fn row(summary: &Summary) -> Vec<Cell> {
    let steps = if summary.errors == 0 {
        Cell::new(summary.steps.to_string())
    } else {
        let errors = u64::try_from(summary.errors).unwrap_or(u64::MAX);
        Cell::styled(Style::Bad, render::count(errors, "error", "errors"))
    };
    vec![
        Cell::new(&summary.workflow_id),
        Cell::new(if summary.name.is_empty() { "-" } else { &summary.name }),
        Cell::new(summary.source_kind),
        steps,
    ]
}
