//! `cairn audit`: the record of who changed what.

use cairn_api::Exit;
use cairn_api::audit::Entry;
use cairn_api::error::Result;
use cairn_core::audit::Line;
use cairn_core::id::RunId;
use cairn_engine::record::Wanted;
use cairn_store::Store;
use clap::Subcommand;
use serde_json::json;

use super::runs;
use crate::config::Config;
use crate::output::plain;
use crate::{automate, home, somebody, sources};

/// See and check the record of who changed what
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn audit list\n  cairn audit verify"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
    /// Check that no line was changed, put in, taken out or cut off
    ///
    /// How many lines there were, and the digest of the last one, is kept apart from them, and events name the lines of those who asked for them. The exit code is 3 when something is wrong. Somebody who may write to the data directory can change all of it: keep a copy elsewhere.
    #[command(after_help = "Example:\n  cairn audit verify")]
    Verify,
}

/// Show who changed what, oldest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn audit list\n  cairn audit list --workflow project.triage\n  cairn audit list --token tok_1f2e3d4c5b6a --json"
)]
struct List {
    /// Only what is about this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,

    /// Only what is about this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,

    /// Only what was done with this token, or to it
    #[arg(long, value_name = "ID")]
    token: Option<String>,
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    let store = home::open(config)?;
    let record = somebody::record(&store);
    let output = &config.output;
    match args.command {
        Command::List(List { workflow, run, token }) => {
            let of = workflow.as_ref().map(|given| sources::past_of(given, config)).transpose()?;
            let run = run.map(|run| named_run(&run, &store, config)).transpose()?;
            let wanted = Wanted { workflow: of.as_ref().map(|of| of.id.clone()), run, token };
            let read = home::block_on(async { Ok(record.read(0, usize::MAX, &wanted).await?) })?;
            of.map(|of| of.require(!read.lines.is_empty())).transpose()?;
            for line in read.lines {
                match output.json {
                    true => output.object(&Entry::from(line))?,
                    false => output.line(&plain(&shown(&line)))?,
                }
            }
        }
        Command::Verify => {
            let lines = home::block_on(async { Ok(record.verify_with(&store).await?) })?;
            if output.json {
                output.object(&json!({"lines": lines}))?;
            } else {
                output.line(&format!("{lines} line(s), each as it was written"))?;
            }
        }
    }
    Ok(Exit::Success)
}

/// A run as the record has it. One that is gone is asked for by its whole id.
fn named_run(given: &str, store: &Store, config: &Config) -> Result<String> {
    if given.parse::<RunId>().is_ok() {
        return Ok(given.to_owned());
    }
    home::on_threads(async {
        let engine = automate::open(config, store.clone(), sources::catalog(config).into())?;
        Ok(runs::find(given, &engine).await?.to_string())
    })
}

/// A line for people: when, who, how, what, about what, and what came of it.
fn shown(line: &Line) -> String {
    let token = line.token_id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
    let door = line.door.and_then(|door| serde_json::to_value(door).ok());
    let door = door.as_ref().and_then(|door| door.as_str()).unwrap_or("-");
    let mut text = format!("{}  {}{token}  {door}  {}", line.at, line.by, line.action);
    let about = [
        line.workflow_id.clone(),
        line.run_id.map(|run| run.to_string()),
        line.session_id.map(|session| session.to_string()),
        Some(line.object.clone()).filter(|object| !object.is_empty()),
    ];
    for about in about.into_iter().flatten() {
        text.push_str("  ");
        text.push_str(&about);
    }
    let what = if line.of.is_some() { "failed" } else { "refused" };
    let why = line.outcome.as_ref().map(|code| format!(": {code}")).unwrap_or_default();
    let times = line.times.filter(|times| *times > 1);
    let times = times.map(|times| format!(", {times} times")).unwrap_or_default();
    if !line.allowed {
        text.push_str(&format!("  ({what}{why}{times})"));
    }
    text
}
