//! `cairn session show`: one session at a glance.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::session::{
    self, Detail, Drawn, Graph, Moment, NODES_DEFAULT, Run, TIMELINE_DEFAULT,
};

use super::list;
use crate::config::{self, Config};
use crate::output::{Output, Style, plain};
use crate::render::{self, Cell, Narrow};
use crate::{fresh, home};

mod graph;

/// On a narrow terminal a run's number of events gives way, then its label; then its workflow
/// is cut.
const NARROW_RUNS: Narrow = Narrow { drop: &[4, 3], cut: 2 };
/// Of a node the first line of its notes is cut.
const NARROW_NODES: Narrow = Narrow { drop: &[], cut: 4 };
/// Of an event the particulars are cut.
const NARROW_MOMENTS: Narrow = Narrow { drop: &[], cut: 3 };

/// Show a session: its state, its runs as graphs and what happened last
///
/// Of a damaged session the part before the damage is shown.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session show sess_01hf7yat\n  cairn session show sess_01hf7yat --events 100 --all"
)]
pub(crate) struct Args {
    /// Session: its id, the beginning of that, or the label of a run
    #[arg(value_name = "ID")]
    session: String,

    /// Show this many of the last events
    #[arg(long, value_name = "N", default_value_t = TIMELINE_DEFAULT)]
    events: usize,

    /// Draw every node, not only the newest 200
    #[arg(long)]
    all: bool,

    /// Draw with plain letters; without it the locale decides
    #[arg(long)]
    ascii: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let nodes = if args.all { usize::MAX } else { NODES_DEFAULT };
    let drawn = home::with_papers(config, async |store| {
        let session = session::resolve(store, &args.session).await?;
        session::draw(store, session, args.events, nodes).await
    })?;
    if config.output.json {
        config.output.object(&drawn)?;
    } else {
        let ascii = args.ascii || !config::is_utf8();
        let signs = if ascii { &graph::ASCII } else { &graph::UNICODE };
        print(&config.output, &drawn, signs, fresh::now_ms())?;
    }
    Ok(Exit::Success)
}

fn print(output: &Output, drawn: &Drawn, signs: &graph::Signs, now_ms: u64) -> Result<()> {
    let detail = &drawn.detail;
    lines(output, &render::fold(facts(detail, now_ms), output.width))?;
    if !detail.runs.is_empty() {
        output.line("")?;
        output.line(&output.paint(Style::Strong, "runs"))?;
        let rows = detail.runs.iter().map(|run| run_row(run, now_ms)).collect();
        lines(output, &render::fit(rows, output.width, &NARROW_RUNS))?;
    }
    for graph in drawn.graphs.iter().filter(|graph| !graph.nodes.is_empty()) {
        output.line("")?;
        output.line(&output.paint(Style::Strong, &plain(&title(graph))))?;
        lines(output, &render::fit(graph::rows(graph, signs), output.width, &NARROW_NODES))?;
    }
    let left_out: u64 = drawn.graphs.iter().map(|graph| graph.nodes_left_out).sum();
    if left_out > 0 {
        let nodes = render::count(left_out, "older node is", "older nodes are");
        output.line(&output.paint(Style::Faint, &format!("  {nodes} left out; see --all")))?;
    }
    if !detail.timeline.is_empty() {
        output.line("")?;
        output.line(&output.paint(Style::Strong, "last events"))?;
        let rows = detail.timeline.iter().map(|moment| moment_row(moment, now_ms)).collect();
        lines(output, &render::fit(rows, output.width, &NARROW_MOMENTS))?;
    }
    Ok(())
}

fn title(graph: &Graph) -> String {
    let workflow = graph.workflow_name.as_deref().or(graph.workflow_id.as_deref());
    format!("{}: {}", graph.run_id, workflow.unwrap_or("-"))
}

fn lines(output: &Output, rows: &[Vec<Cell>]) -> Result<()> {
    render::table(output, rows).iter().try_for_each(|line| output.line(line))
}

fn facts(detail: &Detail, now_ms: u64) -> Vec<Vec<Cell>> {
    let summary = &detail.summary;
    let name = |name: &str| Cell::styled(Style::Faint, name);
    let fact = |label: &str, value: String| vec![name(label), Cell::new(value)];
    let created = summary.created_at.as_deref();
    let mut facts = vec![
        fact("session", summary.session_id.to_string()),
        vec![name("health"), list::health(summary.health)],
    ];
    facts.extend(
        summary.damage.iter().map(|damage| vec![name("damage"), Cell::styled(Style::Bad, damage)]),
    );
    facts.extend(detail.notices.iter().map(|notice| fact("notice", notice.clone())));
    facts.extend([
        fact("events", format!("{} ({})", summary.events, render::size(summary.bytes))),
        fact("blobs", detail.blobs.to_string()),
        fact("kept", if summary.kept { "yes" } else { "no" }.to_owned()),
        fact("created", format!("{} ({})", created.unwrap_or("-"), render::ago(now_ms, created))),
        fact("updated", render::ago(now_ms, summary.updated_at.as_deref())),
    ]);
    facts.extend(
        detail
            .observations
            .iter()
            .map(|seen| fact("observed", format!("{} {}", seen.key, seen.value))),
    );
    if summary.run_count > u64::try_from(detail.runs.len()).unwrap_or(u64::MAX) {
        facts.push(fact("runs", format!("{}, the latest are below", summary.run_count)));
    }
    facts
}

fn run_row(run: &Run, now_ms: u64) -> Vec<Cell> {
    let style = match run.status.as_str() {
        "succeeded" | "complete" => Style::Good,
        "failed" | "unknown" => Style::Bad,
        "blocked" | "waiting" | "paused" | "complete_with_gaps" => Style::Warning,
        _ => Style::Plain,
    };
    vec![
        Cell::new(format!("  {}", run.run_id)),
        Cell::styled(style, &run.status),
        Cell::new(run.workflow_id.as_deref().unwrap_or("-")),
        Cell::new(run.label.as_deref().unwrap_or("-")),
        Cell::new(render::count(run.events, "event", "events")),
        Cell::new(render::ago(now_ms, run.updated_at.as_deref())),
    ]
}

fn moment_row(moment: &Moment, now_ms: u64) -> Vec<Cell> {
    vec![
        Cell::styled(Style::Faint, format!("  #{}", moment.index)),
        Cell::styled(Style::Faint, render::ago(now_ms, moment.at.as_deref())),
        Cell::new(&moment.kind),
        Cell::new(&moment.text),
    ]
}
