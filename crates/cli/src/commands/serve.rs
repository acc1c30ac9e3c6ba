//! `cairn serve`: the HTTP server, the triggers and the runs that they start.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_core::digest::Digest;
use cairn_server::{Automation, Front};
use cairn_triggers::channel::Channels;
use serde_json::json;

use crate::commands::mcp::Sessions;
use crate::config::Config;
use crate::output::Output;
use crate::stop::StopSignals;
use crate::{automate, door, home, sources};

mod admin_token;

use admin_token::AdminToken;

/// Start the server, which runs automations
///
/// It fires the triggers of the workflows, performs their runs, goes on with those that were left, and answers requests. Workflow files are read again when they change. The first start makes an admin token, shows it once and keeps it in the data directory.
/// The server answers on this machine only, unless a proxy with TLS stands in front of it.
/// Ctrl-C or SIGTERM lets it finish what it is answering and stop; steps under way are parked, and go on at the next start.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cairn serve\n  cairn serve --listen 127.0.0.1:0\n  cairn serve --listen 0.0.0.0:7373 --behind-proxy --public-host cairn.example.org"
)]
pub(crate) struct Args {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:7373]
    #[arg(long, value_name = "ADDRESS", env = "CAIRN_LISTEN", hide_env_values = true)]
    listen: Option<SocketAddr>,

    /// Take an address that other machines can reach, because a proxy with TLS is in front
    #[arg(long)]
    behind_proxy: bool,

    /// Host name that requests may be meant for, beside the loopback ones; may be repeated
    #[arg(long, value_name = "NAME")]
    public_host: Vec<String>,

    #[command(flatten)]
    sessions: Sessions,
}

/// Where the admin token is kept.
pub(crate) fn admin_token_path(home: &Path) -> PathBuf {
    home.join("keys").join("admin.token")
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    // A server has as many connections as files it may open.
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Internal(error.to_string()))?;
    runtime.block_on(serve(args, config))
}

async fn serve(args: &Args, config: &Config) -> Result<Exit> {
    let mut stop = StopSignals::new()?;
    let store = home::open(config)?;
    // A key ring that others could read is a reason not to start.
    store.keys.load().await?;
    let front = if args.behind_proxy { Front::Proxy } else { Front::None };
    let address = args.listen.unwrap_or(config.listen.value);
    let listener = cairn_server::listen(address, front).await?;
    let address = listener.local_addr().map_err(|source| Error::Bind { address, source })?;
    let path = admin_token_path(&config.home()?);
    let token = admin_token::load_or_make(&path)?;
    announce(&config.output, address, &token, &path)?;
    if rustix::process::geteuid().is_root() {
        config.output.remark("running as root: a user of its own is safer");
    }
    let catalog = Arc::new(sources::catalog(config));
    // Agents of several projects come here, so none is taken for granted.
    let guide = door::guide(config, store.clone(), Arc::clone(&catalog), None)?;
    let door = cairn_mcp::Door { guide, catalog: Arc::clone(&catalog) };
    let body_max = usize::try_from(cairn_server::BODY_MAX).unwrap_or(usize::MAX);
    let mcp = cairn_mcp::http(door, args.sessions.tools(), body_max);
    let server = cairn_server::Config {
        public_hosts: args.public_host.clone(),
        admin_token: Digest::of(token.text.as_bytes()),
        mcp: Some(mcp),
        automation: Automation {
            engine: automate::open(config, store.clone(), Arc::clone(&catalog))?,
            catalog,
            triggers: cairn_triggers::catalog::all(Channels::default()),
            vault: config.vault()?,
            home: config.home()?,
        },
    };
    // It ends in its own way, whichever signal it was.
    let stopped = async {
        stop.wait().await;
    };
    cairn_server::serve(listener, server, store, stopped).await?;
    config.output.remark("stopped");
    Ok(Exit::Success)
}

/// Says where the server is, and shows a token that nobody has seen.
fn announce(output: &Output, address: SocketAddr, token: &AdminToken, path: &Path) -> Result<()> {
    let address = format!("http://{address}");
    let path = path.display();
    if output.json {
        return output.object(&json!({
            "address": address,
            "adminToken": token.is_new.then_some(&token.text),
            "adminTokenFile": path.to_string(),
        }));
    }
    output.line(&format!("listening on {address}"))?;
    if token.is_new {
        output.line(&format!("admin token: {}  (shown once; kept in {path})", token.text))
    } else {
        output.line(&format!("admin token: kept in {path}"))
    }
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // With the lower limit it works, too, for fewer clients.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
