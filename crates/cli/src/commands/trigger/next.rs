//! `cairn trigger next`: the coming instants of the clock's triggers.

use std::sync::Arc;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::time::rfc3339;
use cairn_engine::trigger::{Times, Watch};
use cairn_server::watched;
use serde_json::{Value, json};

use crate::config::Config;
use crate::{fresh, sources};

/// Show when the clock fires the triggers of a workflow
///
/// Instants are shown in UTC and, where the trigger has a time zone, by its clock. Those of a workflow that is switched off are shown as if it were on.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn trigger next digest\n  cairn trigger next digest --count 5 --json"
)]
pub(crate) struct Args {
    /// Workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// How many instants of each trigger
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    count: u16,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let found = sources::find(&args.workflow, config)?;
    found.compiled()?;
    let now_ms = fresh::now_ms();
    let places = watched::places(&[found], &super::types());
    let timed = places.iter().filter_map(|place| match &place.watch {
        Watch::Times(times) => Some((place, coming(times, now_ms, args.count))),
        _ => None,
    });
    let timed: Vec<_> = timed.collect();
    let output = &config.output;
    if output.json {
        let items: Vec<Value> = timed
            .iter()
            .map(|(place, at)| json!({"triggerId": place.trigger.to_string(), "enabled": place.enabled, "nextAt": at.iter().map(|at| &at.utc).collect::<Vec<_>>(), "localAt": at.iter().filter_map(|at| at.local.as_ref()).collect::<Vec<_>>()}))
            .collect();
        output.object(&json!({"items": items}))?;
        return Ok(Exit::Success);
    }
    if timed.is_empty() {
        output.remark("the clock fires no trigger of this workflow");
    }
    for (place, instants) in timed {
        if instants.is_empty() {
            output.line(&format!("{}  never again", place.trigger))?;
        }
        for at in instants {
            let local = at.local.map(|local| format!("  {local}")).unwrap_or_default();
            output.line(&format!("{}  {}{local}", place.trigger, at.utc))?;
        }
    }
    Ok(Exit::Success)
}

/// An instant, and what the trigger's own clock shows then.
struct Coming {
    utc: String,
    local: Option<String>,
}

fn coming(times: &Arc<dyn Times>, now_ms: u64, count: u16) -> Vec<Coming> {
    let next = std::iter::successors(times.next_after(now_ms), |at| times.next_after(*at));
    let coming = |at| Some(Coming { utc: rfc3339(at)?, local: times.local(at) });
    next.take(usize::from(count)).filter_map(coming).collect()
}
