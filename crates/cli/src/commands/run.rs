//! `cairn run`: an automation, from beginning to end.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::run::{self, Shown};
use cairn_core::event::{Event as Recorded, EventData};
use cairn_core::id::RunId;
use cairn_core::projection::run::RunStatus;
use cairn_engine::flow::{Arrival, Automations, Event, Past, Watch};
use serde_json::{Map, Value, json};

use crate::automate;
use crate::config::Config;
use crate::output::{Style, plain};
use crate::{home, stop};

/// How long what is under way may take when the command is told to stop.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Run an automation, and show how it goes
///
/// The run is recorded step by step. When the command is stopped or killed, `cairn runs resume`
/// goes on where it was, with the same run id. With --json one object is printed at the end.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn run workflows/digest.yaml\n  cairn run triage --event event.json\n  cairn run triage --set text=hello --json"
)]
pub(crate) struct Args {
    /// Workflow: its id, the name part of it, or its file
    #[arg(value_name = "ID|FILE")]
    workflow: String,

    /// Read the event's payload from a JSON file, or from `-`
    #[arg(long, value_name = "FILE")]
    event: Option<String>,

    /// Set a field of the event's payload; a value that is JSON is taken as such
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Begin where this trigger does
    #[arg(long, value_name = "ID")]
    trigger: Option<String>,

    /// Leave the run to a process in the background, and print its id
    #[arg(long)]
    detach: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let payload = payload(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Internal(error.to_string()))?;
    runtime.block_on(stop::by_signal(async {
        let store = home::open(config)?;
        let (engine, workflow) = automate::with_workflow(config, store, &args.workflow)?;
        let trigger = args.trigger.as_deref().map(str::parse).transpose();
        let trigger = trigger.map_err(|error: cairn_core::text::InvalidSlug| Error::Usage {
            message: error.to_string(),
            suggestion: "list the triggers with `cairn trigger list`".to_owned(),
        })?;
        let event = Event { payload, kind: "manual".to_owned(), ..Event::default() };
        let watch = engine.watch();
        let arrival = Arrival { workflow, trigger, key: None, event, depth: 0 };
        let asked = engine.receive(arrival).await?;
        if args.detach {
            engine.stop(PATIENCE).await;
            return detach(asked.run, config);
        }
        follow(&engine, asked.run, watch, config).await
    }))
}

/// The payload of the event.
fn payload(args: &Args) -> Result<Value> {
    let mut payload = match args.event.as_deref() {
        None => json!({}),
        Some(given) => {
            let bytes = read(given)?;
            serde_json::from_slice(&bytes).map_err(|error| Error::Usage {
                message: format!("{given} is not JSON: {error}"),
                suggestion: "give a file with the event's payload as JSON".to_owned(),
            })?
        }
    };
    if args.set.is_empty() {
        return Ok(payload);
    }
    let facts =
        args.set.iter().map(|set| super::guide::fact(set)).collect::<Result<Map<_, _>>>()?;
    match &mut payload {
        Value::Object(members) => members.extend(facts),
        _ => {
            return Err(Error::Usage {
                message: "--set needs an event that is an object".to_owned(),
                suggestion: "leave --set out, or give an object with --event".to_owned(),
            });
        }
    }
    Ok(payload)
}

