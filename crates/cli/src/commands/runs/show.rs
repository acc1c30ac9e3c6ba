//! `cairn runs show`: a run, its steps and what it waits for.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::run::{Shown, Step, asked, in_order, last_words};
use cairn_engine::flow::{Automations, FailureTold, Past};

use super::RunArg;
use super::list::{nobody, status_style};
use crate::commands::run::{default_hint, go_on};
use crate::config::Config;
use crate::fresh;
use crate::output::{Output, Style, plain};
use crate::render::{self, Cell, Narrow};

mod step;

const NARROW: Narrow = Narrow { drop: &[], cut: 5 };
/// How much of an output is shown where there is no terminal to fill.
const OUTPUT_MAX: usize = 60;
/// How many steps that failed are told of.
const FAILED_MAX: usize = 10;

/// Show a run: its steps, what came of them, what it waits for
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn runs show run_01hf7yat\n  cairn runs show run_01hf7yat --step fetch\n  cairn runs show run_01hf7yat --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,

    /// Show only this step, with all that it was given and that came out
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let past = engine.past(args.run.find(&engine).await?).await?;
    if let Some(id) = &args.step {
        return step::run(id, &past, config).await;
    }
    let mut shown = Shown::from(&past);
    let is_left = nobody(&engine, &past.summary, &mut shown.run.status).await;
    if config.output.json {
        config.output.object(&shown)?;
        return Ok(Exit::Success);
    }
    let order = order(&engine, &past).await;
    print(&shown, &order, &config.output)?;
    if shown.error.is_some() && !shown.run.untrusted {
        // What cannot be said of others is left out: the run itself is shown.
        let told = engine.told_of_failure(past.summary.run).await.unwrap_or_default();
        print_told(&told, &config.output)?;
    }
    if shown.run.untrusted {
        let session = shown.run.session_id;
        config.output.line(&format!(
            "\nit was imported, and does nothing before somebody trusts it\n  → cairn session trust {session}"
        ))?;
    } else if is_left {
        let id = shown.run.run_id;
        config.output.line(&format!(
            "\nno process performs this run\n  → cairn runs resume {id}  (or start `cairn serve`)"
        ))?;
    }
    Ok(Exit::Success)
}

/// The steps in the order in which they were begun.
async fn order(engine: &Automations, past: &Past) -> Vec<String> {
    let plan = match &past.state.started {
        // Without its plan a run is shown all the same.
        Some(started) => engine.plan(started.workflow_hash).await.ok(),
        None => None,
    };
    in_order(past, plan.as_ref())
}

fn print(shown: &Shown, order: &[String], output: &Output) -> Result<()> {
    let run = &shown.run;
    let status = output.paint(status_style(&run.status), &run.status);
    output.line(&format!(
        "{}  {}  {status}",
        output.paint(Style::Strong, &run.run_id.to_string()),
        run.workflow_id
    ))?;
    let by = run.trigger_id.as_ref().map_or("directly".to_owned(), |id| format!("by {id}"));
    output.line(&format!("asked for {by} at {}", run.queued_at.as_deref().unwrap_or("?")))?;
    if let Some(from) = shown.forked_from {
        output.line(&format!("forked from {from}"))?;
    }
    output.line(&format!("recorded in {}", run.session_id))?;
    if let Some(cancelled) = &shown.cancelled {
        let reason = match cancelled.reason.is_empty() {
            true => String::new(),
            false => format!(": {}", plain(&cancelled.reason)),
        };
        output.line(&format!("cancelled by {}{reason}", plain(&cancelled.by)))?;
    }
    output.line("")?;
    let was_cut = print_steps(shown, order, output)?;
    for task in &shown.tasks {
        output.line("")?;
        for line in task.lines() {
            output.line(&plain(&line))?;
        }
    }
    for (id, _) in shown.steps.iter().filter(|(_, step)| step.status == "unknown") {
        output.line("")?;
        for line in asked::cut_off(&run.run_id.to_string(), id) {
            output.line(&line)?;
        }
    }
    print_failures(shown, order, output)?;
    if shown.error.is_none() && run.status == "succeeded" {
        output.line("")?;
        output.line(&format!("result: {}", short(&shown.result.to_string(), OUTPUT_MAX)))?;
    }
    if let Some(usage) = &shown.usage {
        output.line("")?;
        output.line(&format!("used: {}", usage.in_words()))?;
    }
    if was_cut {
        let hint = format!("`cairn runs show {} --step STEP` shows all of a step", run.run_id);
        output.remark(&output.paint(Style::Faint, &format!("\n{hint}")));
    }
    Ok(())
}

