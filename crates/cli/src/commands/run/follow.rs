//! Showing how a run goes, until it is over or a signal says that it is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::run::{self, RunError, Shown, Task, TaskFor, asked};
use cairn_core::event::engine::{Payload, TaskOpened, WaitingFor};
use cairn_core::event::{Event as Recorded, EventData};
use cairn_core::id::{EventIndex, RunId};
use cairn_core::projection::run::RunStatus;
use cairn_engine::flow::{Automations, Past, Watch};
use serde_json::{Value, json};

use super::PATIENCE;
use crate::commands::runs::show::last_lines;
use crate::config::Config;
use crate::output::{Output, Style, plain};
use crate::stop;

/// After what time a step that is not over is told of.
const SLOW: Duration = Duration::from_secs(2);

/// How long a run is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until it is over.
    Over,
    /// Until it is over, or waits for a person.
    Asked,
}

/// Asks for a run, and shows how it goes until it is over; nothing of one that is left to another
/// process.
pub(crate) async fn ask(
    engine: &Automations,
    asked: impl Future<Output = Result<Option<RunId>>>,
    config: &Config,
) -> Result<Exit> {
    ask_until(engine, asked, config, Until::Over).await
}

/// The same, for as long as is wanted.
///
/// Whatever comes of asking, this process ends well: other processes may have handed runs to it
/// meanwhile, and steps of theirs be under way.
pub(crate) async fn ask_until(
    engine: &Automations,
    asked: impl Future<Output = Result<Option<RunId>>>,
    config: &Config,
    until: Until,
) -> Result<Exit> {
    let watch = engine.watch();
    let shown = match asked.await {
        Ok(Some(run)) => follow_until(engine, (run, until), watch, config).await,
        Ok(None) => Ok(Exit::Success),
        Err(error) => Err(error),
    };
    end(engine, config).await;
    shown
}

/// Ends an engine whose own runs are seen to: steps of other runs that are under way end first,
/// unless a signal parks them.
pub(crate) async fn end(engine: &Automations, config: &Config) {
    // A process that is about to end has nobody to tell of the signal.
    drop(stop::by_signal(leave(engine, config)).await);
    engine.stop(PATIENCE).await;
}

/// Shows how a run goes, until it is over. A signal leaves it where it is.
pub(crate) async fn follow(
    engine: &Automations,
    run: RunId,
    watch: Watch,
    config: &Config,
) -> Result<Exit> {
    follow_until(engine, (run, Until::Over), watch, config).await
}

async fn follow_until(
    engine: &Automations,
    (run, until): (RunId, Until),
    watch: Watch,
    config: &Config,
) -> Result<Exit> {
    // Whoever admitted it may have recorded steps, or even its end, before this process knew of
    // it. What is read here is shown, and what is recorded behind it is told.
    let past = engine.past(run).await?;
    let is_here = engine.is_here(run).await?;
    let last = past.events.last().map(|event| event.index);
    let others = last.filter(|_| !is_here).map(|last| {
        let (engine, session) = (engine.clone(), past.summary.session);
        // What another process records is shown as far as it can be read.
        tokio::spawn(async move { drop(engine.follow_others_after(session, last).await) })
    });
    let followed = until_over(engine, (&past, until), watch, config);
    let exit = stop::by_signal(followed).await;
    others.into_iter().for_each(|others| others.abort());
    let exit = exit?;
    if matches!(exit, Exit::Interrupted | Exit::Terminated) {
        // It may have been taken over meanwhile.
        let was_here = engine.is_here(run).await?;
        engine.stop(PATIENCE).await;
        let left = match was_here {
            true => format!("stopped; `cairn runs resume {run}` goes on where it was"),
            false => format!(
                "another process performs it; `cairn runs cancel {run}` ends it, and should that \
                 process end first, `cairn runs resume {run}` goes on"
            ),
        };
        config.output.remark(&left);
        return Ok(exit);
    }
    Ok(exit)
}