pub(super) fn read(given: &str) -> Result<Vec<u8>> {
    let failed = |source| Error::File { path: given.into(), source };
    if given != "-" {
        return std::fs::read(Path::new(given)).map_err(failed);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Leaves a run to a process of its own.
fn detach(run: RunId, config: &Config) -> Result<Exit> {
    let program = std::env::current_exe().map_err(|error| Error::Internal(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(["runs", "resume", &run.to_string(), "--quiet"]);
    command.arg("--home").arg(config.home()?);
    if let Some(file) = &config.file {
        command.arg("--config").arg(file);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map_err(|error| Error::Internal(error.to_string()))?;
    if config.output.json {
        config.output.object(&json!({"runId": run.to_string()}))?;
    } else {
        config.output.line(&run.to_string())?;
    }
    Ok(Exit::Success)
}

/// Shows how a run goes, until it is over.
pub(super) async fn follow(
    engine: &Automations,
    run: RunId,
    mut watch: Watch,
    config: &Config,
) -> Result<Exit> {
    let output = &config.output;
    if !output.json {
        output.remark(&output.paint(Style::Faint, &run.to_string()));
    }
    let ended = engine.ended(run);
    let mut ended = std::pin::pin!(ended);
    let mut seen = 0;
    loop {
        let told = tokio::select! {
            biased;
            told = watch.next() => told,
            ended = &mut ended => {
                ended?;
                break;
            }
        };
        let Some(told) = told else { continue };
        let own = told.events.iter().filter(|event| event.scope.run() == Some(run));
        for event in own {
            seen = event.index.0 + 1;
            show(event, config);
        }
    }
    let past = engine.past(run).await?;
    for event in past.events.iter().filter(|event| seen > 0 && event.index.0 >= seen) {
        show(event, config);
    }
    see_to_failure(engine, &past, config).await?;
    engine.stop(PATIENCE).await;
    finish(&Shown::from(&past), config)
}

/// Lets the workflows that take a failure end, too: nobody else may be there to run them.
async fn see_to_failure(engine: &Automations, past: &Past, config: &Config) -> Result<()> {
    if past.summary.status != RunStatus::Failed {
        return Ok(());
    }
    for told in engine.tell_of_failure(past.summary.run).await? {
        engine.ended(told).await?;
        let summary = engine.past(told).await?.summary;
        if !config.output.json {
            let line = format!("{} was told: {told} {}", summary.workflow, summary.status.name());
            config.output.remark(&config.output.paint(Style::Faint, &line));
        }
    }
    Ok(())
}

/// Shows one thing that happened.
fn show(event: &Recorded, config: &Config) {
    let output = &config.output;
    let (sign, style) = match &event.data {
        EventData::StepCompleted(_) | EventData::LoopExited(_) => ("✓", Style::Good),
        EventData::StepFailed(_) => ("✗", Style::Bad),
        EventData::StepSkipped(_) => ("-", Style::Faint),
        EventData::StepWaiting(_) | EventData::StepInterrupted(_) => ("…", Style::Warning),
        EventData::TaskOpened(_) => ("?", Style::Warning),
        _ => return,
    };
    if output.json {
        return;
    }
    let moment = run::moment(event);
    let step = moment.step.unwrap_or_default();
    output.remark(&format!("{} {step}  {}", output.paint(style, sign), plain(&moment.what)));
}

fn finish(shown: &Shown, config: &Config) -> Result<Exit> {
    let output = &config.output;
    let exit = if shown.run.status == "succeeded" { Exit::Success } else { Exit::Failed };
    if output.json {
        output.object(&json!({
            "runId": shown.run.run_id,
            "status": shown.run.status,
            "result": shown.result,
            "error": shown.error,
            "steps": shown.steps,
        }))?;
        return Ok(exit);
    }
    match &shown.error {
        Some(error) => {
            let at = error.step.as_ref().map(|step| format!(" at {step}")).unwrap_or_default();
            let line = format!("failed{at}: {}: {}", error.code, plain(&error.message));
            output.remark(&output.paint(Style::Bad, &line));
            let id = shown.run.run_id;
            output.remark(&format!(
                "  → see `cairn runs show {id}`; go on with `cairn runs fork {id} --from STEP`"
            ));
        }
        None if shown.run.status == "cancelled" => output.remark("cancelled"),
        None => {
            let text = match &shown.result {
                Value::String(text) => text.clone(),
                other => serde_json::to_string_pretty(other).unwrap_or_default(),
            };
            output.line(&text)?;
        }
    }
    Ok(exit)
}
