//! `cairn usage`: what runs used up of models.

use std::collections::BTreeMap;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::run::usage::Usage;
use cairn_api::time;
use cairn_engine::flow::Filter;
use serde_json::{Value, json};

use super::runs;
use crate::config::Config;
use crate::output::{Style, plain};
use crate::render::{self, Cell};
use crate::{fresh, home, sources};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The columns that sums are made by.
const BY: [&str; 4] = ["day", "workflow", "provider", "model"];

/// Tell what runs used up of models: by day, workflow, provider and model
///
/// Runs count on the day, in UTC, on which their step ended. Runs that are retired are not counted.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn usage\n  cairn usage --by workflow --days 30\n  cairn usage --by day --by model --json"
)]
pub(crate) struct Args {
    /// Sum up by this; may be repeated
    #[arg(long, value_name = "WHAT", value_parser = BY, default_values = ["day", "workflow", "provider", "model"])]
    by: Vec<String>,

    /// How many days to look back
    #[arg(long, value_name = "N", default_value_t = 7)]
    days: u64,

    /// Count only runs of this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let sums = home::on_threads(async { sums(args, config).await })?;
    let output = &config.output;
    if output.json {
        let item = |(key, used): (&Vec<String>, &Usage)| {
            let by = args.by.iter().cloned().zip(key.iter().map(|value| json!(value)));
            Value::Object(by.chain([("usage".to_owned(), json!(used))]).collect())
        };
        let items: Vec<_> = sums.iter().map(item).collect();
        output.object(&json!({"items": items}))?;
        return Ok(Exit::Success);
    }
    if sums.is_empty() {
        output.remark("no run used anything of a model");
        return Ok(Exit::Success);
    }
    let names = args.by.iter().map(|name| name.to_uppercase());
    let heading = names.chain(["CALLS", "TOKENS IN", "TOKENS OUT", "COST"].map(str::to_owned));
    let mut rows: Vec<Vec<Cell>> =
        vec![heading.map(|name| Cell::styled(Style::Faint, name)).collect()];
    rows.extend(sums.iter().map(|(key, used)| {
        let mut row: Vec<Cell> = key.iter().map(|part| Cell::new(plain(part))).collect();
        row.push(Cell::new(used.launches.to_string()));
        row.push(Cell::new(used.input_tokens.to_string()));
        row.push(Cell::new(used.output_tokens.to_string()));
        row.push(Cell::new(used.cost_in_words()));
        row
    }));
    render::table(output, &rows).iter().try_for_each(|line| output.line(line))?;
    Ok(Exit::Success)
}

/// What was used up, by what is asked for.
async fn sums(args: &Args, config: &Config) -> Result<BTreeMap<Vec<String>, Usage>> {
    let engine = runs::engine(config)?;
    let of = args.workflow.as_ref().map(|given| sources::past_of(given, config)).transpose()?;
    let workflow = of.as_ref().map(|of| of.id.clone());
    let found = engine.list(&Filter { workflow, ..Filter::default() }).await?;
    of.map(|of| of.require(!found.is_empty())).transpose()?;
    let since = fresh::now_ms().saturating_sub(args.days.saturating_mul(DAY_MS));
    let mut sums: BTreeMap<Vec<String>, Usage> = BTreeMap::new();
    for summary in found {
        if summary.ended_ms.is_some_and(|ended| ended < since) {
            continue;
        }
        for event in &engine.past(summary.run).await?.events {
            let at = event.id.minted_ms();
            let Some(used) = Usage::of(event).filter(|_| at >= since) else { continue };
            let part = |name: &String| match name.as_str() {
                "day" => time::rfc3339(at).map(|at| at.chars().take(10).collect()),
                "workflow" => Some(summary.workflow.clone()),
                "provider" => used.provider.clone(),
                _ => used.model.clone(),
            };
            let key = args.by.iter().map(|name| part(name).unwrap_or_else(|| "-".to_owned()));
            let sum = sums.remove(&key.clone().collect::<Vec<_>>());
            sums.extend(Usage::sum(sum, Some(used.clone())).map(|sum| (key.collect(), sum)));
        }
    }
    Ok(sums)
}
