//! `cairn mcp`: the tools for agents, on standard input and output.

use std::time::Duration;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_mcp::ToolSet;
use clap::builder::BoolishValueParser;

use crate::config::Config;
use crate::{door, home, stop};

/// Lead an agent through workflows, over MCP on standard input and output
///
/// An agent's program starts this by itself: name the command in its settings, as
/// docs/guide/mcp.md shows for several. It ends when the agent's program closes the input, or
/// with Ctrl-C or SIGTERM.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn mcp\n  cairn mcp --enable-start-session\n  claude mcp add cairn -- cairn mcp"
)]
pub(crate) struct Args {
    /// Tools to offer
    #[arg(long, value_name = "SET", default_value = "execute")]
    tools: Tools,

    #[command(flatten)]
    sessions: Sessions,
}

/// The sets of tools there are.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Tools {
    // Choose a workflow, be led through it, keep notes, come back.
    Execute,
}

/// Whether agents may have sessions without a run.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct Sessions {
    /// Offer `start_session`, for notes without a workflow
    #[arg(long, env = "CAIRN_START_SESSION", hide_env_values = true, value_parser = BoolishValueParser::new())]
    enable_start_session: bool,
}

impl Sessions {
    /// The tools that go with it.
    pub(crate) const fn tools(self) -> ToolSet {
        ToolSet { start_session: self.enable_start_session }
    }
}

/// How long the end may take when a signal asked for it.
const SHUTDOWN_MAX: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    let Tools::Execute = args.tools;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Internal(error.to_string()))?;
    let workspace = std::env::current_dir().ok();
    let ended = runtime.block_on(stop::by_signal(async {
        let door = door::open(config, home::open(config)?, workspace)?;
        let automations = door.automations.clone();
        let served = cairn_mcp::serve_stdio(door, args.sessions.tools()).await;
        // What automations are at is left to whoever comes next.
        automations.stop(SHUTDOWN_MAX).await;
        served.map(|()| Exit::Success)
    }));
    if matches!(ended, Ok(Exit::Interrupted | Exit::Terminated)) {
        // Calls are dropped here, and their commands end. Only the thread that reads the input
        // cannot be stopped.
        runtime.shutdown_timeout(SHUTDOWN_MAX);
    }
    ended
}
