//! `cairn session verify`: reads every byte of a session and says whether it is whole.

use cairn_api::Exit;
use cairn_api::error::Result;
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
    /// Session, or the beginning of its id
    #[arg(value_name = "ID", required_unless_present = "all")]
    session: Option<String>,

    /// Verify every session there is
    #[arg(long, conflicts_with = "session")]
    all: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    home::with_store(config, async |store| {
        let sessions = match &args.session {
            Some(session) => vec![session::resolve(store, session).await?],
            None => store.sessions.list().await?,
        };
        let mut exit = Exit::Success;
        for session in &sessions {
            let report = match verify(store, *session).await {
                // One that cannot be looked at is no reason not to look at the others.
                Err(error) if args.all => unreadable(&error),
                report => report?,
            };
            if !report.problems.is_empty() {
                exit = Exit::Invalid;
            }
            print(&config.output, *session, &report)?;
        }
        if sessions.is_empty() {
            config.output.remark("there are no sessions");
        }
        Ok(exit)
    })
}

fn unreadable(error: &cairn_store::Error) -> Report {
    Report {
        health: cairn_store::Health::CorruptHead,
        notices: Vec::new(),
        events: 0,
        blobs_checked: 0,
        problems: vec![format!("{}: {error}", error.code())],
    }
}

fn print(output: &Output, session: SessionId, report: &Report) -> Result<()> {
    let health = Health::from(report.health).name();
    let notices: Vec<_> = report.notices.iter().map(|notice| notice.name()).collect();
    if output.json {
        return output.object(&json!({
            "sessionId": session.to_string(),
            "health": health,
            "notices": notices,
            "events": report.events,
            "blobs": report.blobs_checked,
            "problems": report.problems,
        }));
    }
    let events = render::count(report.events, "event", "events");
    let blobs = render::count(report.blobs_checked, "blob", "blobs");
    if report.problems.is_empty() {
        let noted: String = notices.iter().map(|notice| format!(", {notice}")).collect();
        let label = output.paint(Style::Good, "ok  ");
        return output.line(&format!("{label} {session}  {events}, {blobs}{noted}"));
    }
    let label = output.paint(Style::Bad, "FAIL");
    output.line(&format!("{label} {session}  {health}, {events} can be read, {blobs}"))?;
    let mut problems = report.problems.iter();
    problems.try_for_each(|problem| output.line(&format!("     {}", plain(problem))))
}
