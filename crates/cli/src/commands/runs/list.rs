//! `cairn runs list`: the runs there are, latest first.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::page::LIMIT_DEFAULT;
use cairn_api::run::Run;
use cairn_core::event::engine::WaitingFor;
use cairn_core::id::RunId;
use cairn_core::projection::run::RunStatus;
use cairn_engine::flow::{Automations, Filter, Summary};
use serde_json::{Value, json};

use crate::config::Config;
use crate::fresh;
use crate::output::{Style, plain};
use crate::render::{self, Cell, Narrow};
use crate::sources;

const NARROW: Narrow = Narrow { drop: &[3], cut: 1 };

/// List the runs, latest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn runs list\n  cairn runs list --workflow project.triage --status failed\n  cairn runs list --waiting-for agent\n  cairn runs list --json"
)]
pub(crate) struct Args {
    /// Show only runs of this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,

    /// Show only runs that stand here; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = ["queued", "running", "waiting", "paused", "succeeded", "failed", "cancelled", "interrupted"])]
    status: Vec<String>,

    /// Show only runs that wait for this
    #[arg(long, value_name = "WHAT", value_parser = ["agent", "person", "time", "run"], conflicts_with = "status")]
    waiting_for: Option<String>,

    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = LIMIT_DEFAULT)]
    limit: usize,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let engine = super::engine(config)?;
    let of = args.workflow.as_ref().map(|given| sources::past_of(given, config)).transpose()?;
    let workflow = of.as_ref().map(|of| of.id.clone());
    // The log has no such word: it is under way there.
    let recorded = |status: &String| match status.as_str() {
        INTERRUPTED => Some(RunStatus::Running),
        name => RunStatus::parse(name),
    };
    let filter = Filter {
        workflow,
        statuses: args.status.iter().filter_map(recorded).collect(),
        limit: Some(args.limit),
        ..Filter::default()
    };
    let found = match args.waiting_for.as_deref() {
        Some(what) => waiting(&engine, what, &filter).await?,
        None => engine.list(&filter).await?,
    };
    of.map(|of| of.require(!found.is_empty())).transpose()?;
    let mut rows: Vec<Row> = Vec::new();
    for summary in &found {
        let mut run = Run::from(summary);
        nobody(&engine, summary, &mut run.status).await;
        // What came from elsewhere and cannot be read is listed all the same.
        let forked_from = engine.forked_from(summary).await.ok().flatten();
        let place = summary.place.clone().unwrap_or_default();
        rows.push(Row { run, forked_from, place });
    }
    rows.retain(|row| args.status.is_empty() || args.status.contains(&row.run.status));
    let (output, hidden) = (&config.output, engine.hidden());
    if output.json {
        let items: Vec<Value> = rows.iter().map(Row::for_programs).collect();
        output.object(&json!({"items": items, "unreadableSessions": hidden}))?;
        return Ok(Exit::Success);
    }
    for session in &hidden {
        output.remark(&format!(
            "{session} cannot be read, and its runs may be missing here; `cairn session verify {session}` says why"
        ));
    }
    if rows.is_empty() {
        if hidden.is_empty() {
            output.remark("no runs; start one with `cairn run WORKFLOW`");
        }
        return Ok(Exit::Success);
    }
    let now_ms = fresh::now_ms();
    let heading = ["RUN", "WORKFLOW", "STATUS", "STARTED BY", "ASKED FOR"];
    let mut table = vec![heading.map(|name| Cell::styled(Style::Faint, name)).into()];
    table.extend(rows.iter().map(|row| {
        let run = &row.run;
        vec![
            Cell::styled(Style::Strong, run.run_id.to_string()),
            Cell::new(row.workflow(&rows)),
            Cell::styled(status_style(&run.status), status(run)),
            Cell::new(row.origin()),
            Cell::new(render::ago(now_ms, run.queued_at.as_deref())),
        ]
    }));
    for line in render::table(output, &render::fit(table, output.width, &NARROW)) {
        output.line(&line)?;
    }
    if rows.iter().any(|row| row.run.status == INTERRUPTED) {
        let hint = "no process performs the interrupted ones; go on with `cairn runs resume RUN`";
        output.remark(&output.paint(Style::Faint, hint));
    }
    if args.waiting_for.as_deref() == Some("agent") {
        let hint = "do the step of one with `cairn guide --continue RUN`";
        output.remark(&output.paint(Style::Faint, hint));
    }
    Ok(Exit::Success)
}

/// A run of the list.
struct Row {
    run: Run,
    forked_from: Option<RunId>,
    /// Where the file of its workflow is, as far as it is known.
    place: String,
}

impl Row {
    /// The workflow; with its file where others of these have the same id and another file.
    fn workflow(&self, rows: &[Self]) -> String {
        let id = &self.run.workflow_id;
        let is_other = |row: &Self| row.run.workflow_id == *id && row.place != self.place;
        match rows.iter().any(is_other) {
            true if !self.place.is_empty() => format!("{id} ({})", plain(&self.place)),
            _ => id.clone(),
        }
    }

    /// What started it: a trigger, or another run.
    fn origin(&self) -> String {
        match (self.forked_from, self.run.parent_run_id, &self.run.trigger_id) {
            (Some(from), ..) => format!("fork of {from}"),
            (None, Some(parent), _) => format!("child of {parent}"),
            (None, None, Some(trigger)) => trigger.clone(),
            (None, None, None) => "-".to_owned(),
        }
    }

    fn for_programs(&self) -> Value {
        let mut item = json!(self.run);
        if let (Some(from), Some(members)) = (self.forked_from, item.as_object_mut()) {
            members.insert("forkedFrom".to_owned(), json!(from));
        }
        item
    }
}

/// The runs that wait for something, as far as a filter leaves them.
async fn waiting(engine: &Automations, what: &str, filter: &Filter) -> Result<Vec<Summary>> {
    let what = match what {
        "agent" => WaitingFor::Caller,
        "person" => WaitingFor::Person,
        "time" => WaitingFor::Timer,
        _ => WaitingFor::Child,
    };
    let mut found = engine.waiting_for(what).await?;
    let is_wanted = |of: &String| filter.workflow.as_ref().is_none_or(|wanted| wanted == of);
    found.retain(|run| is_wanted(&run.workflow));
    found.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(found)
}

/// Where a run stands; what was imported and is not trusted says so.
fn status(row: &Run) -> String {
    match row.untrusted {
        true => format!("{}, untrusted", row.status),
        false => row.status.clone(),
    }
}

/// What people are told of a run that was under way when its process ended.
const INTERRUPTED: &str = "interrupted";

/// Whether a run that is not over is performed by no process; one that was under way is then
/// said to be interrupted.
pub(super) async fn nobody(engine: &Automations, run: &Summary, status: &mut String) -> bool {
    if run.is_over() || engine.is_performed(run.session).await {
        return false;
    }
    if status == "running" {
        INTERRUPTED.clone_into(status);
    }
    true
}

pub(super) fn status_style(status: &str) -> Style {
    match status {
        "succeeded" => Style::Good,
        "failed" | "unknown" | INTERRUPTED => Style::Bad,
        "waiting" | "paused" | "queued" => Style::Warning,
        "skipped" | "cancelled" | "pending" => Style::Faint,
        _ => Style::Plain,
    }
}