/// The table of steps; says whether anything in it was cut short.
fn print_steps(shown: &Shown, order: &[String], output: &Output) -> Result<bool> {
    let heading = ["STEP", "STATUS", "CASE", "TRIES", "TIME", "OUTPUT"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    let now_ms = fresh::now_ms();
    let max = output.width.unwrap_or(OUTPUT_MAX);
    rows.extend(order.iter().filter_map(|id| Some((id, shown.steps.get(id)?))).map(
        |(id, step)| {
            let what = match &step.error {
                // What it says in full stands below.
                Some(error) => error.code.clone(),
                None if step.output.is_null() => String::new(),
                None => step.output.to_string(),
            };
            vec![
                Cell::new(id),
                Cell::styled(status_style(&step.status), &step.status),
                Cell::new(step.case.as_deref().unwrap_or("-")),
                Cell::new(if step.attempts == 0 {
                    "-".to_owned()
                } else {
                    step.attempts.to_string()
                }),
                Cell::new(time(step, now_ms)),
                Cell::new(short(&what, max)),
            ]
        },
    ));
    let mut was_cut = false;
    for line in render::table(output, &render::fit(rows, output.width, &NARROW)) {
        was_cut |= line.ends_with('…');
        output.line(&line)?;
    }
    Ok(was_cut)
}

/// How long a step took, or is taking.
fn time(step: &Step, now_ms: u64) -> String {
    match (step.status.as_str(), &step.begun_at) {
        ("running" | "waiting" | "unknown", begun) => render::since(now_ms, begun.as_deref()),
        ("pending" | "skipped" | "cancelled", _) if step.duration_ms == 0 => "-".to_owned(),
        (_, None) => "kept".to_owned(),
        (_, Some(_)) => render::span(step.total_ms),
    }
}

/// Why steps failed that others stood in for, and why the run did.
fn print_failures(shown: &Shown, order: &[String], output: &Output) -> Result<()> {
    let fatal = shown.error.as_ref().and_then(|error| error.step.as_ref());
    let steps = order.iter().filter(|id| Some(*id) != fatal);
    let failed: Vec<(&String, &Step)> = steps
        .filter_map(|id| Some((id, shown.steps.get(id)?)))
        .filter(|(_, step)| step.error.is_some())
        .collect();
    for (id, step) in failed.iter().take(FAILED_MAX) {
        let Some(error) = &step.error else { continue };
        output.line("")?;
        let text = format!("{id}: {}: {}", error.code, plain(&error.message));
        output.line(&output.paint(Style::Warning, &text))?;
        for line in last_lines(step) {
            output.line(&format!("  {line}"))?;
        }
    }
    if let Some(more) = failed.len().checked_sub(FAILED_MAX).filter(|more| *more > 0) {
        output.line(&format!("\n{more} more steps failed"))?;
    }
    let Some(error) = &shown.error else { return Ok(()) };
    output.line("")?;
    let text = format!("{}: {}", error.code, plain(&error.message));
    output.line(&output.paint(Style::Bad, &text))?;
    for line in fatal.and_then(|id| shown.steps.get(id)).map(last_lines).unwrap_or_default() {
        output.line(&format!("  {line}"))?;
    }
    default_hint(error).into_iter().try_for_each(|line| output.line(line))?;
    output.line(&format!("  → {}", go_on(shown, error)))
}

/// Who was told that the run failed.
fn print_told(told: &FailureTold, output: &Output) -> Result<()> {
    for (workflow, run) in &told.runs {
        output.line(&format!("  → told {workflow}: {run}"))?;
    }
    let Some(missing) = &told.missing else { return Ok(()) };
    output.line(&format!(
        "  → nobody was told: `{missing}`, which `on_error` of the workflow names, is not there"
    ))
}

/// The last lines of what a step said that failed.
pub(crate) fn last_lines(step: &Step) -> Vec<String> {
    const MAX: usize = 10;
    let text = last_words(&step.output).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(MAX);
    lines.into_iter().skip(skipped).map(plain).collect()
}

/// As much of a text as fits on a line.
fn short(text: &str, max: usize) -> String {
    let text = plain(text);
    if text.chars().count() <= max {
        return text;
    }
    let start: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{start}…")
}
