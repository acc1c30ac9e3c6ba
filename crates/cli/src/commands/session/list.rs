//! `cairn session list`: the sessions there are, newest first.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::page::{Cursor, LIMIT_DEFAULT, LIMIT_MAX};
use cairn_api::session::{self, Filter, Health, Summary};
use cairn_core::id::SessionId;

use crate::config::Config;
use crate::output::{Style, plain};
use crate::render::{self, Cell, Narrow};
use crate::{fresh, home};

/// What gives way on a narrow terminal: size, kept, runs, events and label; then the run is cut.
const NARROW: Narrow = Narrow { drop: &[3, 7, 4, 2, 6], cut: 5 };

/// List the sessions, newest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session list\n  cairn session list --health corrupt_tail --json"
)]
pub(crate) struct Args {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = LIMIT_DEFAULT, value_parser = limit)]
    limit: usize,

    /// Go on where an earlier page ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,

    /// Show only sessions in this state
    #[arg(long, value_name = "STATE", value_parser = Health::ALL.map(Health::name))]
    health: Option<String>,

    /// Show those without a run, too: what engines note for themselves
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let filter = Filter {
        cursor: args.cursor.as_deref().map(cursor).transpose()?,
        limit: args.limit,
        health: args.health.as_deref().map(str::parse).transpose()?,
        without_runs: args.all,
    };
    let mut page = home::with_papers(config, async |store| session::list(store, &filter).await)?;
    // Ids of sessions that engines make for themselves say nothing of time.
    page.items.sort_by(|a, b| b.updated_at.cmp(&a.updated_at));
    let output = &config.output;
    if output.json {
        output.object(&page)?;
        return Ok(Exit::Success);
    }
    if page.items.is_empty() {
        output.remark(&format!("no sessions in {}", config.home()?.display()));
    } else {
        let now_ms = fresh::now_ms();
        let mut rows = vec![heading()];
        rows.extend(page.items.iter().map(|summary| row(summary, now_ms)));
        for line in render::table(output, &render::fit(rows, output.width, &NARROW)) {
            output.line(&line)?;
        }
    }
    for (session, damage) in page.items.iter().filter_map(unreadable) {
        output.remark(&format!("{session} cannot be looked at: {}", plain(damage)));
    }
    if let Some(cursor) = page.next_cursor {
        output.remark(&format!("there are more; go on with --cursor {cursor}"));
    }
    Ok(Exit::Success)
}

fn heading() -> Vec<Cell> {
    ["SESSION", "HEALTH", "EVENTS", "SIZE", "RUNS", "LATEST RUN", "LABEL", "KEPT", "UPDATED"]
        .map(|name| Cell::styled(Style::Faint, name))
        .into()
}

/// A session that could not be looked at, and why.
fn unreadable(summary: &Summary) -> Option<(SessionId, &str)> {
    let damage = summary.damage.as_deref()?;
    (summary.health == Health::Unreadable).then_some((summary.session_id, damage))
}

fn row(summary: &Summary, now_ms: u64) -> Vec<Cell> {
    if summary.health == Health::Unreadable {
        let unknown = (2..heading().len()).map(|_| Cell::new("-"));
        let known = [Cell::new(summary.session_id.to_string()), health(summary.health)];
        return known.into_iter().chain(unknown).collect();
    }
    let latest = summary.latest_run.as_ref().map(|run| {
        let workflow = run.workflow_id.as_deref().unwrap_or("-");
        format!("{workflow} {}", run.status)
    });
    let label = summary.latest_run.as_ref().and_then(|run| run.label.as_deref());
    vec![
        Cell::new(summary.session_id.to_string()),
        health(summary.health),
        Cell::new(summary.events.to_string()),
        Cell::new(render::size(summary.bytes)),
        Cell::new(summary.run_count.to_string()),
        Cell::new(latest.as_deref().unwrap_or("-")),
        Cell::new(label.unwrap_or("-")),
        Cell::new(if summary.kept { "yes" } else { "-" }),
        Cell::new(render::ago(now_ms, summary.updated_at.as_deref())),
    ]
}

/// A session's state, in its color.
pub(super) fn health(health: Health) -> Cell {
    let style = match health {
        Health::Healthy => Style::Good,
        Health::UnknownVersion | Health::Unreadable => Style::Warning,
        Health::CorruptTail | Health::CorruptHead => Style::Bad,
    };
    Cell::styled(style, health.name())
}

fn cursor(text: &str) -> Result<Cursor> {
    text.parse().map_err(|_| Error::Usage {
        message: format!("`{text}` is not a cursor"),
        suggestion: "copy it from the end of an earlier page".to_owned(),
    })
}

fn limit(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        _ => Err(format!("a whole number from 1 to {LIMIT_MAX}")),
    }
}
