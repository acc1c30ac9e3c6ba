//! `cairn audit`: the record of who changed what.

use cairn_api::Exit;
use cairn_api::error::Result;
use cairn_server::audit::Audit;
use clap::Subcommand;
use serde_json::json;

use crate::config::Config;
use crate::home;

/// See and check the record of who changed what
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  cairn audit list\n  cairn audit verify"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show who changed what, oldest first
    #[command(after_help = "Examples:\n  cairn audit list\n  cairn audit list --json")]
    List,
    /// Check that no line was changed, put in or taken out
    ///
    /// Lines that were cut off at the end cannot be told from lines that were never written: keep a copy elsewhere.
    #[command(after_help = "Example:\n  cairn audit verify")]
    Verify,
}

pub(crate) fn run(args: Args, config: &Config) -> Result<Exit> {
    let audit = Audit::new(home::open(config)?.audit);
    let output = &config.output;
    match args.command {
        Command::List => {
            for entry in home::block_on(audit.read(0, usize::MAX))?.items {
                if output.json {
                    output.object(&entry)?;
                    continue;
                }
                let refused = if entry.allowed { "" } else { "  (refused)" };
                let (at, by) = (&entry.at, &entry.by);
                output.line(&format!("{at}  {by}  {}  {}{refused}", entry.action, entry.object))?;
            }
        }
        Command::Verify => {
            let lines = home::block_on(audit.verify())?;
            if output.json {
                output.object(&json!({"lines": lines}))?;
            } else {
                output.line(&format!("{lines} line(s), each as it was written"))?;
            }
        }
    }
    Ok(Exit::Success)
}
