//! `cairn runs show`: a run, its steps and what it waits for.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::run::{Shown, last_words};
use serde_json::Value;

use super::RunArg;
use super::list::status_style;
use crate::config::Config;
use crate::output::{Output, Style, plain};
use crate::render::{self, Cell};

/// Show a run: its steps, what came of them, what it waits for
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn runs show run_01hf7yat\n  cairn runs show run_01hf7yat --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArg,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let run = args.run.find(&engine).await?;
    let shown = Shown::from(&engine.past(run).await?);
    if config.output.json {
        config.output.object(&shown)?;
    } else {
        print(&shown, &config.output)?;
    }
    Ok(Exit::Success)
}

fn print(shown: &Shown, output: &Output) -> Result<()> {
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
    output.line("")?;
    let heading = ["STEP", "STATUS", "CASE", "TRIES", "TIME", "OUTPUT"];
    let mut rows = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    rows.extend(shown.steps.iter().map(|(id, step)| {
        let output = match &step.error {
            Some(error) => format!("{}: {}", error.code, error.message),
            None if step.output.is_null() => String::new(),
            None => step.output.to_string(),
        };
        vec![
            Cell::new(id),
            Cell::styled(status_style(&step.status), &step.status),
            Cell::new(step.case.as_deref().unwrap_or("-")),
            Cell::new(if step.attempts == 0 { "-".to_owned() } else { step.attempts.to_string() }),
            Cell::new(format!("{} ms", step.duration_ms)),
            Cell::new(short(&output)),
        ]
    }));
    for line in render::table(output, &rows) {
        output.line(&line)?;
    }
    for task in &shown.tasks {
        let prompt = task.request.get("prompt").and_then(Value::as_str).unwrap_or_default();
        output.line("")?;
        output.line(&format!("{} asks: {}", task.step, plain(prompt)))?;
        let fields = task.request.pointer("/form/properties").and_then(Value::as_object);
        let fields = fields.into_iter().flat_map(|fields| fields.keys());
        let set: String = fields.map(|name| format!(" --set {name}=…")).collect();
        let answer = format!("cairn runs answer {} {} --approve{set}", run.run_id, task.task_id);
        output.line(&format!("  → {answer}"))?;
    }
    for (id, _) in shown.steps.iter().filter(|(_, step)| step.status == "unknown") {
        output.line("")?;
        output.line(&format!("{id} was cut off: nobody knows whether what it does was done"))?;
        output.line(&format!(
            "  → cairn runs resolve {} {id} --decision retry|skip|fail",
            run.run_id
        ))?;
    }
    if let Some(error) = &shown.error {
        output.line("")?;
        let text = format!("{}: {}", error.code, plain(&error.message));
        output.line(&output.paint(Style::Bad, &text))?;
        for line in last_lines(shown) {
            output.line(&format!("  {line}"))?;
        }
    } else if run.status == "succeeded" {
        output.line("")?;
        output.line(&format!("result: {}", short(&shown.result.to_string())))?;
    }
    Ok(())
}

/// The last lines of what the step said at which a run failed.
pub(crate) fn last_lines(shown: &Shown) -> Vec<String> {
    const MAX: usize = 10;
    let at = shown.error.as_ref().and_then(|error| shown.steps.get(error.step.as_ref()?));
    let text = at.and_then(|step| last_words(&step.output)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(MAX);
    lines.into_iter().skip(skipped).map(plain).collect()
}

/// As much of a text as fits on a line.
fn short(text: &str) -> String {
    const MAX: usize = 60;
    let text = plain(text);
    if text.chars().count() <= MAX {
        return text;
    }
    let start: String = text.chars().take(MAX - 1).collect();
    format!("{start}…")
}
