//! `cairn session verify`: reads every byte of a session and says whether it is whole.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::session::{self, Health};
use cairn_core::id::SessionId;
use cairn_store::verify::{Report, verify};
use serde_json::json;

use crate::config::Config;
use crate::home;
use crate::output::{Output, Style, plain};
use crate::render;

/// Read every byte of a session and say whether it is whole
///
/// Prints a line per session. The exit code is 3 when something is wrong with any of them.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session verify sess_01hf7yat\n  cairn session verify --all"
)]
pub(crate) struct Args {
    /// Session: its id, the beginning of that, or the label of a run
    #[arg(value_name = "ID", required_unless_present = "all")]
    session: Option<String>,

    /// Verify every session there is
    #[arg(long, conflicts_with = "session")]
    all: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    home::with_papers(config, async |store| {
        let sessions = match &args.session {
            Some(session) => vec![session::resolve(store, session).await?],
            None => store.sessions.list().await?,
        };
        let mut exit = Exit::Success;
        for session in &sessions {
            let verdict = match verify(store, *session).await {
                Ok(report) => Verdict::from(report),
                // It was deleted since it was listed.
                Err(cairn_store::Error::NotFound(_)) if args.all => continue,
                // One that cannot be looked at is no reason not to look at the others.
                Err(error) if args.all => Verdict::unreadable(&error.into()),
                Err(error) => return Err(error.into()),
            };
            if !verdict.problems.is_empty() {
                exit = Exit::Invalid;
            }
            print(&config.output, *session, &verdict)?;
        }
        if sessions.is_empty() {
            config.output.remark("there are no sessions");
        }
        Ok(exit)
    })
}

/// What came of looking at a session.
struct Verdict {
    health: Health,
    notices: Vec<&'static str>,
    events: u64,
    blobs: u64,
    problems: Vec<String>,
}

impl From<Report> for Verdict {
    fn from(report: Report) -> Self {
        Self {
            health: report.health.into(),
            notices: report.notices.iter().map(|notice| notice.name()).collect(),
            events: report.events,
            blobs: report.blobs_checked,
            problems: report.problems,
        }
    }
}

impl Verdict {
    fn unreadable(error: &Error) -> Self {
        Self {
            health: Health::Unreadable,
            notices: Vec::new(),
            events: 0,
            blobs: 0,
            problems: vec![error.coded()],
        }
    }
}

fn print(output: &Output, session: SessionId, verdict: &Verdict) -> Result<()> {
    let Verdict { notices, problems, .. } = verdict;
    let health = verdict.health.name();
    if output.json {
        return output.object(&json!({
            "sessionId": session.to_string(),
            "health": health,
            "notices": notices,
            "events": verdict.events,
            "blobs": verdict.blobs,
            "problems": problems,
        }));
    }
    let events = render::count(verdict.events, "event", "events");
    let blobs = render::count(verdict.blobs, "blob", "blobs");
    if problems.is_empty() {
        let noted: String = notices.iter().map(|notice| format!(", {notice}")).collect();
        let label = output.paint(Style::Good, "ok  ");
        return output.line(&format!("{label} {session}  {events}, {blobs}{noted}"));
    }
    let label = output.paint(Style::Bad, "FAIL");
    output.line(&format!("{label} {session}  {health}, {events} can be read, {blobs}"))?;
    problems.iter().try_for_each(|problem| output.line(&format!("     {}", plain(problem))))
}