/// Shows a run from its first event on: what is recorded of it, and then what is told.
async fn until_over(
    engine: &Automations,
    (past, until): (&Past, Until),
    mut watch: Watch,
    config: &Config,
) -> Result<Exit> {
    let (run, output) = (past.summary.run, &config.output);
    if !output.json {
        output.remark(&output.paint(Style::Faint, &run.to_string()));
    }
    let mut ended = std::pin::pin!(engine.ended(run));
    let mut progress = Progress::default();
    progress.show(&past.events, run, output);
    loop {
        if until == Until::Asked && progress.asked && is_asking(engine, run).await? {
            return asking(run, config);
        }
        let told = tokio::select! {
            biased;
            told = watch.next() => told,
            ended = &mut ended => {
                ended?;
                break;
            }
            () = tokio::time::sleep(SLOW) => {
                progress.slow.tell(output);
                continue;
            }
        };
        let Some(told) = told else { continue };
        progress.show(&told.events, run, output);
    }
    let past = engine.past(run).await?;
    progress.show(&past.events, run, output);
    see_to_failure(engine, &past, config).await?;
    finish(&Shown::from(&past), config)
}

/// What of a run was shown.
#[derive(Default)]
struct Progress {
    shown: BTreeSet<EventIndex>,
    slow: Slow,
    /// Whether it asked somebody something.
    asked: bool,
}

impl Progress {
    /// Shows those events of a run that were not shown before.
    fn show(&mut self, events: &[Recorded], run: RunId, output: &Output) {
        let own = events.iter().filter(|event| event.scope.run() == Some(run));
        let fresh: Vec<&Recorded> = own.filter(|event| self.shown.insert(event.index)).collect();
        fresh.iter().for_each(|event| self.slow.note(&event.data));
        self.asked |= fresh.iter().any(|event| matches!(event.data, EventData::TaskOpened(_)));
        show_all(&fresh, output);
        self.slow.tell(output);
    }
}

/// Whether a run rests until a person answers.
async fn is_asking(engine: &Automations, run: RunId) -> Result<bool> {
    let (summary, state) = engine.state(run).await?;
    let mut steps = state.steps.values();
    Ok(summary.status == RunStatus::Waiting
        && steps.any(|step| step.waiting_for == Some(WaitingFor::Person)))
}

/// Leaves a run that waits for a person.
fn asking(run: RunId, config: &Config) -> Result<Exit> {
    if config.output.json {
        config.output.object(&json!({"runId": run, "status": "waiting"}))?;
    } else {
        let line = format!("it waits for a person; `cairn runs show {run}` says for what");
        config.output.remark(&line);
    }
    Ok(Exit::Waiting)
}

/// Lets the steps end that this process performs for runs of others. Whoever waits for those goes
/// on with them.
async fn leave(engine: &Automations, config: &Config) -> Result<Exit> {
    let mut drained = std::pin::pin!(engine.drain());
    if tokio::time::timeout(SLOW, &mut drained).await.is_err() {
        config.output.remark(
            "waiting for steps of other runs that this process performs; Ctrl-C parks them",
        );
        drained.await;
    }
    Ok(Exit::Success)
}

/// Steps that are under way, of which those that take long are told of once.
#[derive(Default)]
struct Slow(BTreeMap<String, (Instant, bool)>);

impl Slow {
    fn note(&mut self, data: &EventData) {
        match data {
            EventData::StepStarted(step) => {
                self.0.insert(step.instance.to_string(), (Instant::now(), false));
            }
            EventData::StepCompleted(step) => drop(self.0.remove(&step.instance.to_string())),
            EventData::StepFailed(step) => drop(self.0.remove(&step.instance.to_string())),
            EventData::StepWaiting(step) => drop(self.0.remove(&step.instance.to_string())),
            _ => {}
        }
    }

