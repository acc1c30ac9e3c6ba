//! `cairn serve`: the HTTP server, the triggers and the runs that they start.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use cairn_api::Exit;
use cairn_api::error::{Error, Result};
use cairn_api::token::Holder;
use cairn_core::digest::Digest;
use cairn_engine::flow::Left;
use cairn_mcp::Reach;
use cairn_server::tokens::Tokens;
use cairn_server::{Automation, Front, Stopping};
use cairn_store::port::locks::{Claim, Exclusive, Lock};
use cairn_store::{Store, files};
use cairn_triggers::channel::Channels;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::commands::mcp::Sessions;
use crate::config::{Config, DRAIN_SEC_MAX};
use crate::output::Output;
use crate::stop::StopSignals;
use crate::{automate, door, fresh, home, render, somebody, sources};

mod admin_token;

/// How long the place of a server that ends in this moment is waited for.
const TAKE_OVER: Duration = Duration::from_secs(1);

pub(crate) use admin_token::ADMIN_TOKEN;
use admin_token::AdminToken;

/// Start the server, which runs automations
///
/// It fires the triggers of the workflows, performs their runs, goes on with those that were left, and answers requests. Workflow files are read again when they change. The first start makes an admin token, shows it once and keeps it in the data directory.
/// The server answers on this machine only, unless a proxy with TLS stands in front of it.
/// Ctrl-C or SIGTERM makes it take no more work and begin no more steps. Steps under way may end for as long as --drain says; what takes longer is parked and goes on at the next start. A second signal parks at once.
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

    /// Seconds that steps under way may take when the server is told to stop [default: 25]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=DRAIN_SEC_MAX))]
    drain: Option<u64>,

    #[command(flatten)]
    sessions: Sessions,
}

pub(crate) fn run(args: &Args, config: &Config) -> Result<Exit> {
    share_memory();
    // A server has as many connections as files it may open.
    raise_file_limit();
    home::on_threads(serve(args, config))
}

async fn serve(args: &Args, config: &Config) -> Result<Exit> {
    let mut stop = StopSignals::new()?;
    let store = home::open(config)?;
    let lock = alone(&store, config).await?;
    // Keys, tokens and secrets that others could read are a reason not to start, and so is whatever
    // they could change.
    require_private(config)?;
    store.keys.load().await?;
    Tokens::new(Arc::clone(&store.documents)).list().await?;
    config.vault(&store)?.require_private().await?;
    let front = if args.behind_proxy { Front::Proxy } else { Front::None };
    let address = args.listen.unwrap_or(config.listen.value);
    let listener = cairn_server::listen(address, front).await?;
    let address = listener.local_addr().map_err(|source| Error::Bind { address, source })?;
    lock.sign(&format!("process {} at http://{address}", std::process::id()));
    let token = admin_token::load_or_make(&store, &somebody::changes(&store)).await?;
    let place = store.documents.place(&ADMIN_TOKEN);
    // Whoever started it may read no further than the first line; it serves all the same.
    let _ = announce(&config.output, address, &token, &place);
    if rustix::process::geteuid().is_root() {
        config.output.remark("running as root: a user of its own is safer");
    }
    if let Err(error) = somebody::record(&store).verify().await {
        config.output.remark(&format!("WARNING: the audit record is not whole: {error}"));
    }
    let catalog = Arc::new(sources::catalog(config));
    // Agents of several projects come here, so none is taken for granted.
    let guide = door::guide(config, store.clone(), Arc::clone(&catalog), None)?;
    let engine = automate::open(config, store.clone(), Arc::clone(&catalog))?;
    let reach = Reach::Below(config.workspace_roots.value.clone());
    // Who comes in, and what they may do, is known with each request.
    let door = door::with(guide, engine.clone(), Arc::clone(&catalog), (Holder::default(), reach));
    let body_max = usize::try_from(cairn_server::BODY_MAX).unwrap_or(usize::MAX);
    let mcp = cairn_mcp::http(door, args.sessions.tools(), body_max);
    let drain = args.drain.map_or(config.drain.value, Duration::from_secs);
    let server = cairn_server::Config {
        public_hosts: args.public_host.clone(),
        admin_token: Digest::of(token.text.as_bytes()),
        new_token: fresh::token,
        mcp: Some(mcp),
        automation: Automation {
            engine,
            catalog,
            triggers: cairn_triggers::catalog::all(Channels::default()),
            vault: config.vault(&store)?,
        },
        telemetry: config.telemetry()?,
        drain,
    };
    let (urge, stopping) = watch::channel(Stopping::No);
    let serving = cairn_server::serve(listener, server, store, stopping);
    let urged = async {
        // It ends in its own way, whichever signal it was.
        stop.wait().await;
        let seconds = drain.as_secs();
        config.output.remark(&format!(
            "stopping: no more work is taken, and steps under way have {seconds} s to end; a second signal parks them at once"
        ));
        let _ = urge.send(Stopping::Gently);
        stop.wait().await;
        let _ = urge.send(Stopping::AtOnce);
        std::future::pending().await
    };
    let left = tokio::select! {
        left = serving => left?,
        left = urged => left,
    };
    tell_left(&config.output, &left);
    Ok(Exit::Success)
}

