//! `cairn run`: an automation, from beginning to end.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_core::id::RunId;
use cairn_core::text::Slug;
use cairn_engine::catalog::Found;
use cairn_engine::flow::{Roles, RunRequest, TriggerEvent};
use cairn_store::port::locks::{Claim, Exclusive};
use serde_json::json;

use super::trigger;
use crate::config::Config;
use crate::{automate, home, somebody};

mod follow;
mod given;

pub(crate) use follow::{Until, ask, ask_until, default_hint, end, follow, go_on};
pub(crate) use given::{Given, limited, text_note, text_of, with_flag};

/// How long what is under way may take when the command is told to stop.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Run an automation, and show how it goes
///
/// The run is recorded step by step. When the command is stopped or killed, `cairn runs resume`
/// goes on where it was, with the same run id. With --json one object is printed at the end.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn run workflows/digest.yaml\n  cairn run triage --event event.json\n  cairn run triage --set text=hello --json\n  cairn run release --no-wait || test $? -eq 5"
)]
pub(crate) struct Args {
    /// Workflow: its id, the name part of it, or its file
    #[arg(value_name = "ID|FILE")]
    workflow: String,

    #[command(flatten)]
    given: Given,

    /// Begin where this trigger does
    #[arg(long, value_name = "ID")]
    trigger: Option<String>,

    /// Leave the run to a process in the background, and print its id
    #[arg(long)]
    detach: bool,

    /// End where the run waits for a person, with exit code 5; `cairn runs answer` goes on
    #[arg(long, conflicts_with = "detach")]
    no_wait: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let payload = args.given.payload()?.unwrap_or_else(|| json!({}));
    home::on_threads(async {
        let store = home::open(config)?;
        let locks = Arc::clone(&store.locks);
        let (engine, found) = automate::with_workflow(config, store, &args.workflow)?;
        let trigger = trigger(&found, args.trigger.as_deref())?;
        let given = payload.clone();
        let kind = "manual".to_owned();
        let event = TriggerEvent { payload, kind, ..TriggerEvent::default() };
        let event = event.within(automate::trace());
        if args.detach {
            engine.hold();
        }
        let (workflow, depth) = (found.id.clone(), automate::chain());
        let (key, roles) = (None, Roles::Any);
        let by = somebody::by();
        let request = RunRequest { workflow, trigger, key, event, depth, by, roles };
        let asked = async {
            let asked = engine.submit(request).await;
            asked.map(|asked| Some(asked.run)).map_err(|error| with_flag(error, &given))
        };
        if args.detach {
            let asked = asked.await;
            engine.stop(PATIENCE).await;
            let Some(run) = asked? else { return Ok(Exit::Success) };
            // A server goes on with whatever nobody performs.
            if let Claim::Taken(free) = locks.try_lock(Exclusive::Server).await? {
                drop(free);
                leave_to_another(run, config)?;
            }
            return told(run, config);
        }
        let until = if args.no_wait { Until::Asked } else { Until::Over };
        ask_until(&engine, asked, config, until).await
    })
}

/// The trigger of a workflow that a name means; without one that which is for people.
fn trigger(found: &Found, name: Option<&str>) -> Result<Option<Slug>> {
    let plan = &found.compiled()?.plan;
    let Some(name) = name else {
        return Ok(trigger::types().call(plan).map(|(trigger, _)| trigger));
    };
    let named = plan.triggers.iter().find(|trigger| trigger.id.as_str() == name);
    let known = plan.triggers.iter().map(|trigger| trigger.id.as_str());
    let unknown = || Error::trigger_unknown(&found.id, name, known);
    named.map(|trigger| Some(trigger.id.clone())).ok_or_else(unknown)
}

/// Leaves a run to a process of its own.
fn leave_to_another(run: RunId, config: &Config) -> Result<()> {
    let program = std::env::current_exe().map_err(|error| Error::Internal(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(["runs", "resume", &run.to_string(), "--stay", "--quiet"]);
    command.arg("--home").arg(config.home()?);
    if let Some(file) = &config.file {
        command.arg("--config").arg(file);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map_err(|error| Error::Internal(error.to_string()))?;
    Ok(())
}

fn told(run: RunId, config: &Config) -> Result<Exit> {
    if config.output.json {
        config.output.object(&json!({"runId": run.to_string()}))?;
    } else {
        config.output.line(&run.to_string())?;
    }
    Ok(Exit::Success)
}
