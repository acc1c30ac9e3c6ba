//! `cairn trigger fire`: starts a run where a trigger would.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_engine::flow::{Roles, RunRequest, TriggerEvent};
use cairn_engine::trigger::Watch;
use cairn_server::watched;
use serde_json::json;

use crate::commands::run::{Given, ask, with_flag};
use crate::config::Config;
use crate::{automate, fresh, home, somebody, sources};

/// Start a run where a trigger would, and show how it goes
///
/// A trigger of the clock gives the run the payload of this moment, unless --event gives another. Nothing is checked that a sender would have to prove.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn trigger fire digest nightly\n  cairn trigger fire pager alert --event alert.json --json\n  cairn trigger fire pager alert --set service=api"
)]
pub(crate) struct Args {
    /// Workflow: its id, the name part of it, or its file
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// Trigger, as `cairn trigger list` names it
    #[arg(value_name = "TRIGGER")]
    trigger: String,

    #[command(flatten)]
    given: Given,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let found = sources::find(&args.workflow, config)?;
    found.compiled()?;
    let places = watched::places(&[found], &super::types());
    let named = places.iter().find(|place| place.trigger.as_str() == args.trigger);
    let known = places.iter().map(|place| place.trigger.as_str());
    let unknown = || Error::trigger_unknown(&args.workflow, &args.trigger, known);
    let place = named.ok_or_else(unknown)?;
    let given = args.given.payload()?;
    let (payload, more) = match (&place.watch, given) {
        (Watch::Times(times), None) => {
            let firing = times.firing(fresh::now_ms());
            (firing.payload, firing.event)
        }
        (_, given) => (given.unwrap_or_else(|| json!({})), serde_json::Map::new()),
    };
    let (trigger, kind) = (Some(place.trigger.clone()), place.kind.clone());
    home::on_threads(async {
        let store = home::open(config)?;
        let (engine, found) = automate::with_workflow(config, store, &args.workflow)?;
        let given = payload.clone();
        let event = TriggerEvent { payload, kind, more }.within(automate::trace());
        let (workflow, depth) = (found.id.clone(), automate::chain());
        let (key, roles) = (None, Roles::Any);
        let by = somebody::by();
        let request = RunRequest { workflow, trigger, key, event, depth, by, roles };
        let asked = async {
            let asked = engine.submit(request).await;
            asked.map(|asked| Some(asked.run)).map_err(|error| with_flag(error, &given))
        };
        ask(&engine, asked, config).await
    })
}
