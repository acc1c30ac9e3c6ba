//! `cairn dev append-loop`: appends to a session and says what was acknowledged.

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_core::id::{EventIndex, SessionId};
use cairn_store::{Store, files};

use super::workload::{self, Workload};
use crate::config::Config;
use crate::home;

/// Append plans to a session, one after the other, and print what was acknowledged
///
/// After each acknowledgement the index of the last event is printed on a line of its own.
/// What is appended follows from the session and the place in the log alone, so it can be
/// computed again; a session that was begun is gone on with.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  cairn dev append-loop --session sess_01hf7yat000000000000000007 --count 100 --blobs"
)]
pub(crate) struct Args {
    /// Session to append to; the first append creates it
    #[arg(long, value_name = "ID")]
    session: SessionId,

    /// Append this many plans
    #[arg(long, value_name = "N")]
    count: u64,

    /// Let some events need blobs
    #[arg(long)]
    blobs: bool,

    /// Seal the journal when it reaches this many bytes
    #[arg(long, value_name = "BYTES")]
    journal_max: Option<u64>,

    /// Start runs even when no more than this is free
    #[arg(long, value_name = "BYTES")]
    free_min: Option<u64>,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let mut files = config.files()?;
    if let Some(journal_max) = args.journal_max {
        files.journal_max = journal_max;
    }
    if let Some(bytes) = args.free_min {
        files.free_min = files::Free { bytes, percent: 0, percent_max: 0 };
    }
    home::block_on(async {
        let store = cairn_store::open(&cairn_store::Config::Files(files))?;
        append(&store, args, config).await
    })
}

async fn append(store: &Store, args: &Args, config: &Config) -> Result<Exit> {
    let workload = Workload { session: args.session, blobs: args.blobs };
    let recorded = match store.log.read(args.session, EventIndex(0)).await {
        Ok(events) => u64::try_from(events.len()).unwrap_or(u64::MAX),
        Err(cairn_store::Error::NotFound(_)) => 0,
        Err(error) => return Err(error.into()),
    };
    let first = workload::plans_in(recorded).ok_or_else(|| {
        Error::Internal(format!("{recorded} events are not what this command appends"))
    })?;
    for number in first..first.saturating_add(args.count) {
        let appended = store.log.append(args.session, workload.plan(number)).await?;
        config.output.line(&appended.last.to_string())?;
    }
    Ok(Exit::Success)
}