    fn tell(&mut self, output: &Output) {
        for (step, (begun, told)) in &mut self.0 {
            if !*told && begun.elapsed() >= SLOW && !output.json {
                *told = true;
                output.remark(&format!("{} {step}  under way", output.paint(Style::Faint, "▸")));
            }
        }
    }
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

/// Shows what happened.
fn show_all(events: &[&Recorded], output: &Output) {
    // Whom a question is for is said right behind it.
    let whom = |data: &EventData| match data {
        EventData::TaskOpened(task) if is_for_agent(events, task) => TaskFor::Agent,
        _ => TaskFor::Person,
    };
    for event in events {
        show(event, is_resolved(events, &event.data), whom(&event.data), output);
    }
}

/// Whether what somebody had to do about an event was done by the last of these.
fn is_resolved(events: &[&Recorded], data: &EventData) -> bool {
    match data {
        EventData::StepInterrupted(cut) => events.iter().any(|other| match &other.data {
            EventData::StepResolved(done) => {
                (&done.instance, done.attempt) == (&cut.instance, cut.attempt)
            }
            _ => false,
        }),
        EventData::TaskOpened(task) => events.iter().any(|other| match &other.data {
            EventData::StepCompleted(done) => done.instance == task.instance,
            EventData::StepFailed(failed) => failed.instance == task.instance,
            _ => false,
        }),
        _ => false,
    }
}

fn is_for_agent(events: &[&Recorded], task: &TaskOpened) -> bool {
    events.iter().any(|event| match &event.data {
        EventData::StepWaiting(step) => {
            step.instance == task.instance && step.waiting_for == WaitingFor::Caller
        }
        _ => false,
    })
}

/// Shows one thing that happened, and what somebody has to do about it unless that is resolved.
fn show(event: &Recorded, is_resolved: bool, whom: TaskFor, output: &Output) {
    let (sign, style) = match &event.data {
        EventData::StepCompleted(_) | EventData::LoopExited(_) => ("✓", Style::Good),
        EventData::StepFailed(_) => ("✗", Style::Bad),
        EventData::StepSkipped(_) => ("-", Style::Faint),
        EventData::StepWaiting(_) | EventData::StepInterrupted(_) | EventData::StepResolved(_) => {
            ("…", Style::Warning)
        }
        EventData::TaskOpened(_) => ("?", Style::Warning),
        _ => return,
    };
    if output.json {
        return;
    }
    let moment = run::moment(event);
    let step = moment.step.unwrap_or_default();
    let sign = output.paint(style, sign);
    let told = match (&event.data, event.scope.run()) {
        (EventData::TaskOpened(task), Some(run)) if !is_resolved => question(run, task, whom),
        (EventData::StepInterrupted(_), Some(run)) if !is_resolved => {
            asked::cut_off(&run.to_string(), &step).into()
        }
        _ => vec![format!("{step}  {}", moment.what)],
    };
    let mut lines = told.iter().map(|line| plain(line));
    output.remark(&format!("{sign} {}", lines.next().unwrap_or_default()));
    lines.for_each(|line| output.remark(&format!("  {line}")));
}

/// What a question asks, and how it is answered.
fn question(run: RunId, task: &TaskOpened, waiting_for: TaskFor) -> Vec<String> {
    let step = task.instance.to_string();
    match &task.request {
        Payload::Inline(request) => {
            let (task_id, request) = (task.task_id, request.0.clone());
            Task { task_id, run_id: run, step, request, waiting_for }.lines()
        }
        // A long one is not in the event itself.
        Payload::Blob(_) => vec![format!("{step} asks; see `cairn runs show {run}`")],
    }
}

/// What helps where a value was missing.
pub(crate) fn default_hint(error: &RunError) -> Option<&'static str> {
    (error.code == "EXPR_UNDEFINED")
        .then_some("  → where a value may be missing, say what stands for it: `| default('')`")
}

/// How to go on with a run that failed.
pub(crate) fn go_on(shown: &Shown, error: &RunError) -> String {
    let from = error.step.as_deref().unwrap_or("STEP");
    format!("go on with `cairn runs fork {} --from {from}`", shown.run.run_id)
}

fn finish(shown: &Shown, config: &Config) -> Result<Exit> {
    let output = &config.output;
    let exit = if shown.run.status == "succeeded" { Exit::Success } else { Exit::Failed };
    if output.json {
        let mut item = json!({
            "runId": shown.run.run_id,
            "status": shown.run.status,
            "result": shown.result,
            "error": shown.error,
            "steps": shown.steps,
        });
        if let (Some(usage), Some(fields)) = (&shown.usage, item.as_object_mut()) {
            fields.insert("usage".to_owned(), json!(usage));
        }
        output.object(&item)?;
        return Ok(exit);
    }
    match &shown.error {
        Some(error) => {
            let at = error.step.as_ref().map(|step| format!(" at {step}")).unwrap_or_default();
            let line = format!("failed{at}: {}: {}", error.code, plain(&error.message));
            output.remark(&output.paint(Style::Bad, &line));
            let step = error.step.as_ref().and_then(|step| shown.steps.get(step));
            for line in step.map(last_lines).unwrap_or_default() {
                output.remark(&format!("  {line}"));
            }
            if let Some(line) = default_hint(error) {
                output.remark(line);
            }
            let (id, on) = (shown.run.run_id, go_on(shown, error));
            output.remark(&format!("  → see `cairn runs show {id}`; {on}"));
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
