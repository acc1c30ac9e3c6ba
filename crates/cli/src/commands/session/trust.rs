//! `cairn session trust`: lets a session from elsewhere go on here.

use std::path::PathBuf;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::session::{self, Claims};
use cairn_core::digest::Digest;
use cairn_engine::flow::{self, Automations, Truster};

use super::delete::confirmed;
use crate::config::Config;
use crate::output::{Output, Style, plain};
use crate::{automate, home, render, somebody, sources};

/// Let an imported session go on here, after a look at what it would do
///
/// Shows what its plans can do and what history it claims, and asks. Its runs stay paused until you resume them; what people decided elsewhere counts for nothing.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session trust sess_01hf7yat\n  cairn session trust sess_01hf7yat --workspace .\n  cairn session trust sess_01hf7yat --json          # only shows it\n  cairn session trust sess_01hf7yat --root sha256:5f2c…"
)]
pub(crate) struct Args {
    /// Session: its id, the beginning of that, or the label of a run
    #[arg(value_name = "ID")]
    session: String,

    #[command(flatten)]
    how: How,

    /// Do not ask: trust it if it is the bundle of this digest, as it was shown
    #[arg(long, value_name = "DIGEST")]
    root: Option<Digest>,
}

/// How a session goes on here.
#[derive(clap::Args)]
pub(super) struct How {
    /// Folder in which the runs of agents go on
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

pub(crate) async fn run(args: &Args, config: &Config) -> Result<Exit> {
    let store = home::open(config)?;
    let session = session::resolve(&store.with_papers()?, &args.session).await?;
    let origin = store.sessions.origin(session).await.ok().flatten();
    if let Some(trusted) = origin.and_then(|origin| origin.trusted) {
        config.output.line(&format!("{session} is trusted already, by {}", plain(&trusted.by)))?;
        return Ok(Exit::Success);
    }
    let engine = automate::open(config, store, sources::catalog(config).into())?;
    let claims = engine.claims(session).await?;
    if config.output.json && args.root.is_none() {
        config.output.object(&Claims::from(&claims))?;
        return Ok(Exit::Success);
    }
    show(&claims, &config.output);
    trust(&engine, &claims, (&args.how, args.root), config).await?;
    Ok(Exit::Success)
}

/// Asks, unless the bundle is named, and lets the session go on; says so.
pub(super) async fn trust(
    engine: &Automations,
    claims: &flow::Claims,
    (how, root): (&How, Option<Digest>),
    config: &Config,
) -> Result<()> {
    let session = claims.session;
    if root.is_none() && !confirmed(&format!("letting {session} do this here"))? {
        let folder =
            how.workspace.as_ref().map(|folder| format!(" --workspace {}", folder.display()));
        return Err(Error::Unasked {
            message: format!("nobody said that {session} may go on here"),
            suggestion: format!(
                "say yes at a terminal, or run `cairn session trust {session}{} --root {}`",
                folder.unwrap_or_default(),
                claims.origin.root
            ),
        });
    }
    let found = |folder: &PathBuf| {
        folder.canonicalize().map_err(|source| Error::File { path: folder.clone(), source })
    };
    let workspace = how.workspace.as_ref().map(found).transpose()?;
    let root = root.unwrap_or(claims.origin.root);
    let truster = Truster { by: somebody::by(), root, workspace: workspace.as_deref() };
    let trusted = engine.trust(session, &truster).await?;
    if config.output.json {
        return config.output.object(&Claims::from(&trusted));
    }
    config.output.line(&format!("trusted {session}"))?;
    for run in open(&trusted) {
        config.output.remark(&next(run));
    }
    Ok(())
}

/// How a run of a trusted session goes on.
fn next(run: &flow::ClaimedRun) -> String {
    match run.decided.first() {
        None => format!("go on with it: cairn runs resume {}", run.run),
        Some((step, _)) => format!(
            "what people decided in it is asked again: cairn runs fork {} --from {}",
            run.run,
            plain(step)
        ),
    }
}

/// The runs that are not over and that the engine performs.
pub(super) fn open(claims: &flow::Claims) -> impl Iterator<Item = &flow::ClaimedRun> {
    claims.runs.iter().filter(|run| run.status.is_some_and(|status| !status.is_over()))
}

/// Everything that a person has to know, on one screen.
pub(super) fn show(claims: &flow::Claims, output: &Output) {
    let fact = |name: &str, text: &str| {
        output.remark(&format!(
            "{}  {}",
            output.paint(Style::Faint, &format!("{name:<10}")),
            plain(text)
        ));
    };
    fact("session", &claims.session.to_string());
    fact("bundle", &claims.origin.root.to_string());
    fact(
        "history",
        &format!(
            "{} that it brings along; nobody here saw them happen",
            render::count(claims.events, "event", "events")
        ),
    );
    for run in &claims.runs {
        let status = run.status.map_or("an agent's", |status| status.name());
        let workflow = run.workflow.as_deref().unwrap_or("no workflow that it names");
        fact(
            "run",
            &format!(
                "{} of {workflow}, {status}, {}",
                run.run,
                render::count(run.events, "event", "events")
            ),
        );
        for (step, by) in &run.decided {
            fact("", &format!("claims that {by} decided `{step}`; that counts for nothing here"));
        }
    }
    for folder in &claims.workspaces {
        fact("folder", &format!("{folder}; choose yours with --workspace"));
    }
    for plan in &claims.plans {
        let same = match &plan.same_as {
            Some(file) => format!("the same as {file}, and gets its settings and secrets"),
            None => "no file here has this plan, so it gets no settings and no secrets".to_owned(),
        };
        fact("plan", &format!("{}: {same}", plan.workflow));
        for line in plan.can.lines() {
            fact("  can", &line);
        }
    }
}