/// Takes the place of the one server of a data directory, or says who has it. Whoever has it may
/// be ending, or have been killed while it started a program: until that one is what it is to
/// be, it holds what its parent held.
async fn alone(store: &Store, config: &Config) -> Result<Box<dyn Lock>> {
    let patience = Instant::now() + TAKE_OVER;
    loop {
        match store.locks.try_lock(Exclusive::Server).await? {
            Claim::Taken(lock) => return Ok(lock),
            Claim::Held(holder) if Instant::now() >= patience => {
                let server = holder.unwrap_or_else(|| "another process".to_owned());
                return Err(Error::ServerRunning { home: config.home()?, server });
            }
            Claim::Held(_) => tokio::time::sleep(TAKE_OVER / 50).await,
        }
    }
}

/// Refuses a data directory in which others may put something in the place of what is there, and
/// says what they may read.
fn require_private(config: &Config) -> Result<()> {
    for exposed in files::exposed(&config.files()?.root) {
        let path = exposed.path.clone();
        if exposed.writable {
            let denied = std::io::Error::new(ErrorKind::PermissionDenied, exposed.told());
            return Err(cairn_engine::Error::File { path, source: Arc::new(denied) }.into());
        }
        config.output.remark(&format!("WARNING: {}: {}", path.display(), exposed.told()));
    }
    Ok(())
}

/// Says what came of the steps that were under way.
fn tell_left(output: &Output, left: &Left) {
    if left.finished > 0 {
        let finished = count(left.finished, "step came to its end", "steps came to their end");
        output.remark(&format!("{finished} while stopping"));
    }
    for (run, step) in &left.parked {
        output.remark(&format!("parked: {step} of {run}; the next start goes on with it"));
    }
    output.remark("stopped");
}

fn count(number: usize, one: &str, several: &str) -> String {
    render::count(u64::try_from(number).unwrap_or(u64::MAX), one, several)
}

/// Says where the server is, and shows a token that nobody has seen.
fn announce(output: &Output, address: SocketAddr, token: &AdminToken, place: &str) -> Result<()> {
    let address = format!("http://{address}");
    if output.json {
        return output.object(&json!({
            "address": address,
            "adminToken": token.is_new.then_some(&token.text),
            "adminTokenFile": place,
        }));
    }
    output.line(&format!("listening on {address}"))?;
    if token.is_new {
        output.line(&format!("admin token: {}  (shown once; kept in {place})", token.text))
    } else {
        output.line(&format!("admin token: kept in {place}"))
    }
}

/// Has all threads take memory from one pool. With one for each of them, as the system's library
/// has it, a busy server keeps more than twice as much. The library looks at this once, when the
/// program begins, and so it begins again.
fn share_memory() {
    use std::os::unix::process::CommandExt as _;
    const POOLS: &str = "MALLOC_ARENA_MAX";
    if std::env::var_os(POOLS).is_none()
        && let Ok(program) = std::env::current_exe()
    {
        let mut arguments = std::env::args_os();
        let name = arguments.next().unwrap_or_default();
        // Where it cannot begin again, it goes on as it is.
        let _ = Command::new(program).arg0(name).args(arguments).env(POOLS, "1").exec();
    }
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // With the lower limit it works, too, for fewer clients.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
