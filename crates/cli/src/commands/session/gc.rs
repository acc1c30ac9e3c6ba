//! `cairn session gc`: removes what nobody needs any more.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_engine::flow::Options;
use cairn_store::gc::Policy;
use serde_json::json;

use crate::config::Config;
use crate::render::count;
use crate::{fresh, home, somebody};

/// Remove old sessions, and blobs that no session needs
///
/// Without --older-than, guided sessions are removed after `retention.guided_days` of the
/// configuration, and never when that is not set. Sessions that are kept or damaged stay, and
/// while a session cannot be read no blob is removed: it might need it. The exit code is then 3.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn session gc --dry-run\n  cairn session gc --older-than 90d"
)]
pub(crate) struct Args {
    /// Remove guided sessions that have not changed for this long, such as 90d or 12h
    #[arg(long, value_name = "AGE", value_parser = age_ms)]
    older_than: Option<u64>,

    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let configured = config.limits.options(Options::default()).guided_days;
    let configured = configured.map(|days| u64::from(days) * 24 * 60 * 60 * 1_000);
    let older_than_ms = args.older_than.or(configured);
    let policy = Policy { older_than_ms, dry_run: args.dry_run, ..Policy::default() };
    let report = home::with_store(config, async |store| {
        Ok(somebody::changes(store).collect(&policy, fresh::now_ms()).await?)
    })?;
    let deleted = &report.deleted_sessions;
    let exit = if report.safe_mode.is_some() { Exit::Invalid } else { Exit::Success };
    if config.output.json {
        let deleted: Vec<String> = deleted.iter().map(ToString::to_string).collect();
        config.output.object(&json!({
            "dryRun": args.dry_run,
            "deletedSessions": deleted,
            "deletedBlobs": report.deleted_blobs,
            "safeMode": report.safe_mode,
        }))?;
        return Ok(exit);
    }
    for session in deleted {
        config.output.line(&session.to_string())?;
    }
    let verb = if args.dry_run { "would remove" } else { "removed" };
    let sessions = count(u64::try_from(deleted.len()).unwrap_or(u64::MAX), "session", "sessions");
    let blobs = count(report.deleted_blobs, "blob", "blobs");
    config.output.line(&format!("{verb} {sessions} and {blobs}"))?;
    if let Some(why) = &report.safe_mode {
        config.output.remark(&format!("no blob may go while {why}"));
    }
    Ok(exit)
}

fn age_ms(text: &str) -> std::result::Result<u64, String> {
    let wrong = || "a whole number and a unit: s, m, h, d or w, such as 90d".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match text.get(digits.len()..) {
        Some("s") => 1,
        Some("m") => 60,
        Some("h") => 3_600,
        Some("d") => 86_400,
        Some("w") => 604_800,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds * 1_000).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!(age_ms("90d"), Ok(90 * 86_400_000));
        assert_eq!(age_ms("0s"), Ok(0));
        for text in ["", "d", "90", "-1d", "1.5d", "90 d", "90days", "99999999999999999w", "1D"] {
            assert!(age_ms(text).is_err(), "{text}");
        }
    }
}
