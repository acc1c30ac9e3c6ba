//! `cairn session resume`: finds the run that somebody means who has no token.

use std::path::PathBuf;

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_api::guided::answer as wire;
use cairn_core::projection::resume::WhyMatched;
use cairn_engine::guided::answer::Resumable;
use cairn_engine::guided::ask::Resume;

use crate::config::Config;
use crate::output::{Style, plain};
use crate::{door, home, render, sources};

/// Find the run to resume, by what is known of it
///
/// Without words, runs are matched by the commit and the branch that are checked out here. With
/// words, by those of their goal and last notes, then of their workflow's name, then of their
/// earlier notes. Among equals, runs that are not over come first, then those that moved last. At
/// most five are shown, each with a token: an agent sends it to continue_workflow, a person passes
/// it to `cairn guide`. `cairn runs list --waiting-for agent` shows the automations that wait for one.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session resume\n  cairn session resume --query 'flaky checkout'"
)]
pub(crate) struct Args {
    /// Words to look for; all of them must be there
    #[arg(long, value_name = "WORDS")]
    query: Option<String>,

    /// Branch, or the beginning of its name, in place of the one that is checked out here
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// Project to look at in place of the current directory
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let workspace = args.workspace.clone().or_else(|| std::env::current_dir().ok());
    let (found, untrusted) = home::with_store(config, async |store| {
        let catalog = sources::catalog(config).into();
        let guide = door::guide(config, store.clone(), catalog, None)?;
        let (query, git_branch) = (args.query.clone(), args.branch.clone());
        let ask = Resume { query, git_branch, git_head_sha: None, workspace };
        Ok((guide.resume(ask).await?, guide.untrusted().await?))
    })?;
    let output = &config.output;
    if output.json {
        output.object(&wire::Resumed::new(found, &untrusted))?;
        return Ok(Exit::Success);
    }
    if let Some(first) = untrusted.first() {
        let many =
            render::count(untrusted.len() as u64, "imported session is", "imported sessions are");
        output.remark(&format!(
            "{many} not trusted yet, and not offered: cairn session trust {first}"
        ));
    }
    if found.is_empty() {
        output.remark("no runs to resume");
    } else if found.iter().all(|run| run.why == [WhyMatched::RecencyFallback]) {
        output.remark(match args.query {
            Some(_) => "no run matches; these moved last",
            None => "these runs moved last",
        });
    }
    for (place, run) in found.iter().enumerate() {
        if place > 0 {
            output.line("")?;
        }
        lines(run)
            .into_iter()
            .try_for_each(|(style, text)| output.line(&output.paint(style, &text)))?;
    }
    Ok(Exit::Success)
}

/// Why a run is offered; nothing of one that only moved lately.
const fn in_words(why: WhyMatched) -> Option<&'static str> {
    Some(match why {
        WhyMatched::MatchedIdentifier => "it has this name",
        WhyMatched::MatchedHeadSha => "of this commit",
        WhyMatched::MatchedBranch => "of this branch",
        WhyMatched::MatchedGoal => "its goal matches",
        WhyMatched::MatchedNotes => "its last notes match",
        WhyMatched::MatchedWorkflowId => "its workflow matches",
        WhyMatched::MatchedEarlierNotes => "its earlier notes match",
        WhyMatched::MatchedContext => "its context matches",
        WhyMatched::MatchedTogether => "it has all the words",
        WhyMatched::RecencyFallback => return None,
    })
}

fn lines(run: &Resumable) -> Vec<(Style, String)> {
    let why: Vec<&str> = run.why.iter().filter_map(|why| in_words(*why)).collect();
    let why: String = why.iter().map(|why| format!("{why}, ")).collect();
    let mut lines = vec![
        (Style::Strong, format!("{}  {}", run.label, plain(&run.workflow_id))),
        (
            Style::Faint,
            format!(
                "  {}, moved {} ago, {why}{}",
                run.status,
                render::span(run.idle_sec * 1_000),
                run.run.session
            ),
        ),
    ];
    if run.branch {
        lines.push((Style::Faint, "  another branch than the one that moved last".to_owned()));
    }
    let goal = run.goal.as_ref().map(|goal| format!("  goal: {}", plain(goal)));
    lines.extend(goal.map(|text| (Style::Plain, text)));
    let project = run.project.as_ref().map(|path| format!("  project: {}", plain(path)));
    lines.extend(project.map(|text| (Style::Plain, text)));
    let blocked = run.blocked_by.iter().map(|why| format!("  blocked: {}", plain(why)));
    lines.extend(blocked.map(|text| (Style::Plain, text)));
    let step = run.pending_step.as_ref().map(|step| format!("  next: {}", plain(step)));
    lines.extend(step.map(|text| (Style::Plain, text)));
    let first = run.snippet.lines().find(|line| !line.trim().is_empty());
    lines.extend(first.map(|line| (Style::Plain, format!("  last: {}", plain(line)))));
    lines.push((Style::Plain, format!("  cairn guide --continue {}", run.continue_token)));
    lines
}
